#include "formats/input/conflicts.h"

#include <algorithm>
#include <numeric>

#include "core/algorithm.h"
#include "core/codec.h"
#include "core/collective/nccl.h"
#include "core/plan/pipeline.h"
#include "formats/input/knobs.h"

namespace syncline::input {
namespace {

template <typename T>
bool has_moved(const KnobTable<T>& table, const T& object, const std::string& key) {
  return !table.knob(key).at_rest(object);
}

// Returns true for a moved knob, by its key or by "OBJECT.KEY" for a knob of one of its objects.
bool has_moved(const Strategy& strategy, const std::string& key) {
  const std::size_t point = key.find('.');
  if (point == key.npos) return has_moved(strategy_knobs(), strategy, key);
  const std::string object = key.substr(0, point);
  const std::string own = key.substr(point + 1);
  if (object == "fusion") return has_moved(fusion_knobs(), strategy, own);
  if (object == "local_sgd") return has_moved(local_sgd_knobs(), strategy.local_sgd, own);
  return has_moved(compute_fusion_knobs(), strategy.compute_fusion, own);
}

const compress::Codec* codec_of(const Strategy& strategy) {
  return compress::find_codec(strategy.compression.codec);
}

// Returns a knob that moved although it has no meaning with other values, by the table. The reader
// has already refused keys that may not even be given.
std::optional<Conflict> moved_idly(const Strategy& strategy) {
  for (const Knob<Strategy>& knob : strategy_knobs().knobs) {
    for (const Brings& row : knob.beside) {
      for (const std::string& key : row.keys) {
        if (knob.is(kDecides) && !strategy_knobs().knob(key).is(kDecides)) continue;
        if (!has_moved(strategy, key)) continue;
        std::string why = knob.leaves_idle(key, strategy);
        if (!why.empty()) return {{key, std::move(why)}};
      }
    }
  }
  return std::nullopt;
}

// Returns a conflict of a knob with LocalSGD. Knobs of gradients' sums have no meaning without a
// subgroup, which sums gradients; codecs that drop elements cannot average parameters.
std::optional<Conflict> averaging_conflict(const Strategy& strategy) {
  if (!strategy.local_sgd.enabled) return std::nullopt;
  const compress::Codec* codec = codec_of(strategy);
  const bool drops = codec != nullptr && (codec->sparse || codec->low_rank);
  const bool sums = strategy.local_sgd.subgroup > 1;
  for (const std::string key :
       {"compression", "each_micro_batch", "in_flight", "regather", "exchange", "cross_step",
        "priority", "partition_mb", "fusion.cycle_ms"}) {
    // Averaging follows all updates, so parameters are not updated layer by layer.
    const bool late = key == "cross_step" && !shards_update(strategy);
    const bool clashes = key == "compression" ? drops : (!sums || late) && has_moved(strategy, key);
    if (!clashes) continue;
    return Conflict{key, "cannot be combined with local_sgd, which averages every parameter" +
                             std::string(drops  ? ": needs a codec that keeps all elements"
                                         : sums ? " once all are updated"
                                                : ", unless its subgroup sums gradients")};
  }
  return std::nullopt;
}

std::optional<Conflict> sharding_conflict(const Strategy& strategy) {
  const bool of_gradients = !strategy.compression.codec.empty() && !strategy.local_sgd.enabled;
  if (!of_gradients || !shards_update(strategy)) return std::nullopt;
  return Conflict{"compression", "sharded parameters are gathered in full"};
}

// A collective of a strategy's routes on a number of ranks, and the key that sets its algorithm.
struct Taken {
  const char* key;
  std::string algorithm;  // or the form of a hierarchy
  collective::CollectiveKind kind;
  int ranks;

