// Frames on a line: a type byte, the sequence number of a gathering or the stamp of a clock
// exchange (8 bytes), the length (8 bytes), then that many bytes.

#include "live/meeting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"

namespace syncline {
namespace {

using namespace std::chrono_literals;

enum class Kind : char {
  kHello = 'H',    // rank, ranks, key, pid
  kWelcome = 'W',  // rank 0: everyone is here
  kRefuse = 'R',   // rank 0: you cannot take part, because
  kShare = 'S',    // a rank's value of a gathering
  kAll = 'A',      // rank 0: everyone's
  kPing = 'P',
  kPong = 'Q',
  kBeat = 'B',
  kFailed = 'F',  // a rank has failed: text
  kBye = 'E',
};

struct Frame {
  Kind kind = Kind::kBeat;
  std::uint64_t number = 0;
  std::string bytes;
};

constexpr std::size_t kHeader = 1 + 8 + 8;
// Far above what ranks exchange; a stranger's bytes must not make us reserve memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32U;

std::string packed(Kind kind, std::uint64_t number, const std::string& bytes) {
  std::string text(kHeader, '\0');
  text[0] = static_cast<char>(kind);
  const std::uint64_t length = bytes.size();
  std::memcpy(text.data() + 1, &number, sizeof number);
  std::memcpy(text.data() + 9, &length, sizeof length);
  return text + bytes;
}

// The texts of several values in one.
std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) {
    const std::uint64_t length = value.size();
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text += value;
  }
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> values;
  std::size_t at = 0;
  while (at + 8 <= text.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, text.data() + at, sizeof length);
    values.push_back(text.substr(at + 8, length));
    at += 8 + length;
  }
  return values;
}

