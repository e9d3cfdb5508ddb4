#include "formats/dialect/dialects.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "formats/dialect/changes.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/mindspore_context.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

// MindSpore's rules for fusing gradients (and sharded parameters). Parameters come first layer
// first; groups hold their places in that order.

using namespace mindspore;

using Parts = std::vector<std::vector<int>>;

// One "MB" is 2^18: elements in the front end (1 MiB of FP32), bytes in the data-parallel pass (a
// quarter of a MiB; kDefaultThresholdMb2Byte in communication_op_fusion.cc).
constexpr std::int64_t kPerMb = 262144;

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

constexpr std::int64_t kUnfused = 0;           // an operator with this id is never fused
constexpr std::int64_t kFirstListedId = 1024;  // grad_reducer.py numbers an index list from here

// Sets ids by size, in forward layer order, as the front end (allreduce_fusion.cc) does. The
// threshold counts elements of any dtype, without the tensor that opens a group.
void number_by_size(const std::vector<const Tensor*>& parameters, std::int64_t megabytes,
                    Ids& ids) {
  const std::int64_t threshold = megabytes * kPerMb;
  std::int64_t left = threshold;
  std::int64_t id = kDefaultId;
  bool first = true;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->sparse) continue;
    const std::int64_t elements = parameters[i]->elements;
    if (first || elements < left) {
      left -= elements;
    } else {
      left = threshold;
      ++id;
    }
    first = false;
    ids[i] = id;
  }
}

// Sets ids as grad_reducer.py does: a parameter at an index of the list is the last of its group.
void number_by_list(const std::vector<std::int64_t>& list, Ids& ids) {
  std::size_t group = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = kFirstListedId + static_cast<std::int64_t>(group);
    if (group < list.size() && list[group] <= static_cast<std::int64_t>(i)) ++group;
  }
}

// Cuts `candidates` after the positions of `list`; positions past the end have no effect.
Parts cut_behind(const std::vector<int>& candidates, const std::vector<std::int64_t>& list) {
  Parts parts(1);
  auto next = list.begin();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    parts.back().push_back(candidates[i]);
    if (next == list.end() || *next != static_cast<std::int64_t>(i)) continue;
    ++next;
    if (i + 1 < candidates.size()) parts.emplace_back();
  }
  return parts;
}

// Cuts as the data-parallel pass does: a segment closes with the gradient that exceeds the
// threshold. Gradients have been cast to FP32.
Parts cut_by_bytes(const std::vector<int>& candidates, const std::vector<const Tensor*>& parameters,
                   std::int64_t megabytes) {
  const Bytes threshold = megabytes * kPerMb;
  Parts parts;
  Bytes bytes = 0;
  bool open = false;
  for (const int index : candidates) {
    if (!open) parts.emplace_back();
    open = true;
    parts.back().push_back(index);
    bytes += parameters[static_cast<std::size_t>(index)]->elements * size_of(DType::kFp32);
    if (bytes <= threshold) continue;
    bytes = 0;
    open = false;
  }
  return parts;
}

// Returns candidates for one collective: dense, of one id and dtype, in parameter order.
std::map<std::pair<std::int64_t, DType>, std::vector<int>> candidates_of(
    const std::vector<const Tensor*>& parameters, const Ids& ids, bool cast) {
  std::map<std::pair<std::int64_t, DType>, std::vector<int>> keyed;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->sparse || ids[i] == kUnfused) continue;
    keyed[{ids[i], cast ? DType::kFp32 : parameters[i]->dtype}].push_back(static_cast<int>(i));
  }
  return keyed;
}