  bool fits() const {
    return algorithm != "leaders" && collective::choice_fits(algorithm, kind, ranks);
  }
};

std::vector<Taken> collectives_of(const Strategy& strategy, int ranks) {
  using enum collective::CollectiveKind;
  const Hierarchy& hierarchy = strategy.hierarchy;
  const auto named = [&](const std::string& own) { return own.empty() ? strategy.algorithm : own; };
  std::vector<Taken> list;
  if (hierarchy.form == Hierarchy::Form::kFlat) {
    list.push_back({"algorithm", strategy.algorithm, kAllReduce, ranks});
  } else {
    const int size = hierarchy.group_size;
    const bool sharded = hierarchy.form == Hierarchy::Form::kSharded;
    const auto sum = sharded ? kReduceScatter : hierarchy.first_all_reduce ? kAllReduce : kReduce;
    const std::string inside = named(hierarchy.inside);
    list.push_back({"hierarchy.across", named(hierarchy.across), kAllReduce, ranks / size});
    list.push_back({"hierarchy.inside", inside, sum, size});
    list.push_back({"hierarchy.inside", inside, sharded ? kAllGather : kBroadcast, size});
  }
  if (strategy.exchange != Strategy::Exchange::kAllReduce) {
    const bool leaders = hierarchy.form == Hierarchy::Form::kLeaders &&
                         strategy.exchange != Strategy::Exchange::kShardedUpdate;
    if (leaders) list.push_back({"hierarchy", "leaders", kReduceScatter, ranks});
    const int size = shard_ranks(strategy, ranks);
    const std::string& name = size != ranks ? named(hierarchy.inside) : strategy.algorithm;
    for (const auto kind : {kReduceScatter, kAllGather}) {
      list.push_back({"algorithm", name, kind, size});
    }
  }
  return list;
}

// Returns the collectives. With groups of LocalSGD: their sums in a step, and the averaging.
std::vector<Taken> all_collectives_of(const Strategy& strategy, int ranks) {
  const LocalSgd& local = strategy.local_sgd;
  const int group = local.enabled ? local.subgroup : 1;
  std::vector<Taken> list = collectives_of(strategy, group > 1 ? group : ranks);
  if (group > 1 && ranks > 1) {
    list.push_back({"algorithm", strategy.algorithm, collective::CollectiveKind::kAllReduce,
                    local.outer.any() ? ranks / group : ranks});
    if (local.outer.any() && !holds_shards(strategy)) {
      list.push_back(
          {"algorithm", strategy.algorithm, collective::CollectiveKind::kAllGather, group});
    }
  }
  return list;
}

// A knob's number with a limit that the job, the cluster or another knob sets.
struct Range {
  const char* key;
  bool fits;             // false: a conflict
  std::int64_t found;    // the number, for the message
  const char* expected;  // text of the message, with % for the limit
  std::int64_t limit;
};

// Returns the largest number of ranks among which NCCL would sum blocks with scales.
int most_direct(const Strategy& strategy, int ranks) {
  const compress::Codec* codec = codec_of(strategy);
  int most = 0;
  if (codec == nullptr || codec->block == 1) return most;
  for (const Taken& taken : all_collectives_of(strategy, ranks)) {
    if (taken.algorithm == collective::kNcclName) most = std::max(most, taken.ranks);
  }
  return most;
}

std::vector<Range> ranges_of_averaging(const Strategy& strategy, const Workload& workload,
                                       int ranks) {
  const LocalSgd& local = strategy.local_sgd;
  if (!local.enabled) return {};
  const auto tensors =
      static_cast<std::int64_t>(std::ranges::count(workload.tensors, false, &Tensor::frozen));
  const auto blocks = static_cast<std::int64_t>(local.periods.size());
  const std::int64_t steps =
      std::accumulate(local.periods.begin(), local.periods.end(), std::int64_t{0});
  const std::int64_t shortest = blocks == 0 ? local.period : std::ranges::min(local.periods);
  const std::int64_t room = shortest / local.fragments;
  const bool flat = strategy.hierarchy.form == Hierarchy::Form::kFlat;
  const int inside = strategy.hierarchy.group_size;
  const bool one_group = local.outer.any() && ranks > 1 && local.subgroup == ranks;
  const bool adaptive = local.adaptive;
  return {{"hierarchy.group_size", local.subgroup == 1 || flat || local.subgroup % inside == 0,
           inside, "a divisor of local_sgd.subgroup, %", local.subgroup},
          {"local_sgd.outer", !one_group, local.subgroup,
           "a subgroup below the % ranks: with all of them in one, nothing is averaged", ranks},
          {"local_sgd.fragments", local.fragments <= tensors, local.fragments,
           "at most the workload's % gradients", tensors},
          {"local_sgd.periods", blocks == 0 || ranks / local.subgroup % blocks == 0, blocks,
           "a divisor of the % groups", ranks / local.subgroup},
          {"local_sgd.periods", blocks == 0 || steps == local.period * blocks, steps,
           "% steps in all, so that their mean is local_sgd.period", local.period * blocks},
          {"local_sgd.fragments", adaptive || room >= 1, local.fragments,
           "at most the % steps of a period", shortest},
          {"local_sgd.delay", adaptive || local.delay < room, local.delay,
           "less than period / fragments, %", room}};
}

// Returns all numbers of a strategy with such limits, those that fit and those that do not.
std::vector<Range> ranges_of(const Strategy& strategy, const Workload& workload, int ranks) {
  const auto& costs = strategy.fusion.costs;
  const bool assumed = costs.empty() || ranks == 1 ||
                       std::ranges::find(costs, ranks, &Fusion::AssumedCost::ranks) != costs.end();
  const auto groups = static_cast<std::int64_t>(strategy.gather_groups.size());
  const int direct = most_direct(strategy, ranks);
  std::vector<Range> ranges{
      {"kept_groups", strategy.traits.kept_groups <= groups, strategy.traits.kept_groups,
       "at most %, as gather_groups has only so many", groups},
      {"fusion.costs", assumed, static_cast<std::int64_t>(costs.size()),
       "one among them for the % ranks", ranks},
      {"compression", direct <= collective::kMaxAllToAll, direct,
       "at most % ranks: NCCL sums no blocks with scales, which go by all_to_all",
       collective::kMaxAllToAll}};
  for (const Range& range : ranges_of_averaging(strategy, workload, ranks)) {
    ranges.push_back(range);
  }
  return ranges;
}

std::optional<Conflict> out_of_range(const std::vector<Range>& ranges) {
  const auto found = std::ranges::find(ranges, false, &Range::fits);
  if (found == ranges.end()) return std::nullopt;
  std::string expected = found->expected;
  expected.replace(expected.find('%'), 1, std::to_string(found->limit));
  return {{found->key, "found " + std::to_string(found->found) + ", expected " + expected}};
}

std::optional<Conflict> algorithm_conflict(const Strategy& strategy, int ranks) {
  for (const Taken& taken : all_collectives_of(strategy, ranks)) {
    if (taken.fits()) continue;
    return Conflict{taken.key, "'" + taken.algorithm + "' does no " +
                                   std::string(collective::to_string(taken.kind)) + " among " +
                                   std::to_string(taken.ranks) + " ranks"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> whole_job_conflict(const Strategy& strategy, const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  if (!parallel.whole_job()) return std::nullopt;
  const bool experts = std::ranges::any_of(workload.tensors, &Tensor::expert);
  const bool cut = experts || parallel.pipeline > 1;
  const std::string beside = " is not modelled yet together with workload.parallel";
  const std::string part = experts ? ".expert" : ".pipeline";
  if (strategy.local_sgd.enabled) return Conflict{"local_sgd", "averaging" + beside};
  if (cut && strategy.priority != Strategy::Priority::kReady) {
    return Conflict{"priority", "ranking buckets" + beside + part};
  }
  if (cut && strategy.traits.fetches.any()) {
    return Conflict{"fetches", "gathering as passes enter modules" + beside + part};
  }
  return std::nullopt;
}

std::optional<Conflict> conflict_of(const Strategy& strategy, const Workload& workload,
                                    const Cluster& whole) {
  const int ranks = exchanging(whole, workload.parallel).ranks();
  if (auto conflict = averaging_conflict(strategy)) return conflict;
  if (auto conflict = moved_idly(strategy)) return conflict;
  if (auto conflict = whole_job_conflict(strategy, workload)) return conflict;
  if (const auto uneven = plan::uneven_groups(strategy, workload)) {
    return {{uneven->key, uneven->why}};
  }
  if (auto conflict = sharding_conflict(strategy)) return conflict;
  if (auto conflict = out_of_range(ranges_of(strategy, workload, ranks))) return conflict;
  if (auto conflict = algorithm_conflict(strategy, ranks)) return conflict;
  const Parallel& parallel = workload.parallel;
  const int experts = whole.ranks() / (parallel.pipeline * exchange_step(parallel, true));
  const bool apart = parallel.whole_job() && std::ranges::any_of(workload.tensors, &Tensor::expert);
  if (!apart || experts == 1) return std::nullopt;
  return algorithm_conflict(plan::for_experts(strategy, parallel, ranks), experts);
}

}  // namespace syncline::input
