#include "live/meeting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "live/frame.h"

namespace syncline {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Signs of life, at most so far apart, and four within the time limit.
constexpr auto kBeatEvery = 250ms;
// Where a link is cut both ends find the other silent. Rank 0 is to say so: the others wait longer.
constexpr auto kOthersWait = 1000ms;
// How long a rank that ends waits until the others have read why.
constexpr auto kParting = 1000ms;
// How long a caller may take to say who it is, and rank 0 stays to refuse those who come late.
constexpr auto kIntroduction = 3000ms;

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string seconds_of(milliseconds time) {
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

std::string twice_text(int rank) { return rank_text(rank) + " was started twice; this one ends"; }

struct Hello {
  int rank = 0;
  int ranks = 0;
  std::string key;
};

std::string hello_text(const RankEnvironment& place, const std::string& key) {
  return joined({std::to_string(place.rank), std::to_string(place.ranks), key});
}

std::optional<Hello> read_hello(const Frame& frame) {
  const auto parts = split(frame.bytes);
  if (frame.kind != FrameKind::kHello || parts.size() != 3) return std::nullopt;
  return Hello{std::atoi(parts[0].c_str()), std::atoi(parts[1].c_str()), parts[2]};
}

// One end of a contact. What cannot be sent at once waits in `unsent`, so that nobody waits for a
// rank that does not read.
struct Line {
  Socket socket;
  Inbox inbox;
  std::string unsent;
  std::size_t sent = 0;  // of that
  LiveClock::time_point heard = LiveClock::now();

  explicit operator bool() const { return static_cast<bool>(socket); }
  void send(const std::string& bytes) {
    if (!socket) return;
    unsent += bytes;
    flush();
  }
  void flush() {
    // That the other side is gone is found by reading.
    if (!socket || unsent.empty()) return;
    if (send_some(socket, unsent, sent) && sent < unsent.size()) return;
    unsent.clear();
    sent = 0;
  }
  short wanted() const { return static_cast<short>(unsent.empty() ? POLLIN : POLLIN | POLLOUT); }
};

// Somebody who has called and not said yet who it is.
struct Caller {
  Line line;
  LiveClock::time_point until;
};

// Takes a caller, if there is one, without waiting.
void take_caller(const Socket& listener, std::vector<Caller>& callers) {
  Socket socket = accept_by(listener, LiveClock::now());
  if (!socket) return;
  constexpr std::size_t kMostAtOnce = 10000;
  if (callers.size() >= kMostAtOnce) callers.erase(callers.begin());
  Caller caller{{}, LiveClock::now() + kIntroduction};
  caller.line.socket = std::move(socket);
  caller.line.inbox = Inbox(Inbox::kStranger);
  callers.push_back(std::move(caller));
}

// Hands those who have introduced themselves to `admit`, which may take their line; drops those who
// never will.
template <typename Admit>
void hear_callers(std::vector<Caller>& callers, Admit admit) {
  for (std::size_t i = 0; i < callers.size();) {
    Line& line = callers[i].line;
    const bool there = line.inbox.read(line.socket.fd());
    const auto frame = line.inbox.next();
    const auto hello = frame ? read_hello(*frame) : std::nullopt;
    if (hello) admit(*hello, line);
    if (!frame && there && LiveClock::now() < callers[i].until) {
      ++i;
    } else {
      callers.erase(callers.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Waits at most so long until one of them has something to be done.
void wait_for(std::vector<pollfd>& waiting, milliseconds time) {
  poll(waiting.data(), waiting.size(),
       static_cast<int>(std::clamp<long long>(time.count(), 0, 200)));
}

milliseconds until(LiveClock::time_point time) {
  return std::chrono::ceil<milliseconds>(time - LiveClock::now());
}

// Half-closes each line once everything is sent, and waits until the others have closed theirs: a
// socket that is closed with something unread takes what was sent along.
void part(std::vector<Line>& lines, LiveClock::time_point deadline) {
  for (auto& line : lines) line.flush();
  std::vector<char> closed(lines.size(), 0);
  while (LiveClock::now() < deadline) {
    std::vector<pollfd> waiting;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      Line& line = lines[i];
      if (!line) continue;
      line.flush();
      if (line.unsent.empty() && closed[i] == 0) {
        shutdown(line.socket.fd(), SHUT_WR);
        closed[i] = 1;
      }
      if (line.inbox.read(line.socket.fd())) {
        while (line.inbox.next()) {
        }
        waiting.push_back({line.socket.fd(), line.wanted(), 0});
      } else {
        line = Line();
      }
    }
    if (waiting.empty()) return;
    wait_for(waiting, until(deadline));
  }
}

Socket listener_at(const RankEnvironment& place) {
  if (place.rendezvous != RankEnvironment::Rendezvous::kAddress) return listen_on(0);
  try {
    return listen_on(place.port);
  } catch (const MachineError& error) {
    throw NotMet("rank 0 cannot listen where the others seek it, or was started twice: " +
                     std::string(error.what()),
                 true);
  }
}

// Tells the others where rank 0 is. What is there may be left from a run that was killed; or
// another rank 0 waits behind it.
void publish(const std::string& file, const std::string& text) {
  std::string beside = file + ".XXXXXX";
  const Socket made(mkstemp(beside.data()));
  const std::string line = text + "\n";
  if (!made || write(made.fd(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    const std::string reason = std::strerror(errno);
    if (made) std::remove(beside.c_str());
    throw MachineError(file + ": " + reason);
  }
  fchmod(made.fd(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  // Linking, other than renaming, fails where another was quicker.
  int reason = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    reason = link(beside.c_str(), file.c_str()) == 0 ? 0 : errno;
    if (reason != EEXIST) break;
    std::ifstream before(file);
    std::string host;
    int port = 0;
    if (before >> host >> port && answers(host, port)) {
      std::remove(beside.c_str());
      throw NotMet(twice_text(0) + " (" + file + ")", true);
    }
    std::remove(file.c_str());
  }
  std::remove(beside.c_str());
  if (reason != 0) throw MachineError(file + ": " + std::strerror(reason));
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
  Lines(const RankEnvironment& place, const MeetingSettings& settings)
      : place_(place), settings_(settings) {
    wake_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  ~Lines() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake();
    thread_.join();
  }

  // Rank 0: waits for all; gives the address by which others reach it.
  std::string receive_all(Socket listener) {
    const auto ranks = static_cast<std::size_t>(place_.ranks);
    auto deadline = LiveClock::now() + settings_.timeout;
    lines_.resize(ranks);
    std::vector<char> here(ranks, 0);
    here[0] = 1;
    std::vector<Caller> callers;
    std::string refused;  // why nobody can take part
    const auto refuse_all = [&](const std::string& text) {
      if (!refused.empty()) return;
      refused = text;
      for (auto& line : lines_) line.send(packed(FrameKind::kRefuse, 0, text));
      // Those who are still to come are to hear it as well.
      deadline = std::min(deadline, LiveClock::now() + kIntroduction);
    };
    const auto admit = [&](const Hello& hello, Line& line) {
      if (hello.ranks != place_.ranks) {
        refuse_all(rank_text(hello.rank) + " was started for " + std::to_string(hello.ranks) +
                   " ranks, rank 0 for " + std::to_string(place_.ranks));
      } else if (hello.key != settings_.key) {
        refuse_all(rank_text(hello.rank) +
                   " was started with another scenario or other options than rank 0");
      }
      const auto r = static_cast<std::size_t>(hello.rank);
      if (refused.empty() && (r >= ranks || here[r] != 0)) {
        // The one that is here goes on; the second one has no part in it.
        line.send(packed(FrameKind::kRefuse, 1, twice_text(hello.rank)));
        return;
      }
      if (!refused.empty()) line.send(packed(FrameKind::kRefuse, 0, refused));
      if (r >= ranks || here[r] != 0) return;
      here[r] = 1;
      line.inbox.allow(Inbox::kMostBytes);
      lines_[r] = std::move(line);
    };
    while (std::count(here.begin(), here.end(), 0) > 0 && LiveClock::now() < deadline) {
      std::vector<pollfd> waiting{{listener.fd(), POLLIN, 0}};
      for (const auto& caller : callers) waiting.push_back({caller.line.socket.fd(), POLLIN, 0});
      for (const auto& line : lines_) {
        if (line) waiting.push_back({line.socket.fd(), line.wanted(), 0});
      }
      wait_for(waiting, until(deadline));
      take_caller(listener, callers);
      hear_callers(callers, admit);
      for (std::size_t r = 1; r < ranks; ++r) {
        if (!lines_[r] || lines_[r].inbox.read(lines_[r].socket.fd())) continue;
        lines_[r] = Line();
        refuse_all(rank_text(static_cast<int>(r)) + " ended before the ranks had met");
      }
    }
    if (std::count(here.begin(), here.end(), 0) > 0) {
      refuse_all(missing_text(here) + " not come within " + seconds_of(settings_.timeout));
    }
    if (!refused.empty()) {
      part(lines_, LiveClock::now() + kParting);
      throw NotMet(refused, true);
    }
    // Callers from elsewhere know this machine by an address that is not the loopback.
    std::string address = "127.0.0.1";
    for (std::size_t r = 1; r < ranks; ++r) {
      const std::string own = syncline::own_address(lines_[r].socket);
      if (own.rfind("127.", 0) != 0) address = own;
      lines_[r].send(packed(FrameKind::kWelcome));
    }
    listener_ = std::move(listener);
    return address;
  }

  // Another rank: calls rank 0 and waits to be welcomed; gives the address of this end.
  std::string call_first(const std::string& host, int port, LiveClock::time_point deadline) {
    lines_.resize(1);
    Line& line = lines_.front();
    line.socket = connect_by(host, port, deadline);
    const bool speaker = place_.rank == 1;
    if (!line) {
      throw NotMet("rank 0 has not come within " + seconds_of(settings_.timeout) + " (at " + host +
                       ":" + std::to_string(port) + ")",
                   speaker);
    }
    line.send(packed(FrameKind::kHello, 0, hello_text(place_, settings_.key)));
    // Rank 0 itself waits as long for those who come last, and then says so.
    const auto patience = deadline + settings_.timeout + 2 * kIntroduction;
    std::optional<Frame> frame;
    for (bool there = true; there && !frame && LiveClock::now() < patience;) {
      std::vector<pollfd> waiting{{line.socket.fd(), line.wanted(), 0}};
      wait_for(waiting, until(patience));
      line.flush();
      there = line.inbox.read(line.socket.fd());
      frame = line.inbox.next();
    }
    if (!frame) throw NotMet("rank 0 ended before the ranks had met", speaker);
    if (frame->kind == FrameKind::kRefuse) throw NotMet(frame->bytes, frame->number == 1);
    return syncline::own_address(line.socket);
  }

  void start() {
    for (auto& line : lines_) line.heard = LiveClock::now();
    thread_ = std::thread([this] { listen(); });
  }

  std::vector<std::string> gather(const std::string& mine, milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (failed_) throw MachineError(failure_);
    const std::uint64_t number = next_gathering_++;
    if (place_.rank == 0) {
      Gathering& gathering = gathering_of(number);
      gathering.patience = std::max(gathering.patience, patience);
      share(number, 0, mine);
    } else {
      // The patience travels in front, so that rank 0 knows it even if it comes last.
      lines_.front().send(
          packed(FrameKind::kShare, number, joined({std::to_string(patience.count()), mine})));
    }
    // The thread sends what has not gone yet.
    const auto waits = [](const Line& line) { return !line.unsent.empty(); };
    if (std::any_of(lines_.begin(), lines_.end(), waits)) wake();
    changed_.wait(lock, [&] { return failed_ || left_ || done_.count(number) > 0; });
    if (done_.count(number) == 0) throw MachineError(why_not());
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
      lines_.front().send(packed(FrameKind::kPing, static_cast<std::uint64_t>(i)));
      changed_.wait(lock, [&] { return failed_ || left_ || pong_; });
      if (!pong_) throw MachineError(why_not());
      const Seconds error = (pong_->second - sent) / 2;
      if (i == 0 || error < best.error) best = {pong_->first - (sent + pong_->second) / 2, error};
    }
    return best;
  }

  bool failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  // Whether someone else's failure is known, or becomes so by then.
  bool someone_failed(milliseconds within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return failed_; });
  }
  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  // Returns once the others have it, or a moment later.
  void tell_failure(const std::string& text) {
    std::unique_lock lock(mutex_);
    told_ = failed_ = true;
    failure_ = text;
    for (auto& line : lines_) line.send(packed(FrameKind::kFailed, 0, text));
    wake();
    changed_.wait(lock, [&] { return parted_; });
  }

 private:
  struct Gathering {
    std::vector<std::string> values;
    std::vector<char> here;
    LiveClock::time_point begun = LiveClock::now();
    milliseconds patience{0};
  };

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_.fd(), &one, sizeof one);
  }

  std::string why_not() const { return failed_ ? failure_ : "rank 0 ended before the others"; }

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
    if (failed_) return;  // nobody is to go on as if nothing had happened
    Gathering& gathering = gathering_of(number);
    gathering.values[static_cast<std::size_t>(rank)] = value;
    gathering.here[static_cast<std::size_t>(rank)] = 1;
    if (std::count(gathering.here.begin(), gathering.here.end(), 0) > 0) return;
    const std::string all = packed(FrameKind::kAll, number, joined(gathering.values));
    for (auto& line : lines_) line.send(all);
    done_[number] = std::move(gathering.values);
    gatherings_.erase(number);
    changed_.notify_all();
  }

  // With the lock: the first failure decides. `first_hand`: found here, so the others are told.
  void note_failure(const std::string& text, bool first_hand) {
    if (failed_ || leaving_) return;
    failed_ = true;
    failure_ = text;
    first_hand_ = first_hand;
    // What another rank tells reaches all by way of rank 0.
    if (first_hand) {
      for (auto& line : lines_) line.send(packed(FrameKind::kFailed, 0, text));
    }
    changed_.notify_all();
  }

  int other_end(std::size_t line) const { return place_.rank == 0 ? static_cast<int>(line) : 0; }

  // With the lock.
  void take(std::size_t line, const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kShare: {
        const auto parts = split(frame.bytes);
        if (parts.size() != 2) return;
        Gathering& gathering = gathering_of(frame.number);
        gathering.patience =
            std::max(gathering.patience, milliseconds(std::atoll(parts[0].c_str())));
        return share(frame.number, static_cast<int>(line), parts[1]);
      }
      case FrameKind::kAll:
        done_[frame.number] = split(frame.bytes);
        changed_.notify_all();
        return;
      case FrameKind::kPing: {
        const Seconds now = Meeting::now();
        std::string bytes(sizeof now, '\0');
        std::memcpy(bytes.data(), &now, sizeof now);
        return lines_[line].send(packed(FrameKind::kPong, frame.number, bytes));
      }
      case FrameKind::kPong: {
        Seconds there = 0;
        if (frame.bytes.size() == sizeof there) {
          std::memcpy(&there, frame.bytes.data(), sizeof there);
        }
        pong_ = {there, Meeting::now()};
        changed_.notify_all();
        return;
      }
      case FrameKind::kFailed:
        return note_failure(frame.bytes, place_.rank == 0);
      case FrameKind::kBye:
        // In order, once all is done; whoever still waits for it learns so.
        lines_[line] = Line();
        left_ = place_.rank != 0;
        changed_.notify_all();
        return;
      default:
        return;
    }
  }

  // Ranks that are silent, or that are waited for.
  void look_around(LiveClock::time_point now) {
    const auto limit = settings_.timeout + (place_.rank == 0 ? milliseconds(0) : kOthersWait);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i] || now - lines_[i].heard < limit) continue;
      // Not if it is us who did not listen, having been stopped.
      pollfd unread{lines_[i].socket.fd(), POLLIN, 0};
      if (poll(&unread, 1, 0) > 0) continue;
      note_failure(rank_text(other_end(i)) + " has been silent for " +
                       seconds_of(settings_.timeout) + ": it hangs, or its link is cut",
                   place_.rank <= 1);
    }
    for (const auto& [number, gathering] : gatherings_) {
      for (std::size_t r = 1; r < gathering.here.size(); ++r) {
        if (gathering.here[r] != 0 || lines_[r]) continue;
        return note_failure(rank_text(static_cast<int>(r)) + " ended before the others", true);
      }
      if (gathering.patience == kPatient) continue;
      const auto patience = std::max(gathering.patience, settings_.timeout);
      if (now - gathering.begun < patience) continue;
      return note_failure(
          missing_text(gathering.here) + " not come along for " + seconds_of(patience), true);
    }
  }

  // With the lock: what has come on the lines.
  void hear_lines() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      Line& line = lines_[i];
      if (!line) continue;
      line.flush();
      pollfd unread{line.socket.fd(), POLLIN, 0};
      bool there = true;
      if (poll(&unread, 1, 0) > 0) {
        line.heard = LiveClock::now();
        there = line.inbox.read(line.socket.fd());
      }
      while (auto frame = line.inbox.next()) {
        take(i, *frame);
        if (!line) break;
      }
      if (there || !line) continue;
      line = Line();
      note_failure(rank_text(other_end(i)) + " ended in the middle of the run", place_.rank <= 1);
    }
  }

  void listen() {
    auto next_beat = LiveClock::now();
    std::vector<Caller> callers;
    std::unique_lock lock(mutex_);
    for (;;) {
      std::vector<pollfd> waiting{{wake_.fd(), POLLIN, 0}};
      for (const auto& line : lines_) {
        if (line) waiting.push_back({line.socket.fd(), line.wanted(), 0});
      }
      lock.unlock();
      if (listener_) waiting.push_back({listener_.fd(), POLLIN, 0});
      for (const auto& caller : callers) waiting.push_back({caller.line.socket.fd(), POLLIN, 0});
      wait_for(waiting, until(next_beat));
      if (listener_) {
        // A second process for a rank that is here, or a late one.
        take_caller(listener_, callers);
        hear_callers(callers, [](const Hello& hello, Line& line) {
          line.send(packed(FrameKind::kRefuse, 1, twice_text(hello.rank)));
        });
      }
      std::uint64_t woken = 0;
      [[maybe_unused]] const auto n = read(wake_.fd(), &woken, sizeof woken);
      lock.lock();
      hear_lines();
      const auto now = LiveClock::now();
      if (now >= next_beat) {
        next_beat = now + std::min<milliseconds>(kBeatEvery, settings_.timeout / 4);
        for (auto& line : lines_) line.send(packed(FrameKind::kBeat));
      }
      look_around(now);
      if (failed_) return end(lock);
      if (leaving_) return leave();
    }
  }

  // A failure is known to the others before this rank acts on it.
  void end(std::unique_lock<std::mutex>& lock) {
    const bool announce = !told_ && settings_.on_failure;
    const std::string text = failure_;
    const bool first_hand = first_hand_;
    part(lines_, LiveClock::now() + kParting);
    parted_ = true;
    changed_.notify_all();
    lock.unlock();
    if (announce) settings_.on_failure(text, first_hand);
  }

  // Goodbye, behind what is still to be sent.
  void leave() {
    for (auto& line : lines_) line.send(packed(FrameKind::kBye));
    const auto deadline = LiveClock::now() + settings_.timeout;
    const auto on_its_way = [](Line& line) {
      line.flush();
      if (line && !line.inbox.read(line.socket.fd())) line = Line();
      return line && (!line.unsent.empty() || !all_arrived(line.socket));
    };
    while (std::count_if(lines_.begin(), lines_.end(), on_its_way) > 0 &&
           LiveClock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
  }

  const RankEnvironment place_;
  const MeetingSettings settings_;
  Socket listener_;
  Socket wake_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Line> lines_;  // rank 0: by rank, none for itself; others: one
  std::uint64_t next_gathering_ = 0;
  std::map<std::uint64_t, Gathering> gatherings_;
  std::map<std::uint64_t, std::vector<std::string>> done_;
  std::optional<std::pair<Seconds, Seconds>> pong_;  // rank 0's time, and ours when it came
  bool failed_ = false;
  bool first_hand_ = false;
  bool told_ = false;
  bool parted_ = false;
  bool leaving_ = false;
  bool left_ = false;  // rank 0 has
  std::string failure_;
};