// Returns the groups of the backend pass (communication_op_fusion.cc): one collective for each key,
// unless an index list or the data-parallel threshold splits it. Both count in the order of the
// graph, the last layer first, unless the gradient reducer has numbered the collectives. The list
// is registered only for id 1, so the reducer numbers its groups from another start.
Parts backend_pass(const Context& context, const std::vector<const Tensor*>& parameters,
                   const Ids& ids) {
  Parts groups;
  if (context.megabytes == 0) return groups;  // the pass returns at once, without fusion
  const bool numbered =
      !context.front_end() && std::ranges::adjacent_find(ids, std::not_equal_to<>()) != ids.end();
  for (auto& [key, candidates] : candidates_of(parameters, ids, !context.front_end())) {
    if (!numbered) std::ranges::reverse(candidates);
    const bool listed = key.first == kDefaultId && !context.split_indices.empty();
    Parts own;
    for (auto& part :
         cut_behind(candidates, listed ? context.split_indices : std::vector<std::int64_t>{})) {
      if (context.mode != Mode::kData || !context.megabytes) {
        own.push_back(std::move(part));
        continue;
      }
      for (auto& segment : cut_by_bytes(part, parameters, *context.megabytes)) {
        own.push_back(std::move(segment));
      }
    }
    if (!numbered) std::ranges::reverse(own);
    for (auto& group : own) {
      std::ranges::sort(group);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

void note_past_the_end(const Context& context, std::size_t count, std::vector<std::string>& notes) {
  for (const auto index : context.split_indices) {
    if (index < static_cast<std::int64_t>(count)) continue;
    notes.push_back("index " + std::to_string(index) + " is past the end of " +
                    counted(count, "gradient") + " and is ignored with a warning");
  }
}

// Applies the size rule to some of the parameters; each kind of collective counts separately.
Parts groups_among(const Context& context, const std::vector<const Tensor*>& parameters,
                   const Ids& ids, const std::vector<int>& chosen,
                   const std::optional<std::int64_t>& megabytes) {
  std::vector<const Tensor*> some;
  Ids own;
  for (const int index : chosen) {
    some.push_back(parameters[static_cast<std::size_t>(index)]);
    own.push_back(ids[static_cast<std::size_t>(index)]);
  }
  if (context.enabled) number_by_size(some, megabytes.value_or(kDefaultMb), own);
  Context plain;
  plain.mode = context.mode;
  Parts groups = backend_pass(plain, some, own);
  for (auto& group : groups) {
    for (int& place : group) place = chosen[static_cast<std::size_t>(place)];
  }
  return groups;
}

// Returns groups in (semi-)automatic parallel: ids by size in the front end, then the backend pass.
Parts front_end_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       Ids ids, std::vector<std::string>& notes) {
  if (context.enabled) {
    const std::int64_t megabytes = context.megabytes.value_or(kDefaultMb);
    number_by_size(parameters, megabytes, ids);
    notes.push_back(std::to_string(megabytes) + " MB means " + std::to_string(megabytes * kPerMb) +
                    " elements of any type, and the gradient that opens a group does not count");
    note(notes, {{context.by_hand,
                  "the ids of set_comm_fusion are overwritten by the size rule; openstate False "
                  "keeps them"}});
  } else if (std::count(ids.begin(), ids.end(), kDefaultId) > 1) {
    notes.push_back(
        "openstate False only keeps the ids as they are: parameters without set_comm_fusion have "
        "id 1 and still travel together");
  }
  if (!context.split_indices.empty()) {
    const auto first = static_cast<std::size_t>(std::count(ids.begin(), ids.end(), kDefaultId));
    notes.push_back("the index list splits fusion id 1 alone, " + counted(first, "gradient") +
                    "; in data_parallel it splits all of them");
    note_past_the_end(context, first, notes);
  }
  return backend_pass(context, parameters, ids);
}

// Returns groups in data and hybrid parallel: nn.DistributedGradReducer puts the ids onto the
// AllReduces. All ids equal means no ids.
Parts reducer_groups(const Context& context, const std::vector<const Tensor*>& parameters, Ids ids,
                     std::vector<std::string>& notes) {
  const bool differ =
      std::adjacent_find(ids.begin(), ids.end(), std::not_equal_to<>()) != ids.end();
  if (!differ) {
    if (!ids.empty() && ids.front() != kDefaultId) {
      notes.push_back("all parameters have fusion id " + std::to_string(ids.front()) +
                      ": ids that do not differ have no effect, 0 included");
    }
    std::fill(ids.begin(), ids.end(), kDefaultId);
    if (!context.split_indices.empty()) {
      number_by_list(context.split_indices, ids);
      note_past_the_end(context, ids.size(), notes);
    }
  } else if (!context.split_indices.empty()) {
    notes.push_back("set_comm_fusion goes before the index list, which splits fusion id 1 alone");
  }
  const std::int64_t size = context.megabytes.value_or(0);
  const bool data = context.mode == Mode::kData;
  note(notes,
       {{!context.enabled,
         "openstate False acts on semi_auto_parallel and auto_parallel alone: gradients are fused "
         "as ever"},
        {data && size > 0,
         std::to_string(size) + " MB means " + std::to_string(size * kPerMb) +
             " bytes (a quarter), and a group closes with the gradient that takes it over them"},
        {!data && size > 0, "a size has no effect in hybrid_parallel"},
        {!std::ranges::all_of(parameters, [](auto* p) { return p->dtype == DType::kFp32; }),
         "gradients are cast to FP32 before the AllReduce and back after it: halves travel as "
         "twice their bytes"}});
  Parts groups = backend_pass(context, parameters, ids);
  note(notes, {{groups.size() == 1 && groups.front().size() == parameters.size(),
                "all " + counted(parameters.size(), "gradient") +
                    " go in one AllReduce, after the backward pass: nothing overlaps"}});
  return groups;
}

// Returns groups as the documents describe them: a fusion buffer in MB, an index list as counts of
// gradients, ids of set_comm_fusion in every mode, openstate False for no fusion.
Parts documented_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                        const Ids& ids) {
  Context plain;
  plain.mode = Mode::kSemiAuto;
  if (context.by_hand) return backend_pass(plain, parameters, ids);
  if (!context.enabled) return {};
  Parts groups;
  const Ids same(parameters.size(), kDefaultId);
  if (!context.split_indices.empty()) {
    for (const auto count : context.split_indices) {
      if (count > 0) plain.split_indices.push_back(count - 1);
    }
    for (const auto& [key, candidates] : candidates_of(parameters, same, false)) {
      for (auto& part : cut_behind(candidates, plain.split_indices)) {
        groups.push_back(std::move(part));
      }
    }
    return groups;
  }
  const Bytes buffer = context.megabytes.value_or(kDefaultMb) * kMiB;
  for (const auto& [key, candidates] : candidates_of(parameters, same, false)) {
    Bytes bytes = buffer + 1;  // the first gradient opens a group
    for (const int index : candidates) {
      const Bytes added = parameters[static_cast<std::size_t>(index)]->bytes();
      if (bytes + added > buffer) {
        groups.emplace_back();
        bytes = 0;
      }
      groups.back().push_back(index);
      bytes += added;
    }
  }
  return groups;
}

// Converts places among the parameters, first layer first, to tensors, in backward order.
Parts in_backward_order(Parts groups, const std::vector<const Tensor*>& parameters,
                        const Workload& workload) {
  for (auto& group : groups) {
    std::reverse(group.begin(), group.end());
    for (int& place : group) {
      place =
          static_cast<int>(parameters[static_cast<std::size_t>(place)] - workload.tensors.data());
    }
  }
  return groups;
}

// Shards large parameters with a first dimension that the ranks divide (parallel optimizer). Their
// gradients are scattered, the others' all-reduced. The graph of a step ends with its update; the
// next one gathers each layer's parameters before its forward pass.
void shard(const Context& context, const std::vector<const Tensor*>& parameters, const Ids& ids,
           const Workload& workload, int ranks, Reading& reading) {
  std::vector<int> shared;
  std::vector<int> whole;
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    const Tensor& tensor = *parameters[static_cast<std::size_t>(i)];
    const bool splits = !tensor.shape.empty() && tensor.shape.front() % ranks == 0;
    const bool large = tensor.bytes() >= context.shard_kb * kKiB;
    if (tensor.sparse) continue;
    (splits && large ? shared : whole).push_back(i);
  }
  reading.notes.push_back(
      "enable_parallel_optimizer shards " + counted(shared.size(), "parameter") + " of at least " +
      std::to_string(context.shard_kb) + " KB whose first dimension the " + std::to_string(ranks) +
      " ranks divide; " + counted(whole.size(), "gradient") + " of the others " +
      (whole.size() == 1 ? "is" : "are") + " all-reduced");
  const auto groups = [&](const std::vector<int>& chosen,
                          const std::optional<std::int64_t>& megabytes) {
    return in_backward_order(groups_among(context, parameters, ids, chosen, megabytes), parameters,
                             workload);
  };
  Strategy& strategy = reading.strategy;
  strategy.fusion.groups = groups(shared, context.scatter_megabytes);
  for (auto& group : groups(whole, context.megabytes)) {
    strategy.fusion.groups.push_back(std::move(group));
  }
  strategy.gather_groups = groups(shared, context.gather_megabytes);
  if (strategy.gather_groups.empty()) return;
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.cross_step = true;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool as_documents) {
  Reading reading;
  // Parameters come first layer first; the workload's gradients in backward order.
  std::vector<const Tensor*> parameters;
  for (auto it = workload.tensors.rbegin(); it != workload.tensors.rend(); ++it) {
    if (!it->frozen) parameters.push_back(&*it);
  }
  Context context = read_context(config, reading.notes);
  const Ids ids = read_ids(config, parameters, context);
  finish_keys(config, key_list("mindspore"), reading.notes);
  Strategy& strategy = reading.strategy;
  strategy.fusion.rule = Fusion::Rule::kGroups;
  if (context.sharded && cluster.ranks() > 1) {
    shard(context, parameters, ids, workload, cluster.ranks(), reading);
    return reading;
  }
  const bool casts = !as_documents && !context.front_end() && any_narrow(workload);
  if (casts) strategy.fusion.sum_format = DType::kFp32;

  Parts groups;
  if (as_documents) {
    groups = documented_groups(context, parameters, ids);
  } else if (context.front_end()) {
    groups = front_end_groups(context, parameters, ids, reading.notes);
  } else {
    groups = reducer_groups(context, parameters, ids, reading.notes);
  }
  strategy.fusion.groups = in_backward_order(std::move(groups), parameters, workload);
  return reading;
}

