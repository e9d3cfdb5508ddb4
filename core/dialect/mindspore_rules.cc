#include "core/dialect/mindspore_rules.h"

#include <algorithm>
#include <functional>
#include <map>

namespace syncline::dialect::mindspore {
namespace {

constexpr std::int64_t kUnfused = 0;           // an operator with this id is never fused
constexpr std::int64_t kFirstListedId = 1024;  // grad_reducer.py numbers an index list from here

// Front end (allreduce_fusion.cc): ids by size, in forward layer order. The threshold counts
// elements of whatever dtype, and the tensor that opens a group does not count.
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

// grad_reducer.py: a parameter at an index of the list is the last of its group.
void number_by_list(const std::vector<std::int64_t>& list, Ids& ids) {
  std::size_t group = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = kFirstListedId + static_cast<std::int64_t>(group);
    if (group < list.size() && list[group] <= static_cast<std::int64_t>(i)) ++group;
  }
}

// Cuts `candidates` behind the positions of `list`; those past the end are left out.
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

// Data parallel: a segment closes with the gradient that takes it over the threshold. Gradients
// have been cast to FP32.
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

// Candidates for one collective: dense parameters of the same id and dtype, in parameter order.
std::map<std::pair<std::int64_t, DType>, std::vector<int>> candidates_of(
    const std::vector<const Tensor*>& parameters, const Ids& ids, bool cast) {
  std::map<std::pair<std::int64_t, DType>, std::vector<int>> keyed;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->sparse || ids[i] == kUnfused) continue;
    keyed[{ids[i], cast ? DType::kFp32 : parameters[i]->dtype}].push_back(static_cast<int>(i));
  }
  return keyed;
}

// The backend pass (communication_op_fusion.cc): one collective for each key, unless an index list
// or the data-parallel threshold splits it. The list is registered for id 1 alone, which is why
// the gradient reducer numbers its groups from elsewhere.
Parts backend_pass(const Context& context, const std::vector<const Tensor*>& parameters,
                   const Ids& ids) {
  Parts groups;
  if (context.megabytes == 0) return groups;  // the pass returns at once: nothing is fused
  for (const auto& [key, candidates] : candidates_of(parameters, ids, !context.front_end())) {
    const bool listed = key.first == kDefaultId && !context.split_indices.empty();
    for (auto& part :
         cut_behind(candidates, listed ? context.split_indices : std::vector<std::int64_t>{})) {
      if (context.mode != Mode::kData || !context.megabytes) {
        groups.push_back(std::move(part));
        continue;
      }
      for (auto& segment : cut_by_bytes(part, parameters, *context.megabytes)) {
        groups.push_back(std::move(segment));
      }
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

// The size rule on some of the parameters, each kind of collective counting for itself.
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

}  // namespace

Parts front_end_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       Ids ids, std::vector<std::string>& notes) {
  if (context.enabled) {
    const std::int64_t megabytes = context.megabytes.value_or(kDefaultMb);
    number_by_size(parameters, megabytes, ids);
    notes.push_back(std::to_string(megabytes) + " MB means " + std::to_string(megabytes * kPerMb) +
                    " elements of any type, and the gradient that opens a group does not count");
    if (context.by_hand) {
      notes.push_back(
          "the ids of set_comm_fusion are overwritten by the size rule; openstate False keeps "
          "them");
    }
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
  if (!context.enabled) {
    notes.push_back(
        "openstate False acts on semi_auto_parallel and auto_parallel alone: gradients are fused "
        "as ever");
  }
  const bool data = context.mode == Mode::kData;
  if (context.megabytes && *context.megabytes > 0) {
    notes.push_back(data ? std::to_string(*context.megabytes) + " MB means " +
                               std::to_string(*context.megabytes * kPerMb) +
                               " bytes (a quarter), and a group closes with the gradient that "
                               "takes it over them"
                         : "a size has no effect in hybrid_parallel");
  }
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const Tensor* tensor) { return tensor->dtype != DType::kFp32; })) {
    notes.push_back(
        "gradients are cast to FP32 before the AllReduce and back after it: halves travel as twice "
        "their bytes");
  }
  Parts groups = backend_pass(context, parameters, ids);
  if (groups.size() == 1 && groups.front().size() == parameters.size()) {
    notes.push_back("all " + counted(parameters.size(), "gradient") +
                    " go in one AllReduce, after the backward pass: nothing overlaps");
  }
  return groups;
}

Parts documented_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                        const Ids& ids) {
  Context plain;
  plain.mode = Mode::kSemiAuto;
  if (context.by_hand) return backend_pass(plain, parameters, ids);
  if (!context.enabled) return {};
  const Ids same(parameters.size(), kDefaultId);
  if (!context.split_indices.empty()) {
    for (const auto count : context.split_indices) {
      if (count > 0) plain.split_indices.push_back(count - 1);
    }
    return backend_pass(plain, parameters, same);
  }
  Parts groups;
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

Sharded sharded_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       const Ids& ids, int ranks, std::vector<std::string>& notes) {
  std::vector<int> shared;
  std::vector<int> whole;
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    const Tensor& tensor = *parameters[static_cast<std::size_t>(i)];
    const bool splits = !tensor.shape.empty() && tensor.shape.front() % ranks == 0;
    const bool large = tensor.bytes() >= context.shard_kb * kKiB;
    if (tensor.sparse) continue;
    (splits && large ? shared : whole).push_back(i);
  }
  notes.push_back("enable_parallel_optimizer shards " + counted(shared.size(), "parameter") +
                  " of at least " + std::to_string(context.shard_kb) +
                  " KB whose first dimension the " + std::to_string(ranks) + " ranks divide; " +
                  counted(whole.size(), "gradient") + " of the others " +
                  (whole.size() == 1 ? "is" : "are") + " all-reduced");
  return {groups_among(context, parameters, ids, whole, context.megabytes),
          groups_among(context, parameters, ids, shared, context.scatter_megabytes),
          groups_among(context, parameters, ids, shared, context.gather_megabytes)};
}

}  // namespace syncline::dialect::mindspore
