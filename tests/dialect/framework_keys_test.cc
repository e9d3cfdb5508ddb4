// Every key of the frameworks' own lists is read, passed over or named, as it is marked.
#include "formats/dialect/framework_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/dialect/changes.h"
#include "formats/dialect/dialects.h"
#include "tests/support/readings.h"

namespace syncline::dialect {
namespace {

using test::contains;
using Mark = FrameworkKey::Mark;

struct ReadList {
  const char* name;
  Dialect dialect;
  Json around;  // the configuration that the keys go into
  const char* section = nullptr;
};

std::vector<ReadList> read_lists() {
  return {{"pytorch", pytorch_ddp_dialect(), Json::object()},
          {"pytorch.PowerSGDState",
           pytorch_ddp_dialect(),
           {{"comm_hook", "powerSGD_hook"}, {"PowerSGDState", Json::object()}},
           "PowerSGDState"},
          {"fsdp1", fsdp_dialect(), {{"version", 1}, {"units", Json::array()}}},
          {"fsdp2", fsdp_dialect(), {{"version", 2}, {"units", Json::array()}}},
          {"deepspeed", deepspeed_dialect(), {{"zero_optimization", {{"stage", 1}}}}},
          {"deepspeed.zero_optimization",
           deepspeed_dialect(),
           {{"zero_optimization", {{"stage", 1}}}},
           "zero_optimization"},
          {"horovod", horovod_dialect(), Json::object()},
          {"paddle", paddle_dialect(), Json::object()},
          {"paddle.build_strategy",
           paddle_dialect(),
           {{"build_strategy", Json::object()}},
           "build_strategy"},
          {"paddle_dygraph", paddle_dygraph_dialect(), Json::object()},
          {"mindspore", mindspore_dialect(), {{"parallel_mode", "data_parallel"}}}};
}

// What is said of a configuration with this key, if it is one: why it is refused, or the notes.
std::string said_of(const ReadList& list, const std::string& key, const Json& value) {
  Json config = list.around;
  Json& section = list.section == nullptr ? config : config[list.section];
  if (section.contains(key)) return "read";
  if (!key.empty()) section[key] = value;
  const test::Framework framework{list.dialect, test::cluster_of(1, 4)};
  std::string said;
  const std::string refusal = test::input_error([&] {
    const Reading reading = framework.read(config.dump(), test::workload_of({100, 200, 300}));
    for (const std::string& note : reading.notes) said += note + "\n";
  });
  return refusal.empty() ? said : refusal;
}

bool is_removed(const KeyList& list, const std::string& key) {
  return std::ranges::find(list.removed, key) != list.removed.end();
}

TEST(FrameworkKeys, AreReportedAsTheyAreMarked) {
  for (const ReadList& list : read_lists()) {
    const KeyList& known = key_list(list.name);
    ASSERT_GE(known.keys.size(), 5u) << list.name;
    for (const auto& [key, entry] : known.keys) {
      const bool number = entry.usual.is_number();
      const Json other = entry.usual.is_boolean() ? Json(!entry.usual.get<bool>())
                         : number                 ? Json(entry.usual.get<double>() + 1000)
                                                  : Json({{"enabled", true}});
      const std::string said = said_of(list, key, other);
      EXPECT_FALSE(contains(said, "." + key + ": unknown key")) << list.name << " " << key << "\n"
                                                                << said;
      const bool named = contains(said, key) && contains(said, "not modelled");
      if (entry.mark == Mark::kMatters) {
        EXPECT_TRUE(named) << list.name << " " << key << "\n" << said;
      }
      if (entry.mark == Mark::kHarmless && !is_removed(known, key)) {
        EXPECT_EQ(said, said_of(list, "", {})) << list.name << " " << key;
      }
    }
  }
}

// One that the framework has not is refused with the nearest that it has, whoever reads that.
TEST(FrameworkKeys, OneThatTheFrameworkHasNotIsUnknown) {
  for (const ReadList& list : read_lists()) {
    for (const auto& [key, entry] : key_list(list.name).keys) {
      if (key.size() < 10) continue;
      const std::string wrong = key.substr(0, 4) + "x" + key.substr(4);
      if (key_list(list.name).keys.contains(wrong)) continue;
      EXPECT_TRUE(contains(said_of(list, wrong, true), wrong + ": unknown key (did you mean "))
          << list.name << " " << said_of(list, wrong, true);
    }
  }
}

TEST(FrameworkKeys, TheUsualValueChangesNothing) {
  for (const ReadList& list : read_lists()) {
    for (const auto& [key, entry] : key_list(list.name).keys) {
      if (entry.mark != Mark::kMatters || is_removed(key_list(list.name), key)) continue;
      for (const Json& usual : {entry.usual, Json(nullptr)}) {
        EXPECT_EQ(said_of(list, key, usual), said_of(list, "", {})) << list.name << " " << key;
      }
    }
  }
}

TEST(FrameworkKeys, OnesThatTheNewestVersionRefusesAreNamed) {
  const ReadList zero = read_lists()[5];
  EXPECT_TRUE(contains(said_of(zero, "mics_shard_size", 2), "refuses: mics_shard_size"));
  EXPECT_TRUE(contains(said_of(read_lists()[4], "amp", Json{{"enabled", false}}),
                       "deepspeed 0.19.8 has no longer"));
}

// A job of an older version that has such a key may change it; no other is offered one.
TEST(FrameworkKeys, OnesThatTheNewestVersionRefusesAreNotOffered) {
  const Cluster cluster = test::cluster_of(2, 4);
  const auto offers = [&](const Json& zero) {
    const Json config{{"zero_optimization", zero}};
    bool found = false;
    for (const auto& change : deepspeed_dialect().changes(config, cluster)) {
      const Json own = change.patch.value("zero_optimization", Json::object());
      for (const std::string& key : key_list("deepspeed.zero_optimization").removed) {
        found = found || (own.contains(key) && !own[key].is_null());
      }
    }
    return found;
  };
  for (const int stage : {0, 1, 2, 3}) EXPECT_FALSE(offers({{"stage", stage}})) << stage;
  EXPECT_TRUE(offers({{"stage", 3}, {"mics_shard_size", 2}}));
}

}  // namespace
}  // namespace syncline::dialect