// Reads what has come on a socket and cuts it into frames.
class Inbox {
 public:
  // False once the other side is gone. Takes what is there without waiting.
  bool read(int fd) {
    char chunk[65536];
    for (;;) {
      const auto n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
      if (n > 0) {
        buffer_.append(chunk, static_cast<std::size_t>(n));
        continue;
      }
      if (n == 0) return false;
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }

  std::optional<Frame> next() {
    if (buffer_.size() < kHeader) return std::nullopt;
    std::uint64_t length = 0;
    std::memcpy(&length, buffer_.data() + 9, sizeof length);
    if (length > kMostBytes) throw MachineError("the meeting: a caller that is no rank of ours");
    if (buffer_.size() < kHeader + length) return std::nullopt;
    Frame frame;
    frame.kind = static_cast<Kind>(buffer_[0]);
    std::memcpy(&frame.number, buffer_.data() + 1, sizeof frame.number);
    frame.bytes = buffer_.substr(kHeader, length);
    buffer_.erase(0, kHeader + length);
    return frame;
  }

 private:
  std::string buffer_;
};

// The next frame by `deadline`; nothing if none came or the other side is gone.
std::optional<Frame> frame_by(const Socket& socket, Inbox& inbox, LiveClock::time_point deadline) {
  for (;;) {
    if (auto frame = inbox.next()) return frame;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - LiveClock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd waiting{socket.fd(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1000)));
    if (waiting.revents != 0 && !inbox.read(socket.fd())) {
      return inbox.next();
    }
  }
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string seconds_of(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  return std::to_string(seconds) +
         (time.count() % 1000 != 0 ? "." + std::to_string(time.count() % 1000 / 100) : "") + " s";
}

std::string missing_text(const std::vector<char>& here) {
  std::string text;
  int missing = 0;
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (here[r] != 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(r);
    ++missing;
  }
  return (missing > 1 ? "ranks " : "rank ") + text + (missing > 1 ? " have" : " has");
}

struct Hello {
  int rank = 0;
  int ranks = 0;
  std::string key;
};

std::string hello_text(const RankPlace& place, const std::string& key) {
  return joined({std::to_string(place.rank), std::to_string(place.ranks), key});
}

std::optional<Hello> read_hello(const Frame& frame) {
  const auto parts = split(frame.bytes);
  if (frame.kind != Kind::kHello || parts.size() != 3) return std::nullopt;
  return Hello{std::atoi(parts[0].c_str()), std::atoi(parts[1].c_str()), parts[2]};
}

void publish(const std::string& file, const std::string& text) {
  // What is there may be left from a run that was killed; or another rank 0 waits behind it.
  std::ifstream before(file);
  std::string host;
  int port = 0;
  if (before >> host >> port && connect_by(host, port, LiveClock::now())) {
    throw MachineError("rank 0 was started twice; this one ends (" + file + ")");
  }
  const std::string beside = file + "." + std::to_string(getpid());
  {
    std::ofstream out(beside);
    out << text << "\n";
    if (!out.flush()) throw MachineError(beside + ": cannot be written");
  }
  if (std::rename(beside.c_str(), file.c_str()) != 0) {
    throw MachineError(file + ": " + std::strerror(errno));
  }
}

// "host port" as rank 0 wrote it, once it is there.
std::string awaited_text(const std::string& file, LiveClock::time_point deadline) {
  for (;;) {
    std::ifstream in(file);
    std::string line;
    if (in && std::getline(in, line)) return line;
    if (LiveClock::now() >= deadline) return "";
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

// The lines of this rank: one to rank 0, or rank 0's to everyone, and the thread that listens.
class Meeting::Lines {
 public:
  Lines(const RankPlace& place, const MeetingSettings& settings)
      : place_(place), settings_(settings) {
    wake_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  ~Lines() {
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        leaving_ = true;
      }
      wake();
      thread_.join();
    }
  }

  // Rank 0: waits for all; gives the address by which others reach it.
  std::string receive_all(Socket listener) {
    const auto deadline = LiveClock::now() + settings_.timeout;
    const auto ranks = static_cast<std::size_t>(place_.ranks);
    lines_.resize(ranks);
    inboxes_.resize(ranks);
    std::vector<char> here(ranks, 0);
    here[0] = 1;
    std::string address;
    while (std::count(here.begin(), here.end(), 0) > 0) {
      Socket caller = accept_by(listener, deadline);
      if (!caller) {
        refuse_all(here, missing_text(here) + " not come within " + seconds_of(settings_.timeout));
      }
      Inbox inbox;
      const auto frame = frame_by(caller, inbox, std::min(deadline, LiveClock::now() + 5s));
      const auto hello = frame ? read_hello(*frame) : std::nullopt;
      if (!hello) continue;  // not one of ours
      if (hello->ranks != place_.ranks) {
        refuse(caller, place_text(hello->rank, hello->ranks));
        refuse_all(here, place_text(hello->rank, hello->ranks));
      }
      if (hello->key != settings_.key) {
        const std::string text = rank_text(hello->rank) +
                                 " was started with another scenario or other options than rank 0";
        refuse(caller, text);
        refuse_all(here, text);
      }
      const auto r = static_cast<std::size_t>(hello->rank);
      if (hello->rank < 0 || r >= ranks || here[r] != 0) {
        // The one that is here goes on; the second one has no part in it.
        refuse(caller, rank_text(hello->rank) + " was started twice; this one ends");
        continue;
      }
      if (address.empty()) address = syncline::own_address(caller);
      here[r] = 1;
      lines_[r] = std::move(caller);
      inboxes_[r] = std::move(inbox);
    }
    // Callers from elsewhere know this machine by an address that is not the loopback.
    for (std::size_t r = 1; r < ranks; ++r) {
      const std::string own = syncline::own_address(lines_[r]);
      if (own.rfind("127.", 0) != 0) address = own;
      send_all(lines_[r], packed(Kind::kWelcome, 0, ""));
    }
    listener_ = std::move(listener);
    return address.empty() ? "127.0.0.1" : address;
  }

  // Another rank: calls rank 0 and waits to be welcomed; gives the address of this end.
  std::string call_first(const std::string& host, int port, LiveClock::time_point deadline) {
    Socket line = connect_by(host, port, deadline);
    if (!line) {
      throw MachineError("rank 0 has not come within " + seconds_of(settings_.timeout) + " (at " +
                         host + ":" + std::to_string(port) + ")");
    }
    send_all(line, packed(Kind::kHello, 0, hello_text(place_, settings_.key)));
    Inbox inbox;
    // Rank 0 itself waits as long for those who come last, and then says so.
    const auto frame = frame_by(line, inbox, deadline + settings_.timeout + 5s);
    if (!frame) throw MachineError("rank 0 ended before the ranks had met");
    if (frame->kind == Kind::kRefuse) throw MachineError(frame->bytes);
    lines_.push_back(std::move(line));
    inboxes_.push_back(std::move(inbox));
    return syncline::own_address(lines_.front());
  }

  void start() {
    heard_.assign(lines_.size(), LiveClock::now());
    thread_ = std::thread([this] { listen(); });
  }

  std::vector<std::string> gather(const std::string& mine, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = next_gathering_++;
    if (place_.rank == 0) {
      Gathering& gathering = gathering_of(number);
      gathering.patience = std::max(gathering.patience, patience);
      share(number, 0, mine);
    } else {
      // The patience travels in front, so that rank 0 knows it even if it comes last.
      send_all(lines_.front(),
               packed(Kind::kShare, number, joined({std::to_string(patience.count()), mine})));
    }
    changed_.wait(lock, [&] { return failed_ || left_ || done_.count(number) > 0; });
    if (done_.count(number) == 0) {
      throw MachineError(failed_ ? failure_ : "rank 0 ended before the others");
    }
    auto values = std::move(done_[number]);
    done_.erase(number);
    return values;
  }

  ClockOffset clock() {
    if (place_.rank == 0) return {};
    ClockOffset best{0, 1};
    constexpr int kExchanges = 40;
    for (int i = 0; i < kExchanges; ++i) {
      std::unique_lock lock(mutex_);
      pong_.reset();
      const Seconds sent = Meeting::now();
      send_all(lines_.front(), packed(Kind::kPing, static_cast<std::uint64_t>(i), ""));
      changed_.wait(lock, [&] { return failed_ || pong_; });
      if (!pong_) throw MachineError(failure_);
      const Seconds error = (pong_->second - sent) / 2;
      if (i == 0 || error < best.error) best = {pong_->first - (sent + pong_->second) / 2, error};
    }
    return best;
  }

  bool failed() const { return failed_; }
  // Whether someone else's failure is the cause of ours, which is known within a moment.
  bool someone_failed() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 2s, [&] { return failed_.load(); });
  }
  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void tell_failure(const std::string& text) {
    const std::lock_guard lock(mutex_);
    told_ = true;
    for (const auto& line : lines_) {
      if (line) send_all(line, packed(Kind::kFailed, 0, text));
    }
  }

