#include "backend_gloo/gloo_context.h"

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>

#include <mutex>
#include <utility>

namespace syncline::gloo_backend {
namespace {

namespace tcp = gloo::transport::tcp;

// A pair that is connected from its beginning.
class ConnectedPair final : public tcp::Pair {
 public:
  ConnectedPair(tcp::Context* context, tcp::Device* device, int rank,
                std::chrono::milliseconds timeout, live::Socket socket)
      : tcp::Pair(context, device, rank, timeout) {
    const std::lock_guard lock(m_);
    // The constructor above has begun to listen. Whoever has called in that instant goes, and what
    // it said with it.
    changeState(CLOSED);
    ex_ = nullptr;
    rx_ = tcp::Op();
    tx_.clear();
    state_ = INITIALIZING;
    fd_ = socket.release();
    handleConnected();
  }
};

class ConnectedContext final : public tcp::Context {
 public:
  ConnectedContext(const std::shared_ptr<tcp::Device>& device, int own_rank,
                   std::vector<live::Socket> pairs, std::chrono::milliseconds timeout)
      : tcp::Context(device, own_rank, static_cast<int>(pairs.size())) {
    setTimeout(timeout);
    for (int other = 0; other < size; ++other) {
      live::Socket& socket = pairs[static_cast<std::size_t>(other)];
      if (!socket) continue;
      pairs_[static_cast<std::size_t>(other)] =
          std::make_unique<ConnectedPair>(this, device.get(), other, timeout, std::move(socket));
    }
  }
};

}  // namespace

std::shared_ptr<gloo::transport::Context> gloo_context(int rank, std::vector<live::Socket> pairs,
                                                       std::chrono::milliseconds timeout) {
  // Where Gloo's own sockets listen for their instant.
  const tcp::attr loopback(live::kLoopback);
  const auto device = std::make_shared<tcp::Device>(tcp::CreateDeviceAttr(loopback));
  return std::make_shared<ConnectedContext>(device, rank, std::move(pairs), timeout);
}

}  // namespace syncline::gloo_backend