Seconds Meeting::now() {
  return std::chrono::duration<double>(LiveClock::now().time_since_epoch()).count();
}

Meeting::Meeting(const RankEnvironment& place, MeetingSettings settings)
    : place_(place), settings_(std::move(settings)) {
  lines_ = std::make_unique<Lines>(place_, settings_);
  const auto deadline = LiveClock::now() + settings_.timeout;
  const bool first = place_.rank == 0;
  if (first) {
    Socket listener = listener_at(place_);
    const std::string here = reachable_address() + " " + std::to_string(port_of(listener));
    const bool by_file =
        place_.rendezvous == RankEnvironment::Rendezvous::kFile && place_.ranks > 1;
    if (place_.rendezvous == RankEnvironment::Rendezvous::kMpi && place_.ranks > 1)
      mpi_from_first(here);
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
    if (place_.rendezvous != RankEnvironment::Rendezvous::kAddress) {
      const std::string there = place_.rendezvous == RankEnvironment::Rendezvous::kMpi
                                    ? mpi_from_first("")
                                    : awaited_text(place_.file, deadline);
      const auto space = there.find(' ');
      if (space == std::string::npos) {
        throw NotMet("rank 0 has not come within " + seconds_of(settings_.timeout) +
                         ": it has not written " + place_.file,
                     place_.rank == 1);
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

void Meeting::fail(const std::string& text, milliseconds suspicion) {
  if (lines_->someone_failed(suspicion)) {
    // Whoever is told of failures ends this process.
    if (settings_.on_failure) std::this_thread::sleep_for(10s);
    throw MachineError(lines_->failure());
  }
  lines_->tell_failure(rank_text(rank()) + ": " + text);
}

}  // namespace syncline
