//     rank 0            hub namespace                                       rank 2
//     eth0 =tbf======= port0 \                                        / port2 =======tbf= eth0
//             rate      tbf=   switch0 - up0 =tbf= core0 - core ...  /   =tbf    rate
//     eth0 =tbf======= port1 /              uplink
//
// A token bucket (tc tbf) shapes each direction of a link: sent bytes as they leave the rank,
// received bytes as they leave the switch. Each of several groups has a switch, joined to the core
// switch by an uplink that is shaped in both directions too.
//
// The lab has no names outside: its namespaces are anonymous, and one process holds them, the first
// of a process namespace. If that process dies, the kernel ends the whole lab with all its
// processes. The kernel also kills it if the process that runs the lab dies. So no cleaning up is
// needed, even after SIGKILL.
//
// A rank has its own /proc, /sys and /dev: they show the lab's processes and interfaces, and do not
// configure the machine. It shares all other files. No route leads out. Its command has the
// caller's environment and none of the rights that built the lab (live/lab.h). ip and tc are the
// system's, not those of PATH.
#include "live/lab.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace syncline::live {
namespace {

constexpr int kMaxLabRanks = 128;
constexpr double kSlowest = 1e3;     // bytes per second; tc counts in whole bits per second
constexpr double kFastest = 12.5e9;  // 100 Gbit/s

// The largest packet that TCP hands to a link in one piece, before it is cut to the wire's size.
// The bucket passes it at once, so it bounds how smooth a link is. Smaller packets need more of a
// processor, but slow links carry few.
constexpr double kSegment = 100e-6;      // seconds of the slowest link
constexpr double kMaxSegment = 65536;    // bytes; IPv4 has no larger ones
constexpr double kCheapSegment = 16384;  // bytes, unless they take longer than kSlowSegment
constexpr double kSlowSegment = 270e-6;  // seconds
constexpr double kMinSegment = 1600;     // bytes: one packet of the wire

// Limit of a flow's data in flight, in seconds of the slowest link: the receiver's window. Several
// flows into one link then fit into its queue (--queue) without drops. A receiver that gets no
// processor for some milliseconds does not stop its sender.
constexpr double kWindow = 0.01;
constexpr double kMinWindow = 65536;  // bytes
// Limit of a flow's data in the queue of its own link, in seconds: other messages wait for it.
constexpr double kUnsent = 0.001;
constexpr double kMinUnsent = 65536;  // bytes

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

std::string bits(double bytes_per_second) { return number(bytes_per_second * 8) + "bit"; }

double slowest(const LabOptions& options) {
  return options.groups > 1 ? std::min(options.rate, options.uplink) : options.rate;
}

std::int64_t segment(const LabOptions& options) {
  const double rate = slowest(options);
  const double least = std::clamp(rate * kSlowSegment, kMinSegment, kCheapSegment);
  return std::llround(std::clamp(rate * kSegment, least, kMaxSegment));
}

// Returns the bytes that can wait in the queue, besides the packets that pass at once.
std::int64_t queue_bytes(const LabOptions& options, double rate) {
  return std::max(std::llround(rate * options.queue), 4LL * segment(options));
}

class Planner {
 public:
  Planner(const LabOptions& options, int processors)
      : options_(options), all_processors_(mask(processors)) {}

  LabPlan plan() {
    const bool tiers = options_.groups > 1;
    if (tiers) add_switch("core");
    for (int g = 0; g < options_.groups; ++g) {
      add_switch(switch_of(g));
      if (tiers) add_uplink(g);
    }
    for (int r = 0; r < options_.ranks; ++r) add_rank(r);
    return std::move(plan_);
  }

 private:
  // Returns a set of processors as the kernel reads it: hexadecimal, in groups of 32 bits.
  static std::string mask(int processors) {
    constexpr int kGroup = 32;
    const int full = (processors - 1) / kGroup;
    char first[32];
    std::snprintf(first, sizeof first, "%llx", (1ULL << (processors - full * kGroup)) - 1);
    std::string text = first;
    for (int g = 0; g < full; ++g) text += ",ffffffff";
    return text;
  }

  static std::string switch_of(int group) { return "switch" + std::to_string(group); }

