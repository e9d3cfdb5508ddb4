// `syncline lab` on this machine: what ranks find, what becomes of them, and that nothing is left
// however it ends. Skipped, with a sentence, where the machine does not permit a lab.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/expect.h"
#include "tests/support/patience.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;
using test::comes_true;
using test::Scratch;
using test::text_of;
using test::write_text;

// What a rank does in these tests when it must talk to another: this very program, run as the
// command of a lab
// ---------------------------------------------------------------------------------

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

sockaddr_in master() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(std::getenv("MASTER_PORT"))));
  ::inet_pton(AF_INET, std::getenv("MASTER_ADDR"), &address.sin_addr);
  return address;
}

// Takes all that each of the others sends, one after the other, and thanks each for it.
int receive_from(int others) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = master();
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 10;
  if (::listen(listener, others) != 0) return 11;
  for (int i = 0; i < others; ++i) {
    const int peer = ::accept(listener, nullptr, nullptr);
    std::vector<char> buffer(1 << 16);
    while (::recv(peer, buffer.data(), buffer.size(), 0) > 0) {
    }
    ::send(peer, "k", 1, 0);
    ::close(peer);
  }
  return 0;
}

// How long so many bytes take until all have arrived, the connection's time not counted.
double time_to_send(std::size_t bytes) {
  const sockaddr_in address = master();
  int connection = -1;
  for (int i = 0; i < 1000; ++i) {
    connection = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      break;
    }
    ::close(connection);
    connection = -1;
    ::usleep(10000);
  }
  if (connection < 0) std::_Exit(12);
  const double began = now();
  const std::vector<char> content(bytes);
  for (std::size_t sent = 0; sent < bytes;) {
    const ssize_t some = ::send(connection, content.data() + sent, bytes - sent, 0);
    if (some <= 0) std::_Exit(13);
    sent += static_cast<std::size_t>(some);
  }
  ::shutdown(connection, SHUT_WR);
  char thanks = 0;
  if (::recv(connection, &thanks, 1, 0) != 1) std::_Exit(14);
  return now() - began;
}

// Each rank but 0 sends to rank 0 in its turn, and writes down the bytes per second.
int transfers(const std::string& folder) {
  const int rank = std::atoi(std::getenv("RANK"));
  const int world = std::atoi(std::getenv("WORLD_SIZE"));
  if (rank == 0) return receive_from(world - 1);
  const std::string before = folder + "/" + std::to_string(rank - 1);
  for (int i = 0; rank > 1 && !fs::exists(before); ++i) {
    if (i == 3000) return 15;
    ::usleep(10000);
  }
  const auto bytes = static_cast<std::size_t>(std::atol(std::getenv("SYNCLINE_TEST_BYTES")));
  const double rate = static_cast<double>(bytes) / time_to_send(bytes);
  std::ofstream(folder + "/writing" + std::to_string(rank)) << rate;
  fs::rename(folder + "/writing" + std::to_string(rank), folder + "/" + std::to_string(rank));
  return 0;
}

const bool kIsARank = [] {
  const char* folder = std::getenv("SYNCLINE_TEST_TRANSFERS");
  if (folder != nullptr) std::_Exit(transfers(folder));
  return false;
}();

// The lab under test
// -------------------------------------------------------------------------------

// A lab under way.
class Lab : public test::Program {
 public:
  explicit Lab(std::vector<std::string> words, const test::Variables& environment = {},
               const std::function<void()>& prepare = {})
      : Program(in_lab(std::move(words)), environment, prepare) {}

  int code() {  // 128 + signal where one ended it
    const test::Ran ran = wait_for_program();
    return ran.signal > 0 ? 128 + ran.signal : ran.code;
  }

 private:
  static std::vector<std::string> in_lab(std::vector<std::string> words) {
    words.insert(words.begin(), "lab");
    return test::syncline_words(words);
  }
};

