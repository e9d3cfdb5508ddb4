// The lab's processes: the caller (outside), the keeper (first of a process namespace, in the hub's
// network), and under it ip, tc and the ranks.

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "live/lab.h"
#include "live/messenger.h"
#include "live/processes.h"
#include "live/socket.h"

namespace syncline::live {
namespace {

using PlainJson = nlohmann::json;

[[noreturn]] void refused(const std::string& what) {
  const int reason = errno;
  const bool permission = reason == EPERM || reason == EACCES;
  throw MachineError("lab: " + what + ": " + std::strerror(reason) +
                     (permission ? "; a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)" : ""));
}

using Descriptor = Socket;  // closes its pipe, file or device

// Appends the next piece that can be read; false at the end.
bool read_piece(int descriptor, std::string& text) {
  std::array<char, 4096> piece{};
  const ssize_t got = ::read(descriptor, piece.data(), piece.size());
  if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

std::string all_of(int descriptor) {
  std::string text;
  while (read_piece(descriptor, text)) {
  }
  return text;
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refused("pipe2");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor this_network() {
  Descriptor network(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!network) refused("/proc/self/ns/net");
  return network;
}

void enter(const Descriptor& network) {
  if (::setns(network.fd(), CLONE_NEWNET) != 0) refused("entering a network namespace");
}

// Mounts a /sys that shows the interfaces of this network, not the machine's; control groups stay
// unchanged.
void own_sys() {
  if (::unshare(CLONE_NEWNS) != 0) refused("a mount namespace");
  const Descriptor groups(::open("/sys/fs/cgroup", O_PATH | O_CLOEXEC));
  if (::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) refused("mounting /sys");
  if (!groups) return;
  const std::string was = "/proc/self/fd/" + std::to_string(groups.fd());
  ::mount(was.c_str(), "/sys/fs/cgroup", nullptr, MS_BIND | MS_REC, nullptr);
}

void own_proc() {
  if (::unshare(CLONE_NEWNS) != 0) refused("a mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) refused("mounts of its own");
  if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) refused("mounting /proc");
}

// Owns the namespaces, as descriptors of one process.
class Networks {
 public:
  // `stopped`: seconds for which a command of the lab may be stopped (SIGSTOP).
  Networks(int ranks, double stopped) : stopped_(stopped), hub_(this_network()) {
    for (int r = 0; r < ranks; ++r) {
      if (::unshare(CLONE_NEWNET) != 0) refused("a network namespace");
      ranks_.push_back(this_network());
    }
    enter(hub_);
  }
  const Descriptor& at(int where) const {
    return where == LabCommand::kHub ? hub_ : ranks_.at(static_cast<std::size_t>(where));
  }

  // Writes a setting, in a child process: /sys shows the interfaces of the process that mounted it.
  void set(const LabSetting& setting) const {
    child(setting.where, setting.path + " = " + setting.value, [&] {
      if (setting.path.starts_with("/sys/")) own_sys();
      const Descriptor file(::open(setting.path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!file || ::write(file.fd(), setting.value.data(), setting.value.size()) < 0) {
        throw MachineError(std::strerror(errno));
      }
    });
  }

  // Runs a command inside its namespace.
  void run(const LabCommand& command) const {
    std::vector<std::string> words = command.words;
    std::string line;
    for (auto& word : words) {
      line += (line.empty() ? "" : " ") + word;
      // "@2" is the namespace of rank 2.
      if (word[0] == '@') {
        word = "/proc/" + std::to_string(::getpid()) + "/fd/" +
               std::to_string(at(std::stoi(word.substr(1))).fd());
      }
    }
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Run as root, so the caller's PATH and environment are not used.
    std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    std::string language = "LC_ALL=C";
    char* const environment[] = {path.data(), language.data(), nullptr};
    child(command.where, line, [&] {
      ::signal(SIGPIPE, SIG_DFL);  // ignored here, and exec hands that on
      ::execve(system_program(argv[0]).c_str(), argv.data(), environment);
      throw MachineError(std::string(std::strerror(errno)) + " (Debian: package iproute2)");
    });
  }

  // Returns a device for reading and writing packets here, in pieces as large as TCP's.
  Descriptor tap(const LabCommand& command) const {
    enter(at(command.where));
    Descriptor device(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    command.words[1].copy(request.ifr_name, sizeof request.ifr_name - 1);
    const unsigned offload = TUN_F_CSUM | TUN_F_TSO4;
    const bool made = device && ::ioctl(device.fd(), TUNSETIFF, &request) == 0 &&
                      ::ioctl(device.fd(), TUNSETOFFLOAD, offload) == 0;
    if (!made) refused("--latency needs /dev/net/tun");
    enter(hub_);
    return device;
  }

 private:
  // Does the work in a child process inside that network. Its output on failure becomes the error.
  void child(int where, const std::string& what, const std::function<void()>& work) const {
    Pipe output = make_pipe();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(output.write.fd(), STDERR_FILENO);
      ::dup2(output.write.fd(), STDOUT_FILENO);
      int code = 0;
      try {
        enter(at(where));
        work();
      } catch (const std::exception& error) {
        const std::string wrong = error.what();
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, wrong.data(), wrong.size());
        code = 1;
      }
      ::_exit(code);
    }
    if (pid < 0) refused("fork");
    output.write = Descriptor();
    const std::optional<std::string> text = output_of(pid, output.read);
    if (!text) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return;
    throw MachineError(
        "lab: '" + what + "': " +
        (text ? text->substr(0, text->find('\n')) : "was stopped (SIGSTOP) and did not go on"));
  }

  // Returns everything that the child writes; none if it stays stopped.
  std::optional<std::string> output_of(pid_t child, const Descriptor& output) const {
    constexpr int kLookMs = 100;
    std::string text;
    StopWatch watch(child);
    for (pollfd end{output.fd(), POLLIN, 0};;) {
      if (::poll(&end, 1, kLookMs) > 0) {
        if (!read_piece(output.fd(), text)) return text;
      } else if (const auto since = watch.since(); since && steady_now() > *since + stopped_) {
        return std::nullopt;
      }
    }
  }

  double stopped_;
  Descriptor hub_;
  std::vector<Descriptor> ranks_;
};

// Passes packets between the two devices of each cable, and delays those from the first. Runs in a
// process of its own, with priority over all ranks, which ends with the keeper.
class Delay {
 public:
  Delay(const std::vector<Descriptor>& devices, double seconds)
      : devices_(devices),
        held_for_(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  void start() const {
    const pid_t pid = ::fork();
    if (pid < 0) refused("fork");
    if (pid != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const sched_param first{.sched_priority = 1};
    if (::sched_setscheduler(0, SCHED_FIFO, &first) != 0) ::setpriority(PRIO_PROCESS, 0, -20);
    pass();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    Clock::time_point due;
    int to = -1;
    std::string packet;
  };

  // Passes packets between the two devices of each cable for ever. Packets from the first device
  // are held for the latency.
  [[noreturn]] void pass() const {
    std::vector<pollfd> ends;
    for (const Descriptor& device : devices_) ends.push_back({device.fd(), POLLIN, 0});
    std::deque<Held> held;  // all for the same time: in order
    std::string packet(1 << 17, '\0');
    for (;;) {
      timespec wait{1, 0};
      if (!held.empty()) {
        const auto left = std::max(Clock::duration::zero(), held.front().due - Clock::now());
        wait = {0, std::chrono::nanoseconds(left).count()};
        wait.tv_sec = wait.tv_nsec / 1'000'000'000;
        wait.tv_nsec %= 1'000'000'000;
      }
      ::ppoll(ends.data(), ends.size(), &wait, nullptr);
      for (std::size_t end = 0; end < ends.size(); ++end) {
        const int to = ends[end ^ 1U].fd;
        for (ssize_t got = 0; (got = ::read(ends[end].fd, packet.data(), packet.size())) > 0;) {
          const auto size = static_cast<std::size_t>(got);
          const bool first = end % 2 == 0;
          if (first) held.push_back({Clock::now() + held_for_, to, packet.substr(0, size)});
          if (!first) hand_on(to, packet.data(), size);
        }
      }
      for (; !held.empty() && held.front().due <= Clock::now(); held.pop_front()) {
        hand_on(held.front().to, held.front().packet.data(), held.front().packet.size());
      }
    }
  }

  // Passes a packet on. A device that is down takes none, like a pulled cable.
  static void hand_on(int to, const char* packet, std::size_t size) {
    [[maybe_unused]] const auto written = ::write(to, packet, size);
  }

  const std::vector<Descriptor>& devices_;
  Clock::duration held_for_;
};

// Builds the lab, runs the ranks in it, and cuts links at their times.
JobEnd in_the_lab(const LabRun& run) {
  own_proc();
  const Networks networks(run.options.ranks, run.rules.stopped);
  const auto processors = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  const LabPlan plan = plan_lab(run.options, processors);
  std::vector<Descriptor> devices;  // two per cable
  for (const auto& command : plan.commands) {
    if (command.words.front() == "tap") {
      devices.push_back(networks.tap(command));
    } else {
      networks.run(command);
    }
  }
  if (!devices.empty()) Delay(devices, run.options.latency).start();
  for (const auto& setting : plan.settings) networks.set(setting);

  std::vector<RankCommand> ranks;
  const std::string token = new_token();
  for (int r = 0; r < run.options.ranks; ++r) {
    RankCommand rank;
    rank.words = run.command;
    rank.environment = lab_environment(run.options, r);
    rank.environment.merge(environment_of_user());
    rank.environment["SYNCLINE_TOKEN"] = token;
    rank.before_exec = [&networks, r] {
      enter(networks.at(r));
      own_sys();
      cover_machine();
      drop_rights();
    };
    if (r != 0) rank.out = -1;
    ranks.push_back(std::move(rank));
  }
  ProcessRules rules = run.rules;
  rules.acts.clear();
  for (const auto& cut : run.cuts) {
    rules.acts.push_back({cut.at, [&networks, cut] {
                            const std::string port = "port" + std::to_string(cut.rank);
                            networks.run({LabCommand::kHub, {"ip", "link", "set", port, "down"}});
                          }});
  }
  return run_ranks(ranks, rules);
}

PlainJson to_json(const JobEnd& end) {
  PlainJson json{
      {"interrupted", end.interrupted}, {"stopped", end.stopped}, {"ranks", PlainJson::array()}};
  json["first_failed"] = end.first_failed ? PlainJson(*end.first_failed) : PlainJson();
  for (const auto& rank : end.ranks) {
    json["ranks"].push_back({rank.code, rank.signal, rank.by_us, rank.after});
  }
  return json;
}

JobEnd from_json(const PlainJson& json) {
  JobEnd end;
  end.interrupted = json.at("interrupted");
  end.stopped = json.at("stopped");
  if (!json.at("first_failed").is_null()) end.first_failed = json.at("first_failed");
  for (const auto& rank : json.at("ranks")) {
    end.ranks.push_back({rank.at(0), rank.at(1), rank.at(2), rank.at(3)});
  }
  return end;
}

// Runs the keeper, from its first instruction to its last.
[[noreturn]] void keep(const LabRun& run, Pipe& alive, Pipe& answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  alive.write = Descriptor();
  pollfd gone{alive.read.fd(), POLLIN, 0};
  if (::poll(&gone, 1, 0) != 0) ::_exit(1);  // died before PR_SET_PDEATHSIG
  ::setpgid(0, 0);                           // the caller passes on the terminal's Ctrl-C, once
  answer.read = Descriptor();
  PlainJson result;
  try {
    result = to_json(in_the_lab(run));
  } catch (const InputError& error) {
    result["input"] = error.what();
  } catch (const std::exception& error) {
    result["machine"] = error.what();
  }
  // The words of a command line need not be UTF-8.
  const std::string text = result.dump(-1, ' ', false, PlainJson::error_handler_t::replace);
  [[maybe_unused]] const auto written = ::write(answer.write.fd(), text.data(), text.size());
  ::_exit(0);
}

// Waits for the keeper, and passes on signals that are meant for the ranks. A keeper that is
// stopped (SIGSTOP) can do nothing: it is killed after `stopped` seconds, `grace` after a signal.
// Returns false if it was.
bool wait_for(pid_t keeper, const WaitedSignals& signals, const ProcessRules& rules) {
  constexpr double kWhile = 60;  // seconds
  double allowed = rules.stopped;
  StopWatch watch(keeper);
  while (::waitpid(keeper, nullptr, WNOHANG) == 0) {
    const auto since = watch.since();
    const double left = since ? *since + allowed - steady_now() : kWhile;
    if (left <= 0) {
      ::kill(keeper, SIGKILL);
      ::waitpid(keeper, nullptr, 0);
      return false;
    }
    const int signal = signals.next(std::min(left, kWhile));
    if (signal == 0 || signal == SIGCHLD) continue;
    ::kill(keeper, signal);
    allowed = std::min(allowed, rules.grace);
  }
  return true;
}

}  // namespace

JobEnd run_lab(const LabRun& run) {
  check_lab(run.options);
  Pipe alive = make_pipe();
  Pipe answer = make_pipe();
  // Also in the keeper, from its first moment: a signal during its building waits.
  const WaitedSignals signals;
  std::fflush(nullptr);
  const auto keeper = static_cast<pid_t>(::syscall(
      SYS_clone, CLONE_NEWPID | CLONE_NEWNET | static_cast<unsigned long>(SIGCHLD), 0, 0, 0, 0));
  if (keeper < 0) refused("no namespace");
  if (keeper == 0) keep(run, alive, answer);
  answer.write = Descriptor();
  const bool goes_on = wait_for(keeper, signals, run.rules);
  const PlainJson result = PlainJson::parse(all_of(answer.read.fd()), nullptr, false);
  if (result.is_discarded()) {
    throw MachineError(goes_on ? "lab: its keeper was killed, and every rank with it"
                               : "lab: its keeper was stopped (SIGSTOP) and did not go on; it and "
                                 "every rank were killed");
  }
  if (result.contains("input")) throw InputError(result.at("input"));
  if (result.contains("machine")) throw MachineError(result.at("machine"));
  return from_json(result);
}

}  // namespace syncline::live