 private:
  struct Gathering {
    std::vector<std::string> values;
    std::vector<char> here;
    LiveClock::time_point begun = LiveClock::now();
    std::chrono::milliseconds patience{0};
  };

  std::string place_text(int rank, int ranks) const {
    return rank_text(rank) + " was started for " + std::to_string(ranks) + " ranks, rank 0 for " +
           std::to_string(place_.ranks);
  }

  static void refuse(const Socket& caller, const std::string& text) {
    send_all(caller, packed(Kind::kRefuse, 0, text));
  }

  [[noreturn]] void refuse_all(const std::vector<char>& here, const std::string& text) {
    for (std::size_t r = 1; r < here.size(); ++r) {
      if (here[r] != 0) refuse(lines_[r], text);
    }
    throw MachineError(text);
  }

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_.fd(), &one, sizeof one);
  }

  Gathering& gathering_of(std::uint64_t number) {
    auto [it, fresh] = gatherings_.try_emplace(number);
    if (fresh) {
      it->second.values.resize(static_cast<std::size_t>(place_.ranks));
      it->second.here.assign(static_cast<std::size_t>(place_.ranks), 0);
    }
    return it->second;
  }

  // Rank 0, with the lock: a rank's value has come.
  void share(std::uint64_t number, int rank, const std::string& value) {
    Gathering& gathering = gathering_of(number);
    gathering.values[static_cast<std::size_t>(rank)] = value;
    gathering.here[static_cast<std::size_t>(rank)] = 1;
    if (std::count(gathering.here.begin(), gathering.here.end(), 0) > 0) return;
    const std::string all = packed(Kind::kAll, number, joined(gathering.values));
    for (const auto& line : lines_) {
      if (line) send_all(line, all);
    }
    done_[number] = std::move(gathering.values);
    gatherings_.erase(number);
    changed_.notify_all();
  }

  // With the lock: the first failure decides.
  void note_failure(const std::string& text, bool tell) {
    if (failed_ || leaving_) return;
    failed_ = true;
    failure_ = text;
    if (tell) {
      for (const auto& line : lines_) {
        if (line) send_all(line, packed(Kind::kFailed, 0, text));
      }
    }
    changed_.notify_all();
  }

  int other_end(std::size_t line) const { return place_.rank == 0 ? static_cast<int>(line) : 0; }

  // With the lock.
  void take(std::size_t line, const Frame& frame) {
    switch (frame.kind) {
      case Kind::kShare: {
        const auto parts = split(frame.bytes);
        if (parts.size() != 2) return;
        Gathering& gathering = gathering_of(frame.number);
        gathering.patience =
            std::max(gathering.patience, std::chrono::milliseconds(std::atoll(parts[0].c_str())));
        return share(frame.number, static_cast<int>(line), parts[1]);
      }
      case Kind::kAll:
        done_[frame.number] = split(frame.bytes);
        changed_.notify_all();
        return;
      case Kind::kPing: {
        const Seconds now = Meeting::now();
        std::string bytes(sizeof now, '\0');
        std::memcpy(bytes.data(), &now, sizeof now);
        send_all(lines_[line], packed(Kind::kPong, frame.number, bytes));
        return;
      }
      case Kind::kPong: {
        Seconds there = 0;
        if (frame.bytes.size() == sizeof there) {
          std::memcpy(&there, frame.bytes.data(), sizeof there);
        }
        pong_ = {there, Meeting::now()};
        changed_.notify_all();
        return;
      }
      case Kind::kFailed:
        first_hand_ = place_.rank == 0;
        return note_failure(frame.bytes, place_.rank == 0);
      case Kind::kBye:
        // In order, once all is done; whoever still waits for it learns so.
        lines_[line] = Socket();
        left_ = place_.rank != 0;
        changed_.notify_all();
        return;
      default:
        return;
    }
  }

  void lost(std::size_t line) {
    lines_[line] = Socket();
    first_hand_ = place_.rank <= 1;
    note_failure(rank_text(other_end(line)) + " ended in the middle of the run", true);
  }

  // Ranks that are silent, or that are waited for.
  void look_around(LiveClock::time_point now) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i] || now - heard_[i] < settings_.timeout) continue;
      first_hand_ = true;
      note_failure(rank_text(other_end(i)) + " has been silent for " +
                       seconds_of(settings_.timeout) + ": it hangs, or its link is cut",
                   true);
    }
    for (const auto& [number, gathering] : gatherings_) {
      for (std::size_t r = 1; r < gathering.here.size(); ++r) {
        if (gathering.here[r] != 0 || lines_[r]) continue;
        first_hand_ = true;
        return note_failure(rank_text(static_cast<int>(r)) + " ended before the others", true);
      }
      if (gathering.patience == kPatient) continue;
      if (now - gathering.begun < std::max(gathering.patience, settings_.timeout)) continue;
      first_hand_ = true;
      note_failure(missing_text(gathering.here) + " not come along for " +
                       seconds_of(std::max(gathering.patience, settings_.timeout)),
                   true);
      return;
    }
  }

  // A second process for a rank that is here, or a late one.
  void turn_away() {
    Socket caller = accept_by(listener_, LiveClock::now());
    if (!caller) return;
    Inbox inbox;
    const auto frame = frame_by(caller, inbox, LiveClock::now() + 1s);
    const auto hello = frame ? read_hello(*frame) : std::nullopt;
    if (hello) refuse(caller, rank_text(hello->rank) + " was started twice; this one ends");
  }

  void listen() {
    auto next_beat = LiveClock::now();
    for (;;) {
      std::vector<pollfd> waiting{{wake_.fd(), POLLIN, 0}};
      std::vector<std::size_t> owners{0};
      {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < lines_.size(); ++i) {
          if (!lines_[i]) continue;
          waiting.push_back({lines_[i].fd(), POLLIN, 0});
          owners.push_back(i);
        }
      }
      if (listener_) waiting.push_back({listener_.fd(), POLLIN, 0});
      poll(waiting.data(), waiting.size(), 200);
      if (listener_ && waiting.back().revents != 0) turn_away();

      std::unique_lock lock(mutex_);
      const auto now = LiveClock::now();
      for (std::size_t w = 1; w < owners.size(); ++w) {
        if (waiting[w].revents == 0) continue;
        const std::size_t line = owners[w];
        heard_[line] = now;
        const bool there = inboxes_[line].read(lines_[line].fd());
        while (auto frame = inboxes_[line].next()) {
          take(line, *frame);
          if (!lines_[line]) break;
        }
        if (!there && lines_[line]) lost(line);
      }
      if (now >= next_beat) {
        next_beat = now + 1s;
        for (const auto& line : lines_) {
          if (line) send_all(line, packed(Kind::kBeat, 0, ""));
        }
      }
      look_around(now);
      if (failed_ && !announced_ && !told_) {
        announced_ = true;
        const std::string text = failure_;
        const bool first_hand = first_hand_;
        lock.unlock();
        if (settings_.on_failure) settings_.on_failure(text, first_hand);
        lock.lock();
      }
      if (leaving_) {
        for (const auto& line : lines_) {
          if (line) send_all(line, packed(Kind::kBye, 0, ""));
        }
        return;
      }
    }
  }

  const RankPlace place_;
  const MeetingSettings settings_;
  Socket listener_;
  std::vector<Socket> lines_;  // rank 0: by rank, none for itself; others: one
  std::vector<Inbox> inboxes_;
  Socket wake_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LiveClock::time_point> heard_;
  std::uint64_t next_gathering_ = 0;
  std::map<std::uint64_t, Gathering> gatherings_;
  std::map<std::uint64_t, std::vector<std::string>> done_;
  std::optional<std::pair<Seconds, Seconds>> pong_;  // rank 0's time, and ours when it came
  std::atomic<bool> failed_ = false;
  bool first_hand_ = false;
  bool announced_ = false;
  bool told_ = false;
  bool leaving_ = false;
  bool left_ = false;  // rank 0 has
  std::string failure_;
};