// Ranks that send to each other, and write down into the folder how fast.
std::vector<std::string> sending(std::vector<std::string> options, const Scratch& folder,
                                 const std::string& bytes) {
  return test::joined(
      std::move(options),
      {"--", "env", "SYNCLINE_TEST_TRANSFERS=" + folder.folder(), "SYNCLINE_TEST_BYTES=" + bytes,
       fs::read_symlink("/proc/self/exe").string()});
}

std::set<std::string> interfaces() {
  std::set<std::string> names;
  struct if_nameindex* all = ::if_nameindex();
  for (auto* one = all; one != nullptr && one->if_index != 0; ++one) names.insert(one->if_name);
  ::if_freenameindex(all);
  return names;
}

// Processes whose command line has this word; processes in this network namespace.
int processes_with(const std::string& word, const std::string& network) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    std::ifstream in(entry.path() / "cmdline");
    std::stringstream line;
    line << in.rdbuf();
    const bool named = line.str().find(word) != std::string::npos;
    const fs::path its = fs::read_symlink(entry.path() / "ns/net", ignored);
    count += named || (!network.empty() && its == network);
  }
  return count;
}

class LabVerb : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string refusal = [] {
      Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "true"});
      return lab.code() == 3 ? lab.err() : "";
    }();
    // What a machine may lack; anything else is a fault of ours and must be seen.
    for (const char* lack : {"needs root", "package iproute2", "qdisc kind is unknown",
                             "not permitted", "Unknown device type"}) {
      if (refusal.find(lack) != std::string::npos) {
        GTEST_SKIP() << "this machine permits no network lab: " << refusal;
      }
    }
  }

  // A word that stands in the command line of every process of this test's labs.
  std::string mark() const { return scratch.folder() + "/mark"; }
  // Every rank leaves a process behind that no process group holds, says where it is, and stays.
  std::string lingering() const {
    const std::string here = scratch.folder();
    return "setsid sh -c 'sleep 1000; : " + mark() + "' & readlink /proc/self/ns/net > " + here +
           "/$RANK.new; mv " + here + "/$RANK.new " + here + "/$RANK; ";
  }
  bool all_started(int ranks) const {
    return comes_true([&] {
      for (int r = 0; r < ranks; ++r) {
        if (!fs::exists(scratch.path(std::to_string(r)))) return false;
      }
      return true;
    });
  }
  void expect_nothing_left(int ranks, const std::set<std::string>& interfaces_before) const {
    EXPECT_EQ(interfaces(), interfaces_before);
    std::set<std::string> networks;
    for (int r = 0; r < ranks; ++r) {
      std::string network = text_of(scratch.path(std::to_string(r)));
      ASSERT_FALSE(network.empty()) << r;
      network.pop_back();
      networks.insert(network);
      EXPECT_TRUE(comes_true([&] { return processes_with(mark(), network) == 0; })) << network;
    }
    EXPECT_EQ(networks.size(), static_cast<std::size_t>(ranks));
    EXPECT_EQ(networks.count(fs::read_symlink("/proc/self/ns/net").string()), 0u);
  }

  Scratch scratch;
};

TEST_F(LabVerb, EveryRankIsAMachineOfItsOwn) {
  const std::string here = scratch.folder();
  Lab lab({"--ranks", "3", "--rate", "1gbit", "--", "sh", "-c",
           "{ echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR; "
           "ls /sys/class/net | tr '\\n' ' '; ip -br -4 address show eth0; "
           "ip -br link show lo; ip route; } > " +
               here +
               "/$RANK; "
               "echo out $RANK; echo err $RANK >&2"});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  EXPECT_EQ(lab.out(), "out 0\n");
  for (int r = 0; r < 3; ++r) {
    const std::string rank = std::to_string(r);
    EXPECT_TRUE(test::says(lab.err(), "err " + rank + "\n"));
    const std::string found = text_of(scratch.path(rank));
    EXPECT_EQ(found.substr(0, found.find('\n')), rank + "/3 0/1 10.77.0.1");
    EXPECT_TRUE(
        test::says(found, "10.77.0." + std::to_string(r + 1) + "/16", "eth0 lo ", "LOOPBACK,UP"));
    EXPECT_TRUE(test::lacks(found, "default")) << "a way out";
  }
}

