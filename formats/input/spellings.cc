#include "formats/input/spellings.h"

#include "core/collective/nccl.h"
#include "core/fabric/topology.h"

namespace syncline::input {

Spelling<std::string> algorithm() {
  auto names = one_of(collective::algorithm_choices());
  names.schema = {{"allOf", Json::array({{{"$ref", "#/definitions/algorithm"}}})}};
  return names;
}

namespace {

// Returns the ranks below a leaf switch, as the job's nodes are placed.
int ranks_at_a_leaf(const Entry& entry) {
  const Cluster& cluster = entry.setting.cluster;
  if (cluster.nodes == 1) return cluster.gpus_per_node;
  if (cluster.topology != nullptr) {
    return fabric::nodes_at_a_leaf(*cluster.topology) * cluster.gpus_per_node;
  }
  // Without a fabric: the switches of `inter`, if there is a level above them.
  for (const Tier& tier : cluster.tiers) {
    if (tier.name == "inter" && tier.span < cluster.ranks()) return tier.span;
  }
  entry.fail("found \"leaf\", which needs a cluster.fabric or cluster.upper that has leaves");
}

}  // namespace

Spelling<int> ranks_in_a_group(int least) {
  auto spelling = whole<int>(least, kMaxSteps);
  spelling.schema.erase("maximum");
  spelling.schema["type"] = {"integer", "string"};
  spelling.schema["pattern"] = "^leaf$";
  spelling.read = [least](const Entry& entry) {
    if (entry.value == "leaf") return ranks_at_a_leaf(entry);
    const int ranks = entry.setting.cluster.ranks();
    const int size =
        static_cast<int>(checked_integer(entry.value, least, ranks, entry.file, entry.place));
    if (size > 0 && ranks % size != 0) {
      entry.fail("found " + std::to_string(size) + ", expected a divisor of the " +
                 std::to_string(ranks) + " ranks");
    }
    return size;
  };
  return spelling;
}

Spelling<std::vector<std::vector<int>>> groups(bool with_buffers) {
  auto spelling = list_of(list_of(whole<int>(0, kMaxSteps), "at least one place"), "group");
  spelling.schema["items"]["items"].erase("maximum");
  spelling.read = [with_buffers](const Entry& entry) {
    const Workload& workload = entry.setting.workload;
    const std::size_t count =
        workload.tensors.size() + (with_buffers ? workload.buffers.size() : 0);
    std::vector<bool> taken(count, false);
    Spelling<std::vector<int>> group;
    group.read = [&](const Entry& list) {
      if (!list.value.is_array()) {
        list.fail("found " + describe(list.value) + ", expected a list of places");
      }
      const auto place = whole<std::size_t>(0, static_cast<std::int64_t>(count) - 1);
      const auto places = list_of(place, "at least one place").read(list);
      for (const std::size_t at : places) {
        if (taken[at])
          list.fail("found " + std::to_string(at) + " twice, expected each tensor once");
        taken[at] = true;
      }
      return std::vector<int>(places.begin(), places.end());
    };
    return list_of(group, "at least one group").read(entry);
  };
  return spelling;
}

Spelling<std::vector<std::int64_t>> rising_ends() {
  auto spelling = list_of(whole<std::int64_t>(0, kMaxSteps), "at least one end index");
  spelling.schema["uniqueItems"] = true;
  spelling.read = [read = spelling.read](const Entry& entry) {
    auto ends = read(entry);
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (ends[i] > ends[i - 1]) continue;
      entry.fail("found " + std::to_string(ends[i]) + " after " + std::to_string(ends[i - 1]) +
                 ", expected rising indices");
    }
    return ends;
  };
  return spelling;
}

Spelling<Bytes> mebibytes(bool zero_allowed) {
  return number<Bytes>({0, 1e9, !zero_allowed}, static_cast<double>(kMiB));
}

Spelling<Seconds> milliseconds() { return number<Seconds>({0, 1e6}, kMillisecond); }

Spelling<Fusion::Rule> rules() {
  using Rule = Fusion::Rule;
  return words<Rule>({{"none", Rule::kNone},
                      {"layer", Rule::kLayer},
                      {"size", Rule::kSize},
                      {"count", Rule::kCount},
                      {"index", Rule::kIndex},
                      {"groups", Rule::kGroups},
                      {"one", Rule::kOne},
                      {"mg_wfbp", Rule::kMgWfbp}});
}

Spelling<std::int64_t> counts() { return whole<std::int64_t>(1, kMaxSteps); }

Spelling<int> streams() { return whole<int>(1, 64); }

Spelling<Fusion::Close> closes() {
  return words<Fusion::Close>(
      {{"after", Fusion::Close::kAfter}, {"before", Fusion::Close::kBefore}});
}

Spelling<Strategy::Exchange> exchanges() {
  return words<Strategy::Exchange>({{"all_reduce", Strategy::Exchange::kAllReduce},
                                    {"decoupled", Strategy::Exchange::kDecoupled},
                                    {"sharded", Strategy::Exchange::kSharded},
                                    {"sharded_update", Strategy::Exchange::kShardedUpdate}});
}

Spelling<Strategy::Priority> priorities() {
  return words<Strategy::Priority>(
      {{"ready", Strategy::Priority::kReady}, {"layer", Strategy::Priority::kLayer}});
}

}  // namespace syncline::input
