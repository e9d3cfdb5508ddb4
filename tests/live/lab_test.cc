// The lab as data: which links there are, how each is shaped, what each rank is told. What becomes
// of it on a machine is in tests/cli/lab_test.cc.
#include "live/lab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/base/error.h"
#include "tests/support/expect.h"

namespace syncline::live {
namespace {

LabOptions options_of(int ranks, int groups) {
  LabOptions options;
  options.ranks = ranks;
  options.groups = groups;
  options.rate = lab_rate("1gbit", "--rate");
  if (groups > 1) options.uplink = lab_rate("500mbit", "--uplink");
  return options;
}

std::string line_of(const LabCommand& command) {
  std::string line;
  for (const auto& word : command.words) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string after(const LabCommand& command, const std::string& word) {
  const auto at = std::ranges::find(command.words, word);
  return at == command.words.end() || at + 1 == command.words.end() ? "" : *(at + 1);
}

TEST(Lab, RatesAreReadAsTcWritesThem) {
  EXPECT_DOUBLE_EQ(lab_rate("1gbit", "x"), 125e6);
  EXPECT_DOUBLE_EQ(lab_rate("2.5gbit", "x"), 312.5e6);
  EXPECT_DOUBLE_EQ(lab_rate("1Gbps", "x"), 125e6);
  EXPECT_DOUBLE_EQ(lab_rate("100 Mbit/s", "x"), 12.5e6);
  EXPECT_DOUBLE_EQ(lab_rate("500mbit", "x"), 62.5e6);
  EXPECT_DOUBLE_EQ(lab_rate("64kbit", "x"), 8e3);
  for (const char* wrong : {"", "1", "gbit", "1GBps", "-1gbit", "0gbit", "1gbit ", "nangbit",
                            "infgbit", "1bit", "1kbit", "1e9gbit", "200gbit"}) {
    EXPECT_THROW(lab_rate(wrong, "--rate"), InputError) << wrong;
  }
}

TEST(Lab, WrongOptionsAreNamed) {
  const auto said = [](const LabOptions& options) {
    return test::input_error([&] { check_lab(options); });
  };
  EXPECT_EQ(said(options_of(4, 2)), "");
  EXPECT_EQ(said(options_of(1, 1)), "");
  EXPECT_EQ(said(options_of(0, 1)), "--ranks: found 0, expected 1 to 128");
  EXPECT_EQ(said(options_of(129, 1)), "--ranks: found 129, expected 1 to 128");
  EXPECT_EQ(said(options_of(4, 3)), "--groups: found 3, expected a divisor of the 4 ranks");
  EXPECT_EQ(said(options_of(2, 4)).substr(0, 8), "--groups");
  for (const auto& [groups, figure, value, option] :
       {std::tuple(2, &LabOptions::uplink, 0.0, "--uplink"),
        {1, &LabOptions::uplink, 1e6, "--uplink"},
        {1, &LabOptions::queue, 0.0, "--queue"},
        {1, &LabOptions::latency, -1.0, "--latency"}}) {
    LabOptions wrong = options_of(4, groups);
    wrong.*figure = value;
    EXPECT_TRUE(said(wrong).starts_with(option)) << said(wrong);
  }
  LabOptions options = options_of(4, 1);
  options.burst = 100;
  EXPECT_EQ(said(options).substr(0, 7), "--burst");
}

// Every end of every cable, and nothing else, has a bucket of its link's rate.
TEST(Lab, EveryLinkIsShapedInBothDirections) {
  for (const auto& [ranks, groups] : {std::pair(1, 1), {2, 1}, {4, 1}, {4, 2}, {4, 4}, {12, 3}}) {
    const LabOptions options = options_of(ranks, groups);
    std::multiset<std::string> ends;
    std::multiset<std::string> shaped;
    for (const auto& command : plan_lab(options, 2).commands) {
      const std::string line = line_of(command);
      const std::string here = std::to_string(command.where) + " ";
      if (line.find(" type veth ") != std::string::npos) {
        ASSERT_EQ(command.where, LabCommand::kHub);
        ends.insert(here + after(command, "add"));
        const std::string far = after(command, "netns");
        ends.insert((far.empty() ? here : far.substr(1) + " ") + after(command, "name"));
      }
      if (line.starts_with("tc ")) {
        EXPECT_NE(line.find(" root "), std::string::npos) << line;
        const std::string device = after(command, "dev");
        shaped.insert(here + device);
        const bool uplink = device.starts_with("up") || device.starts_with("core");
        EXPECT_EQ(after(command, "rate"), uplink ? "500000000bit" : "1000000000bit") << line;
      }
    }
    EXPECT_EQ(ends, shaped);
    EXPECT_EQ(ends.size(), static_cast<std::size_t>(2 * ranks + (groups > 1 ? 2 * groups : 0)));
  }
}

TEST(Lab, GroupsAreEqualBlocksAtSwitchesOfTheirOwn) {
  const LabOptions options = options_of(6, 3);
  std::vector<std::string> switches(6);
  for (const auto& command : plan_lab(options, 2).commands) {
    const std::string device = after(command, "set");
    const std::string bridge = after(command, "master");
    if (bridge.empty()) continue;
    if (device.starts_with("port")) switches[std::stoul(device.substr(4))] = bridge;
    if (device.starts_with("core")) {
      EXPECT_EQ(bridge, "core");
    }
    if (device.starts_with("up")) {
      EXPECT_EQ(bridge, "switch" + device.substr(2));
    }
  }
  EXPECT_EQ(switches, (std::vector<std::string>{"switch0", "switch0", "switch1", "switch1",
                                                "switch2", "switch2"}));
}

// A packet that is larger than the bucket never gets through it whole.
TEST(Lab, TheLargestPacketFitsIntoEveryBucketAndQueue) {
  for (const char* rate : {"8kbit", "1mbit", "500mbit", "1gbit", "5gbit", "100gbit"}) {
    LabOptions options = options_of(2, 1);
    options.rate = lab_rate(rate, "--rate");
    for (const double queue : {1e-4, 0.05}) {
      options.queue = queue;
      check_lab(options);
      long largest = 0;
      for (const auto& command : plan_lab(options, 2).commands) {
        const std::string segment = after(command, "gso_max_size");
        if (!segment.empty()) largest = std::max(largest, std::stol(segment));
        if (command.words[0] != "tc") continue;
        ASSERT_GT(largest, 0);
        constexpr double kHeaders = 1.05;
        EXPECT_GT(std::stod(after(command, "burst")), kHeaders * static_cast<double>(largest));
        EXPECT_GT(std::stod(after(command, "limit")), 2 * static_cast<double>(largest));
      }
    }
  }
}

// A step computes, then sends: what an idle link lets through for nothing was 5 of the 54 ms that
// an exchange of 340 kB takes at 50 Mbit/s.
TEST(Lab, AnIdleLinkGivesAwayLittleOfItsTime) {
  for (const char* rate : {"50mbit", "200mbit", "500mbit", "1gbit", "5gbit"}) {
    LabOptions options = options_of(2, 1);
    options.rate = lab_rate(rate, "--rate");
    EXPECT_LT(static_cast<double>(lab_burst(options, options.rate)) / options.rate, 0.7e-3) << rate;
  }
}

// A cable of the lab's own, and a window that holds what is under way on it.
TEST(Lab, ALongLinkIsTwoDevicesAndAWideWindow) {
  LabOptions options = options_of(2, 1);
  options.latency = 2.5e-3;
  std::vector<std::string> devices;
  for (const auto& command : plan_lab(options, 2).commands) {
    if (command.words.front() == "tap") devices.push_back(command.words[1]);
    EXPECT_EQ(std::ranges::find(command.words, "veth"), command.words.end());
    if (std::ranges::find(command.words, "initcwnd") == command.words.end()) continue;
    EXPECT_GT(std::stod(after(command, "initcwnd")), options.rate * 2 * options.latency / 1448);
  }
  EXPECT_EQ(devices, (std::vector<std::string>{"eth0", "port0", "eth0", "port1"}));
}

TEST(Lab, EveryFlowKeepsToOneProcessorAtEveryEndOfACable) {
  for (const auto& [processors, mask] : {std::pair(1, "1"),
                                         {2, "3"},
                                         {16, "ffff"},
                                         {32, "ffffffff"},
                                         {33, "1,ffffffff"},
                                         {40, "ff,ffffffff"},
                                         {64, "ffffffff,ffffffff"},
                                         {96, "ffffffff,ffffffff,ffffffff"}}) {
    std::set<std::string> devices;
    for (const auto& setting : plan_lab(options_of(4, 2), processors).settings) {
      if (!setting.path.ends_with("/rps_cpus")) continue;
      EXPECT_EQ(setting.value, mask);
      devices.insert(std::to_string(setting.where) + setting.path);
    }
    EXPECT_EQ(devices.size(), 4u + 4u + 4u);  // ranks, their ports, both ends of two uplinks
  }
}

TEST(Lab, RanksGetTorchrunsEnvironment) {
  const LabOptions options = options_of(4, 2);
  std::set<std::string> addresses;
  std::set<std::string> hosts;
  for (int r = 0; r < 4; ++r) {
    auto told = lab_environment(options, r);
    EXPECT_EQ(told.at("RANK"), std::to_string(r));
    EXPECT_EQ(told.at("WORLD_SIZE"), "4");
    EXPECT_EQ(told.at("LOCAL_RANK"), "0");
    EXPECT_EQ(told.at("LOCAL_WORLD_SIZE"), "1");
    EXPECT_EQ(told.at("MASTER_ADDR"), lab_address(0));
    EXPECT_EQ(told.at("MASTER_PORT"), lab_environment(options, 0).at("MASTER_PORT"));
    hosts.insert(told.at("NCCL_HOSTID"));
    addresses.insert(lab_address(r));
    EXPECT_TRUE(lab_address(r).starts_with("10.77.0."));
  }
  EXPECT_EQ(hosts.size(), 4u);
  EXPECT_EQ(addresses.size(), 4u);
}

}  // namespace
}  // namespace syncline::live