TEST_F(LabVerb, ItsRanksHaveNoRightsOverTheMachine) {
  const std::string file = scratch.path("found");
  Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "sh", "-c",
           "{ ip link set eth0 down && echo down; ip link add x type dummy && echo added; "
           "mount -t tmpfs none /mnt && echo mounted; mknod " +
               scratch.path("null") + " c 1 3 && echo made; chown 1:1 " + file +
               " && echo owned; unshare -n true && echo unshared;"
               "grep ^Cap /proc/self/status; } > " +
               file + " 2>/dev/null"});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  const std::string found = text_of(file);
  EXPECT_TRUE(test::lacks(found, "down", "added", "mounted", "made", "unshared"));
  EXPECT_TRUE(test::says(found, "owned")) << "root's files stay root's";
  for (const char* set : {"CapEff:", "CapPrm:", "CapBnd:"}) {
    const auto at = found.find(set);
    ASSERT_NE(at, std::string::npos) << found;
    const auto rights = std::stoull(found.substr(at + 7), nullptr, 16);
    // Of files 0 to 4, of memory 14, of priorities 23.
    EXPECT_EQ(rights & ~0x80401fULL, 0U) << found;
  }
}

// Capabilities are not asked where a file is root's and root opens it: such files are out of reach.
TEST_F(LabVerb, ItsRanksOpenNothingThatSetsTheMachineUp) {
  const std::string file = scratch.path("found");
  Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "sh", "-c",
           "{ for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /dev/kmsg /dev/mem "
           "/sys/kernel/mm/ksm/run $(find /sys/fs/cgroup -name release_agent) "
           "$(find /sys/block -mindepth 1 -maxdepth 1 -printf '/dev/%f '); "
           "do (exec 3>>$f) && echo open $f; done; "
           "mkdir /sys/fs/cgroup/x && echo grouped; mount -o remount,rw /sys && echo remounted; "
           "echo text >/dev/null && head -c 2 /dev/zero | wc -c; echo text >/dev/shm/$$ && "
           "rm /dev/shm/$$ && echo shared; cat /proc/sys/kernel/ostype; } > " +
               file + " 2>/dev/null"});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  EXPECT_EQ(text_of(file), "2\nshared\nLinux\n");
}

// A folder with a system in it has these files once more.
TEST_F(LabVerb, ItsRanksOpenNoCopyOfTheseFiles) {
  const std::string file = scratch.path("found");
  std::vector<std::string> mounted, asked;
  for (const auto& [kind, below] : std::initializer_list<std::pair<const char*, const char*>>{
           {"proc", "sys/kernel/core_pattern"},
           {"sysfs", "kernel/mm/ksm/run"},
           {"devtmpfs", "kmsg"}}) {
    const std::string place = scratch.path(kind);
    fs::create_directory(place);
    if (::mount(kind, place.c_str(), kind, 0, nullptr) != 0) continue;
    mounted.push_back(place);
    asked.push_back(place + "/" + below);
  }
  std::string files;
  for (const std::string& name : asked) files += " " + name;
  Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "sh", "-c",
           "{ for f in" + files + "; do [ -e $f ] && echo there; (exec 3>>$f) && echo open $f; " +
               "done; true; } > " + file + " 2>/dev/null"});
  const int code = lab.code();
  for (const std::string& place : mounted) ::umount2(place.c_str(), MNT_DETACH);
  EXPECT_EQ(code, 0) << lab.err();
  if (mounted.empty()) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_TRUE(test::says(text_of(file), "there"));
  EXPECT_TRUE(test::lacks(text_of(file), "open"));
}