  void run(int where, const std::string& line) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t space = std::min(line.find(' ', at), line.size());
      words.push_back(line.substr(at, space - at));
      at = space + 1;
    }
    plan_.commands.push_back({where, std::move(words)});
  }

  void add_switch(const std::string& name) {
    run(kHub, "ip link add " + name + " type bridge stp_state 0 mcast_snooping 0");
    run(kHub, "ip link set " + name + " addrgenmode none");
    run(kHub, "ip link set " + name + " up");
  }

  // Connects a port to a switch, shaped in the direction away from it, and starts it.
  void add_port(const std::string& port, const std::string& bridge, double rate) {
    run(kHub, "ip link set " + port + " addrgenmode none");
    run(kHub, "ip link set " + port + " master " + bridge);
    shape(kHub, port, rate);
    run(kHub, "ip link set " + port + " up");
    in_order(kHub, port);
  }

  void add_cable(const std::string& one, const std::string& other) {
    const std::string queues = " numtxqueues 1 numrxqueues 1";
    run(kHub, "ip link add " + one + queues + " type veth peer name " + other + queues);
  }

  void shape(int where, const std::string& device, double rate) {
    run(where, "ip link set " + device + " gso_max_size " + std::to_string(segment(options_)));
    run(where, "tc qdisc add dev " + device + " root handle 1: tbf rate " + bits(rate) + " burst " +
                   std::to_string(lab_burst(options_, rate)) + " limit " +
                   std::to_string(queue_bytes(options_, rate)));
  }

  void add_uplink(int group) {
    const std::string below = "up" + std::to_string(group);
    const std::string above = "core" + std::to_string(group);
    add_cable(below, above);
    add_port(below, switch_of(group), options_.uplink);
    add_port(above, "core", options_.uplink);
  }

  void add_rank(int rank) {
    const std::string port = "port" + std::to_string(rank);
    if (options_.latency > 0) {
      run(rank, "tap eth0");
      run(kHub, "tap " + port);
    } else {
      add_cable(port, "eth0 netns @" + std::to_string(rank));
    }
    add_port(port, switch_of(lab_group(options_, rank)), options_.rate);
    run(rank, "ip link set lo up");
    run(rank, "ip link set eth0 addrgenmode none");
    run(rank, "ip address add " + lab_address(rank) + "/16 dev eth0");
    shape(rank, "eth0", options_.rate);
    run(rank, "ip link set eth0 up");
    if (options_.latency > 0) begin_fast(rank);
    in_order(rank, "eth0");
    set_tcp(rank);
  }

  // Sets TCP the same on all machines, so that their figures compare.
  void set_tcp(int rank) {
    const auto set = [&](const std::string& name, const std::string& value) {
      plan_.settings.push_back({rank, "/proc/sys/net/ipv4/" + name, value});
    };
    // Every kernel has it, and every namespace may choose it.
    set("tcp_congestion_control", "reno");
    const double rate = slowest(options_);
    const std::string whole = number(window());
    if (options_.latency == 0) {
      set("tcp_rmem", "4096 65536 " + whole);
    } else {
      // Wide from the first message on. The kernel uses half of a buffer for itself.
      const std::string twice = number(2 * window());
      set("tcp_rmem", "4096 " + twice + " " + twice);
      set("tcp_wmem", "4096 " + twice + " " + twice);
      set("tcp_slow_start_after_idle", "0");
    }
    set("tcp_limit_output_bytes", number(std::max(rate * kUnsent, kMinUnsent)));
  }

  // Keeps each flow on one processor. Packets that leave a queue on different processors would
  // overtake each other on the far side, and TCP would send them twice.
  void in_order(int where, const std::string& device) {
    plan_.settings.push_back(
        {where, "/sys/class/net/" + device + "/queues/rx-0/rps_cpus", all_processors_});
  }

  // Returns the bytes in flight of a flow: for both directions, and for some time in queues.
  double window() const {
    return std::max(slowest(options_) * (kWindow + 2 * options_.latency), kMinWindow);
  }

  // Lets a long link carry its full rate from the first message on, without TCP's slow start.
  void begin_fast(int rank) {
    constexpr double kPacket = 1448;  // bytes of payload
    const std::string packets = number(std::ceil(window() / kPacket));
    run(rank, "ip route change 10.77.0.0/16 dev eth0 src " + lab_address(rank) + " initcwnd " +
                  packets + " initrwnd " + packets);
  }

  static constexpr int kHub = LabCommand::kHub;
  const LabOptions& options_;
  std::string all_processors_;
  LabPlan plan_;
};