// Returns sizes by which both kinds of collective may have been fused.
std::vector<Json> suggest_sharded() {
  std::vector<Json> configs;
  for (const int gather : {64, 1, 2, 4, 8, 16, 32, 128, 256, 1024}) {
    for (const int scatter : {64, 1, 2, 4, 8, 16, 32, 128, 256, 1024}) {
      Json config{{"parallel_mode", "semi_auto_parallel"}, {"enable_parallel_optimizer", true}};
      config["comm_fusion"] = {{"allgather", {{"mode", "size"}, {"config", gather}}},
                               {"reducescatter", {{"mode", "size"}, {"config", scatter}}}};
      configs.push_back(config);
    }
  }
  return configs;
}

// Returns configurations. A partition into runs of the parameter order is an index list; one
// AllReduce for all gradients, or for each, has its own setting.
std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload&, const Cluster&) {
  if (strategy.exchange == Strategy::Exchange::kSharded) return suggest_sharded();
  Json config{{"parallel_mode", "data_parallel"}};
  if (buckets.size() < 2 || strategy.local_sgd.enabled) return {config};
  std::vector<Json> configs;
  Json ends = Json::array();
  std::int64_t last = -1;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    last += static_cast<std::int64_t>(bucket->tensors.size());
    ends.push_back(last);
  }
  const bool alone = std::all_of(buckets.begin(), buckets.end(), [](const plan::Bucket& bucket) {
    return bucket.tensors.size() == 1;
  });
  if (alone) {
    config["comm_fusion"] = {{"allreduce", {{"mode", "size"}, {"config", 0}}}};
    configs.push_back(config);
  }
  config["comm_fusion"] = {{"allreduce", {{"mode", "index"}, {"config", ends}}}};
  configs.push_back(config);
  return configs;
}