TEST_F(LabVerb, ItsRanksMakeNoUserNamespace) {
  const std::string file = scratch.path("found");
  Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "sh", "-c",
           "{ unshare -U true && echo named; unshare -r mount -t tmpfs none /mnt && echo mounted; "
           "nsenter -t $$ -U true && echo entered; sh -c 'sleep 0 & wait' && echo forked; } > " +
               file + " 2>/dev/null"});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  EXPECT_EQ(text_of(file), "forked\n");
}

TEST_F(LabVerb, UnderSudoItsRanksAreWhoeverCalledIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  ASSERT_EQ(::chmod(scratch.folder().c_str(), 0777), 0);
  const std::string file = scratch.path("found");
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--", "sh", "-c",
           "{ echo $(id -u):$(id -g) $USER $SYNCLINE_TEST_KEPT; grep ^CapEff "
           "/proc/self/status; } > " +
               file + "$RANK"},
          {{"SUDO_UID", "65534"}, {"SUDO_GID", "65534"}, {"SYNCLINE_TEST_KEPT", "as it was"}});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  EXPECT_EQ(text_of(file + "1"), "65534:65534 nobody as it was\nCapEff:\t0000000000000000\n");
}

TEST_F(LabVerb, IsBuiltByTheSystemsProgramsWhateverPathSays) {
  for (const char* name : {"ip", "tc"}) {
    const std::string file = scratch.path(name);
    write_text(file, "#!/bin/sh\ntouch " + scratch.path("taken") + "\n");
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  }
  Lab lab({"--ranks", "1", "--rate", "1gbit", "--", "true"},
          {{"PATH", scratch.folder() + ":" + std::getenv("PATH")}});
  EXPECT_EQ(lab.code(), 0) << lab.err();
  EXPECT_FALSE(fs::exists(scratch.path("taken")));
}

TEST_F(LabVerb, EndsAsItsRanksEnd) {
  const auto before = interfaces();
  {
    Lab lab({"--ranks", "2", "--rate", "1gbit", "--", "sh", "-c", lingering()});
    EXPECT_EQ(lab.code(), 0) << lab.err();
    expect_nothing_left(2, before);
  }
  const std::string ready = scratch.path("ready");
  const std::string told = scratch.path("told");
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--patience", "0.1", "--", "sh", "-c",
           lingering() + "[ $RANK = 1 ] && { while [ ! -e " + ready +
               " ]; do sleep 0.01; done; exit 7; }; trap 'touch " + told +
               "; exit 3' TERM; touch " + ready + "; while :; do sleep 0.05; done; : " + mark()});
  EXPECT_EQ(lab.code(), 7);
  EXPECT_TRUE(fs::exists(told)) << "rank 0 was not asked to end";
  EXPECT_TRUE(test::says(lab.err(), "syncline: lab: rank 1 ended with exit code 7"));
  expect_nothing_left(2, before);
}

TEST_F(LabVerb, EndsWhenAllItsRanksAreStopped) {
  const auto before = interfaces();
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--patience", "0.3", "--", "sh", "-c",
           lingering() + "kill -STOP $$; : " + mark()});
  EXPECT_EQ(lab.code(), 3) << lab.err();
  EXPECT_TRUE(test::says(lab.err(), "all ranks were stopped (SIGSTOP)"));
  expect_nothing_left(2, before);
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::istringstream list(text_of(folder + "/task/" + std::to_string(process) + "/children"));
  return {std::istream_iterator<pid_t>(list), {}};
}

TEST_F(LabVerb, EndsWhenItsKeeperIsStopped) {
  const auto before = interfaces();
  for (const bool interrupted : {false, true}) {
    for (const char* rank : {"0", "1"}) fs::remove(scratch.path(rank));
    Lab lab({"--ranks", "2", "--rate", "1gbit", "--patience", interrupted ? "1000" : "0.3",
             "--grace", "0.3", "--", "sh", "-c", lingering() + "sleep 1000; : " + mark()});
    ASSERT_TRUE(all_started(2));
    const std::vector<pid_t> keepers = children_of(lab.pid());
    ASSERT_EQ(keepers.size(), 1u);
    ::kill(keepers[0], SIGSTOP);
    if (interrupted) ::kill(lab.pid(), SIGINT);
    EXPECT_EQ(lab.code(), 3) << lab.err();
    EXPECT_TRUE(test::says(lab.err(), "its keeper was stopped (SIGSTOP)")) << lab.err();
    expect_nothing_left(2, before);
  }
}

