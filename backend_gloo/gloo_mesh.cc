#include "backend_gloo/gloo_mesh.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <gloo/common/error.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#if __has_include(<gloo/transport/tcp/listener.h>)
#include <gloo/transport/tcp/error.h>
#include <gloo/transport/tcp/socket.h>
#endif
#include <gloo/transport/unbound_buffer.h>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/plan.h"
#include "live/control_channel.h"

namespace syncline::gloo_backend {
namespace {

// Bytes of a piece of a message. Summing one piece overlaps with the transfer of the next. Large
// enough that the fixed cost of a piece (tens of microseconds) is negligible against its transfer.
constexpr std::int64_t kPieceBytes = std::int64_t{256} * 1024;

// This rank's messages in one round.
struct Step {
  struct Message {
    int peer = 0;
    int slot = 0;            // distinguishes messages of one round
    std::int64_t begin = 0;  // bytes in this rank's payload
    std::int64_t bytes = 0;
    std::int64_t piece = kPieceBytes;  // a multiple of the unit, as units are summed whole
    bool add = false;
    bool at_end = false;  // must not touch the payload before this rank's sends are complete
  };
  std::uint64_t round = 0;
  std::vector<Message> sends;
  std::vector<Message> receives;
};

// Returns the part of a collective's rounds that concerns one rank.
std::vector<Step> steps_of(const collective::Collective& collective, std::int64_t begin, int rank) {
  std::vector<Step> steps;
  std::uint64_t number = 0;
  for (const collective::Round& round : plan::lower(collective)) {
    Step step;
    step.round = number++;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const collective::Transfer& transfer = round[i];
      if (transfer.from != rank && transfer.to != rank) continue;
      Step::Message message;
      message.slot = static_cast<int>(i);
      message.begin = begin + transfer.elements.begin * collective.unit;
      message.bytes = transfer.elements.size() * collective.unit;
      message.piece = std::max(collective.unit, kPieceBytes / collective.unit * collective.unit);
      message.add = transfer.add;
      message.peer = transfer.from == rank ? transfer.to : transfer.from;
      if (message.bytes == 0) continue;
      (transfer.from == rank ? step.sends : step.receives).push_back(message);
    }
    for (auto& receive : step.receives) {
      for (const auto& send : step.sends) {
        receive.at_end = receive.at_end || (receive.begin < send.begin + send.bytes &&
                                            send.begin < receive.begin + receive.bytes);
      }
    }
    if (!step.sends.empty() || !step.receives.empty()) steps.push_back(std::move(step));
  }
  return steps;
}

using Key = std::tuple<int, const void*, int, int, int, int, int, int, int, std::int64_t, Bytes,
                       std::int64_t>;

Key key_of(const collective::Collective& c, std::int64_t begin) {
  const collective::Groups& g = c.groups;
  return Key(static_cast<int>(c.kind), c.algorithm, g.base, g.count, g.group_step, g.size,
             g.member_step, g.run, g.run_step, c.elements, c.unit, begin);
}

namespace tcp = gloo::transport::tcp;

// A pair over an open connection. Gloo of 2023 (Debian 13, same version number) listens in its
// device for all pairs and gives each its socket; in older versions each pair listened.
class ConnectedPair final : public tcp::Pair {
 public:
  ConnectedPair(tcp::Context* context, tcp::Device* device, int rank,
                std::chrono::milliseconds timeout, live::Socket socket)
      : tcp::Pair(context, device, rank, timeout) {
#if __has_include(<gloo/transport/tcp/listener.h>)
    connectCallback(std::make_shared<tcp::Socket>(socket.release()), tcp::Error());
#else
    const std::lock_guard lock(m_);
    // The constructor above has begun to listen. A caller in that instant is dropped with its data.
    changeState(CLOSED);
    ex_ = nullptr;
    rx_ = tcp::Op();
    tx_.clear();
    state_ = INITIALIZING;
    fd_ = socket.release();
    handleConnected();
#endif
  }
};

class ConnectedContext final : public tcp::Context {
 public:
  ConnectedContext(const std::shared_ptr<tcp::Device>& device, int own_rank,
                   std::vector<live::Socket> pairs, std::chrono::milliseconds timeout)
      : tcp::Context(device, own_rank, static_cast<int>(pairs.size())) {
    setTimeout(timeout);
    for (int other = 0; other < size; ++other) {
      live::Socket& socket = pairs[index(other)];
      if (!socket) continue;
      pairs_[index(other)] =
          std::make_unique<ConnectedPair>(this, device.get(), other, timeout, std::move(socket));
    }
  }
};

}  // namespace

// One of Gloo's contexts, with its own event loop.
class GlooMesh::Communicator {
 public:
  explicit Communicator(live::ControlChannel& channel)
      : rank_(channel.rank()),
        timeout_(channel.timeout()),
        context_(gloo_context(rank_, live::connect_pairs(channel), timeout_)) {
    channel.barrier();
  }

  Bytes run(const collective::Collective& collective, const run::Payload& layout,
            std::int64_t begin, std::byte* payload) {
    auto [it, fresh] = steps_.try_emplace(key_of(collective, begin));
    if (fresh) it->second = steps_of(collective, begin, rank_);
    const auto size = static_cast<std::size_t>(layout.bytes());
    const auto whole = context_->createUnboundBuffer(payload, size);
    Bytes sent = 0;
    try {
      for (const Step& step : it->second) sent += run_step(step, layout, payload, *whole);
    } catch (const std::exception& error) {
      throw live::PeerError(std::string("gloo: ") + error.what());
    }
    ++number_;
    return sent;
  }

 private:
  template <typename Piece>
  static void in_pieces(const Step::Message& message, Piece piece) {
    for (std::int64_t at = 0; at < message.bytes; at += message.piece) {
      piece(at, std::min(message.piece, message.bytes - at));
    }
  }