// Adds index lists to the changes: each end is moved by one gradient or left out, each other one is
// added. The last end stays.
void add_moved_ends(const Json& all_reduce, Changes& changes) {
  constexpr std::int64_t kFewGradients = 64;
  const Json ends = all_reduce.value("config", Json());
  if (all_reduce.value("mode", "") != "index" || !ends.is_array()) return;
  std::set<std::int64_t> given;
  for (const Json& end : ends) {
    if (!end.is_number_integer()) return;
    given.insert(end.get<std::int64_t>());
  }
  if (given.empty() || *given.rbegin() > kFewGradients) return;
  const std::int64_t last = *given.rbegin();
  const auto add = [&](std::set<std::int64_t> moved) {
    changes.push_back(
        {ChangeKind::kFusion, {{"comm_fusion", {{"allreduce", {{"config", moved}}}}}}});
  };
  for (std::int64_t end = 0; end < last; ++end) {
    std::set<std::int64_t> moved = given;
    if (moved.insert(end).second) {
      add(moved);
      continue;
    }
    moved.erase(end);
    add(moved);
    for (const std::int64_t next : {end - 1, end + 1}) {
      std::set<std::int64_t> shifted = moved;
      if (next >= 0 && shifted.insert(next).second) add(std::move(shifted));
    }
  }
}

// Returns changes of comm_fusion by size, in MindSpore's units, which depend on the mode.
Changes changes(const Json& config, const Cluster&) {
  Changes changes;
  const Json fusion = config.value("comm_fusion", Json());
  if (fusion.is_object() && fusion.contains("allreduce") && fusion["allreduce"].is_object()) {
    add_moved_ends(fusion["allreduce"], changes);
  }
  for (const int megabytes : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    const Json all_reduce{{"mode", "size"}, {"config", megabytes}};
    changes.push_back({ChangeKind::kFusion, {{"comm_fusion", {{"allreduce", all_reduce}}}}});
  }
  changes.push_back({ChangeKind::kFusion, {{"comm_fusion", nullptr}}});
  return changes;
}

// Returns the best buckets on one flat ring: their end indices express any buckets.
std::vector<Json> candidates(const Strategy&, const Workload& workload, const Cluster& cluster,
                             const Partitions& partitions) {
  const Json plain{{"parallel_mode", "data_parallel"}};
  const Strategy strategy = read(Reader(plain, "mindspore", ""), workload, cluster, false).strategy;
  std::vector<Json> configs{plain};
  const auto buckets = partitions.best_buckets(strategy);
  for (auto& config : suggest(strategy, buckets, workload, cluster)) {
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace

Dialect mindspore_dialect() {
  return {.name = "mindspore",
          .summary = "MindSpore 2.2: parallel_mode, comm_fusion, set_comm_fusion",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          // It exchanges no gradients unless it is given a second rank.
          .least = {{"parallel_mode", "data_parallel"}},
          .candidates = candidates};
}

}  // namespace syncline::dialect