TEST_F(LabVerb, EndsWhenACommandOfItsBuildingIsStopped) {
  const auto before = interfaces();
  Lab lab({"--ranks", "40", "--rate", "1gbit", "--patience", "0.3", "--", "sh", "-c",
           lingering() + "sleep 1000; : " + mark()});
  // The keeper's children are ip and tc until the ranks start; most live for a millisecond.
  const auto stops_one = [&] {
    for (const pid_t keeper : children_of(lab.pid())) {
      for (const pid_t child : children_of(keeper)) {
        const std::string folder = "/proc/" + std::to_string(child);
        const std::string name = text_of(folder + "/comm");
        if (name != "ip\n" && name != "tc\n") continue;
        ::kill(child, SIGSTOP);
        ::usleep(1000);
        if (text_of(folder + "/stat").find(") T ") != std::string::npos) return true;
      }
    }
    return fs::exists(scratch.path("0"));
  };
  while (!stops_one()) {
  }
  EXPECT_EQ(lab.code(), 3) << lab.err();
  EXPECT_TRUE(test::says(lab.err(), "was stopped (SIGSTOP) and did not go on")) << lab.err();
  expect_nothing_left(0, before);
}

TEST_F(LabVerb, LeavesNothingHoweverItIsEnded) {
  const auto before = interfaces();
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    for (const char* rank : {"0", "1", "2", "3"}) fs::remove(scratch.path(rank));
    Lab lab({"--ranks", "4", "--groups", "2", "--uplink", "100mbit", "--rate", "1gbit", "--grace",
             "0.1", "--", "sh", "-c",
             lingering() + "trap '' INT TERM; while :; do sleep 0.1; done; : " + mark()});
    ASSERT_TRUE(all_started(4)) << lab.err();
    EXPECT_EQ(interfaces(), before) << "the lab is to be seen from outside";
    EXPECT_GE(processes_with(mark(), ""), 4);
    lab.signal(signal);
    EXPECT_EQ(lab.code(), 128 + signal) << lab.err();
    expect_nothing_left(4, before);
  }
}

TEST_F(LabVerb, TwoAtOnceDoNotMeet) {
  const Scratch other;
  const std::vector<std::string> options{"--ranks", "2", "--rate", "100mbit"};
  // The same addresses, the same port, the same moment.
  Lab one(sending(options, scratch, "200000"));
  Lab two(sending(options, other, "200000"));
  EXPECT_EQ(one.code(), 0) << one.err();
  EXPECT_EQ(two.code(), 0) << two.err();
  EXPECT_FALSE(text_of(scratch.path("1")).empty());
  EXPECT_FALSE(text_of(other.path("1")).empty());
}

// An upper bound that no loaded machine can break, and a wide lower one.
TEST_F(LabVerb, TheUplinkIsTheSlowerTier) {
  Lab lab(sending({"--ranks", "4", "--groups", "2", "--rate", "1gbit", "--uplink", "8mbit"},
                  scratch, "500000"));
  ASSERT_EQ(lab.code(), 0) << lab.err();
  constexpr double kUplink = 1e6;  // bytes per second
  constexpr double kFree = 1.25;   // what the bucket lets through at once
  EXPECT_GT(std::stod(text_of(scratch.path("1"))), 2 * kUplink);  // a neighbour
  EXPECT_LT(std::stod(text_of(scratch.path("2"))), kFree * kUplink);
  EXPECT_LT(std::stod(text_of(scratch.path("3"))), kFree * kUplink);
}