void check_range(const std::string& option, double value, double least, double most,
                 const std::string& unit, double scale) {
  if (value >= least && value <= most) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s: found %g, expected %g to %g%s", option.c_str(),
                value * scale, least * scale, most * scale, unit.c_str());
  throw InputError(text);
}

}  // namespace

double lab_rate(const std::string& text, const std::string& what) {
  constexpr double kBitsPerByte = 8;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit = *end == ' ' ? end + 1 : end;
  const bool bytes = unit.find('B') != std::string::npos;  // GB/s is eight times as much
  for (char& letter : unit) {
    if (!bytes) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  for (const char* ending : {"bps", "bit/s"}) {
    if (unit.ends_with(ending)) unit = unit.substr(0, unit.size() - std::strlen(ending)) + "bit";
  }
  const double factor = unit == "gbit" ? 1e9 : unit == "mbit" ? 1e6 : unit == "kbit" ? 1e3 : 0;
  if (end == text.c_str() || factor == 0 || !std::isfinite(value) || value <= 0) {
    throw InputError(what + ": found '" + text +
                     "', expected a number with kbit, mbit or gbit, such as 1gbit");
  }
  const double rate = value * factor / kBitsPerByte;
  if (rate < kSlowest || rate > kFastest) {
    throw InputError(what + ": found '" + text + "', expected 8kbit to 100gbit");
  }
  return rate;
}

void check_lab(const LabOptions& options) {
  check_range("--ranks", options.ranks, 1, kMaxLabRanks, "", 1);
  check_range("--groups", options.groups, 1, options.ranks, ", the number of ranks", 1);
  if (options.ranks % options.groups != 0) {
    throw InputError("--groups: found " + std::to_string(options.groups) +
                     ", expected a divisor of the " + std::to_string(options.ranks) + " ranks");
  }
  if (options.groups > 1 && options.uplink <= 0) {
    throw InputError("--uplink: missing, expected the rate between the groups, such as 500mbit");
  }
  if (options.groups == 1 && options.uplink > 0) {
    throw InputError("--uplink: there is none with one group; expected --groups 2 or more");
  }
  check_range("--latency", options.latency, 0, 1, " ms", 1e3);
  check_range("--queue", options.queue, 1e-4, 1, " ms", 1e3);
  if (options.burst != 0) {
    check_range("--burst", static_cast<double>(options.burst), 2000, 1 << 24, " bytes", 1);
  }
}

std::int64_t lab_burst(const LabOptions& options, double rate) {
  if (options.burst != 0) return options.burst;
  // Two segments, and the bytes of the time by which the bucket's timer may be late.
  constexpr double kLate = 100e-6;  // seconds
  return 2 * segment(options) + std::llround(rate * kLate);
}

LabPlan plan_lab(const LabOptions& options, int processors) {
  return Planner(options, processors).plan();
}

int lab_group(const LabOptions& options, int rank) {
  return rank / (options.ranks / options.groups);
}

std::string lab_address(int rank) { return "10.77.0." + std::to_string(rank + 1); }

std::map<std::string, std::string> lab_environment(const LabOptions& options, int rank) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(options.ranks)},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},
          {"MASTER_ADDR", lab_address(0)},
          // Rank 0's namespace is new: all its ports are free, and this one is below the range that
          // the kernel assigns (32768 and up).
          {"MASTER_PORT", "29500"},
          {"GLOO_SOCKET_IFNAME", "eth0"},
          {"NCCL_SOCKET_IFNAME", "eth0"},
          // Otherwise NCCL takes the ranks for one machine and bypasses the network.
          {"NCCL_HOSTID", "lab-rank" + std::to_string(rank)}};
}

}  // namespace syncline::live