Seconds Meeting::now() {
  return std::chrono::duration<double>(LiveClock::now().time_since_epoch()).count();
}

Meeting::Meeting(const RankPlace& place, MeetingSettings settings)
    : place_(place), settings_(std::move(settings)) {
  lines_ = std::make_unique<Lines>(place_, settings_);
  const auto deadline = LiveClock::now() + settings_.timeout;
  const bool first = place_.rank == 0;
  if (first) {
    Socket listener = listen_on(place_.meet == RankPlace::Meet::kAddress ? place_.port : 0);
    const std::string here = reachable_address() + " " + std::to_string(port_of(listener));
    const bool by_file = place_.meet == RankPlace::Meet::kFile && place_.ranks > 1;
    if (place_.meet == RankPlace::Meet::kMpi && place_.ranks > 1) mpi_from_first(here);
    if (by_file) publish(place_.file, here);
    try {
      address_ = lines_->receive_all(std::move(listener));
    } catch (...) {
      if (by_file) std::remove(place_.file.c_str());
      throw;
    }
    if (by_file) std::remove(place_.file.c_str());
  } else {
    std::string host = place_.host;
    int port = place_.port;
    if (place_.meet != RankPlace::Meet::kAddress) {
      const std::string there = place_.meet == RankPlace::Meet::kMpi
                                    ? mpi_from_first("")
                                    : awaited_text(place_.file, deadline);
      const auto space = there.find(' ');
      if (space == std::string::npos) {
        throw MachineError("rank 0 has not come within " + seconds_of(settings_.timeout) +
                           ": it has not written " + place_.file);
      }
      host = there.substr(0, space);
      port = std::atoi(there.c_str() + space);
    }
    address_ = lines_->call_first(host, port, deadline);
  }
  lines_->start();
}

Meeting::~Meeting() = default;

std::vector<std::string> Meeting::gather(const std::string& mine,
                                         std::chrono::milliseconds patience) {
  return lines_->gather(mine, patience);
}

void Meeting::barrier(std::chrono::milliseconds patience) { lines_->gather("", patience); }

std::string Meeting::from_first(const std::string& mine, std::chrono::milliseconds patience) {
  return lines_->gather(place_.rank == 0 ? mine : "", patience).front();
}

void Meeting::check() const {
  if (lines_->failed()) throw MachineError(lines_->failure());
}

ClockOffset Meeting::clock() { return lines_->clock(); }

void Meeting::fail(const std::string& text) {
  if (lines_->someone_failed()) {
    // Whoever is told of failures ends this process.
    if (settings_.on_failure) std::this_thread::sleep_for(5s);
    throw MachineError(lines_->failure());
  }
  lines_->tell_failure(rank_text(rank()) + ": " + text);
}

}  // namespace syncline