TEST_F(LabVerb, ACutPullsOneCable) {
  const std::string carrier = "/sys/class/net/eth0/carrier";
  Lab lab({"--ranks", "3", "--rate", "1gbit", "--cut", "1@0.2", "--", "sh", "-c",
           "if [ $RANK = 1 ]; then i=0; while [ $(cat " + carrier +
               ") = 1 ]; do "
               "i=$((i + 1)); [ $i = 400 ] && exit 9; sleep 0.05; done; touch " +
               scratch.path("pulled") + "; else i=0; while [ ! -e " + scratch.path("pulled") +
               " ]; do i=$((i + 1)); [ $i = 400 ] && exit 8; "
               "sleep 0.05; done; [ $(cat " +
               carrier + ") = 1 ]; fi"});
  EXPECT_EQ(lab.code(), 0) << lab.err();
}

TEST_F(LabVerb, WithoutTheRightsItSaysSo) {
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--", "true"}, {},
          [] { ::prctl(PR_CAPBSET_DROP, 21 /* CAP_SYS_ADMIN */, 0, 0, 0); });
  EXPECT_EQ(lab.code(), 3);
  EXPECT_TRUE(test::says(lab.err(), "a lab needs root"));
}

TEST_F(LabVerb, TakesItsToolsFromFixedPlaces) {
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--", "/bin/true"}, {{"PATH", "/nowhere"}});
  EXPECT_EQ(lab.code(), 0) << lab.err();
}

// There and back takes twice the latency at the least.
TEST_F(LabVerb, MessagesTakeTheLatency) {
  Lab lab(sending({"--ranks", "2", "--rate", "1gbit", "--latency", "2"}, scratch, "10000"));
  if (lab.code() == 3) {
    EXPECT_TRUE(test::says(lab.err(), "--latency needs /dev/net/tun"));
    return;
  }
  ASSERT_FALSE(text_of(scratch.path("1")).empty()) << lab.err();
  constexpr double kThereAndBack = 4e-3;
  EXPECT_LT(std::stod(text_of(scratch.path("1"))), 10000 / kThereAndBack);
}

TEST_F(LabVerb, ACommandThatIsNotThere) {
  Lab lab({"--ranks", "2", "--rate", "1gbit", "--", "no-such-program-of-syncline"});
  EXPECT_EQ(lab.code(), 2);
  EXPECT_EQ(lab.err(),
            "syncline: 'no-such-program-of-syncline' cannot be run: No such file or directory\n");
}

TEST(LabOptionsOfTheVerb, WrongOnesEndInOneLineAndCodeTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--ranks", "0", "--rate", "1gbit", "--", "true"}, "--ranks: found 0"},
      {{"--ranks", "2", "--rate", "1", "--", "true"}, "--rate: found '1'"},
      {{"--ranks", "2", "--", "true"}, "--rate is missing"},
      {{"--ranks", "2", "--rate", "1gbit"}, "COMMAND is missing"},
      {{"--ranks", "4", "--groups", "3", "--rate", "1gbit", "--", "true"}, "--groups: found 3"},
      {{"--ranks", "4", "--groups", "2", "--rate", "1gbit", "--", "true"}, "--uplink: missing"},
      {{"--rate", "1gbit", "--cut", "2@1", "--", "true"}, "--cut: found rank 2"},
      {{"--rate", "1gbit", "--cut", "1", "--", "true"}, "--cut: found '1'"},
      {{"--rate", "1gbit", "--cut", "1@soon", "--", "true"}, "--cut: found '1@soon'"},
      {{"--rate", "1gbit", "--cut", "1@-1", "--", "true"}, "--cut: found '1@-1'"},
  };
  for (const auto& [words, message] : wrong) {
    Lab lab(words);
    EXPECT_EQ(lab.code(), 2) << message;
    const std::string said = lab.err();
    EXPECT_TRUE(test::says(said, message));
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
    EXPECT_EQ(lab.out(), "");
  }
}

}  // namespace
}  // namespace syncline::cli