  // Returns a tag that is unique among all messages of this communicator.
  std::uint64_t slot(const Step& step, const Step::Message& message) const {
    return number_ << 40U | step.round << 16U | static_cast<std::uint64_t>(message.slot);
  }

  // Messages that are staged outside of the payload and added to the same bytes; or one to copy.
  struct Sum {
    const Step::Message* message = nullptr;
    std::vector<std::size_t> buffers;
  };

  // Groups the received messages of a step by the range that they are added to.
  static std::vector<Sum> sums_of(const Step& step) {
    std::vector<Sum> sums;
    std::size_t buffer = 0;
    for (const auto& message : step.receives) {
      if (!message.add && !message.at_end) continue;
      const auto same = std::ranges::find_if(sums, [&](const Sum& sum) {
        return message.add && sum.message->add && sum.message->begin == message.begin &&
               sum.message->bytes == message.bytes;
      });
      Sum& sum = same == sums.end() ? sums.emplace_back() : *same;
      if (sum.message == nullptr) sum.message = &message;
      sum.buffers.push_back(buffer++);
    }
    return sums;
  }

  // Posts receives first, so that no sender waits for one. Sums piece by piece while the rest is
  // under way.
  Bytes run_step(const Step& step, const run::Payload& layout, std::byte* payload,
                 gloo::transport::UnboundBuffer& whole) {
    std::int64_t staged = 0;
    for (const auto& message : step.receives) {
      if (message.add || message.at_end) staged += message.bytes;
    }
    if (static_cast<std::int64_t>(staging_.size()) < staged) {
      staging_.resize(static_cast<std::size_t>(staged));
    }
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
    std::byte* stage = staging_.data();
    int direct = 0;
    for (const auto& message : step.receives) {
      const bool staging = message.add || message.at_end;
      if (staging) {
        buffers.push_back(
            context_->createUnboundBuffer(stage, static_cast<std::size_t>(message.bytes)));
        stage += message.bytes;
      }
      in_pieces(message, [&](std::int64_t at, std::int64_t bytes) {
        auto& buffer = staging ? *buffers.back() : whole;
        buffer.recv(message.peer, slot(step, message),
                    static_cast<std::size_t>(staging ? at : message.begin + at),
                    static_cast<std::size_t>(bytes));
        direct += staging ? 0 : 1;
      });
    }
    Bytes sent = 0;
    int sends = 0;
    for (const auto& message : step.sends) {
      in_pieces(message, [&](std::int64_t at, std::int64_t bytes) {
        whole.send(message.peer, slot(step, message), static_cast<std::size_t>(message.begin + at),
                   static_cast<std::size_t>(bytes));
        ++sends;
      });
      sent += message.bytes;
    }

    const auto sums = sums_of(step);
    const auto come = [&](std::size_t n) { return static_cast<const std::byte*>(buffers[n]->ptr); };
    for (const Sum& sum : sums) {
      const Step::Message& message = *sum.message;
      in_pieces(message, [&](std::int64_t at, std::int64_t bytes) {
        std::vector<const std::byte*> from;
        for (const std::size_t n : sum.buffers) {
          buffers[n]->waitRecv(timeout_);
          from.push_back(come(n) + at);
        }
        if (!message.at_end) layout.add(payload + message.begin + at, from, bytes);
      });
    }
    for (; direct > 0; --direct) whole.waitRecv(timeout_);
    for (; sends > 0; --sends) whole.waitSend(timeout_);

    for (const Sum& sum : sums) {
      const Step::Message& message = *sum.message;
      if (!message.at_end) continue;
      std::vector<const std::byte*> from;
      for (const std::size_t n : sum.buffers) from.push_back(come(n));
      if (message.add) {
        layout.add(payload + message.begin, from, message.bytes);
      } else {
        std::memcpy(payload + message.begin, from.back(), static_cast<std::size_t>(message.bytes));
      }
    }
    return sent;
  }

  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::map<Key, std::vector<Step>> steps_;
  std::vector<std::byte> staging_;
  std::uint64_t number_ = 0;  // number of the collective
};

struct GlooMesh::State {
  live::ControlChannel& channel;
  std::vector<std::unique_ptr<Communicator>> communicators;
};

std::string gloo_version() {
  return std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
         std::to_string(GLOO_VERSION_PATCH);
}

GlooMesh::GlooMesh(live::ControlChannel& channel) : state_(new State{channel, {}}) {}

GlooMesh::~GlooMesh() = default;

void GlooMesh::connect(int streams) {
  try {
    while (static_cast<int>(state_->communicators.size()) < streams) {
      state_->communicators.push_back(std::make_unique<Communicator>(state_->channel));
    }
  } catch (const MachineError&) {
    throw;  // the control channel's, which knows the failed rank
  } catch (const std::exception& error) {
    throw live::PeerError(std::string("gloo: ") + error.what());
  }
}

Bytes GlooMesh::run(int stream, const collective::Collective& collective,
                    const run::Payload& layout, std::int64_t begin, std::byte* payload) {
  return state_->communicators[index(stream)]->run(collective, layout, begin, payload);
}

std::shared_ptr<gloo::transport::Context> gloo_context(int rank, std::vector<live::Socket> pairs,
                                                       std::chrono::milliseconds timeout) {
  // The address that Gloo's own sockets listen on briefly.
  const tcp::attr loopback(live::kLoopback);
  const auto device = std::make_shared<tcp::Device>(tcp::CreateDeviceAttr(loopback));
  return std::make_shared<ConnectedContext>(device, rank, std::move(pairs), timeout);
}

}  // namespace syncline::gloo_backend
