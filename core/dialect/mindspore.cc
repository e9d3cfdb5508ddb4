#include "core/dialect/mindspore.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace syncline {
namespace {

using Ids = std::vector<std::int64_t>;
using Parts = std::vector<std::vector<int>>;

// One "MB" is 2^18: elements in the front end (1 MiB of FP32), bytes in the data-parallel pass,
// where it is a quarter of a MiB (kDefaultThresholdMb2Byte in communication_op_fusion.cc).
constexpr std::int64_t kPerMb = 262144;
constexpr std::int64_t kDefaultMb = 64;
constexpr std::int64_t kMostMb = std::int64_t{1} << 32;
constexpr std::int64_t kUnfused = 0;           // an operator with this id is never fused
constexpr std::int64_t kDefaultId = 1;         // Parameter.comm_fusion
constexpr std::int64_t kFirstListedId = 1024;  // grad_reducer.py numbers an index list from here

enum class Mode { kData, kHybrid, kSemiAuto, kAuto };

// What set_auto_parallel_context has come to hold.
struct Context {
  Mode mode = Mode::kData;
  bool enabled = true;                      // openstate
  std::optional<std::int64_t> megabytes;    // set by allreduce in auto or size mode
  std::vector<std::int64_t> split_indices;  // set by allreduce in index mode, inclusive ends
  bool sharded_kinds = false;               // allgather or reducescatter was given
  bool by_hand = false;                     // set_comm_fusion was called

  bool front_end() const { return mode == Mode::kSemiAuto || mode == Mode::kAuto; }
};

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
  const auto near = nearest_word(word, words);
  return near ? " (did you mean '" + *near + "'?)" : "";
}

std::string did_you_mean(const Json& value, const std::vector<std::string>& words) {
  return value.is_string() ? did_you_mean(value.get<std::string>(), words) : "";
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// ---- reading, with the exceptions that MindSpore raises ------------------------------------

Mode read_mode(Reader& config, std::vector<std::string>& notes) {
  static const std::map<std::string, Mode> modes{{"auto_parallel", Mode::kAuto},
                                                 {"data_parallel", Mode::kData},
                                                 {"hybrid_parallel", Mode::kHybrid},
                                                 {"semi_auto_parallel", Mode::kSemiAuto}};
  const Json* value = config.find("parallel_mode");
  if (value == nullptr) {
    notes.push_back(
        "parallel_mode is not given; MindSpore's default, stand_alone, exchanges no gradients: "
        "read as data_parallel");
    return Mode::kData;
  }
  if (!value->is_string()) {
    config.fail("parallel_mode", "TypeError: parallel_mode must be str, found " + describe(*value));
  }
  const auto word = value->get<std::string>();
  if (const auto it = modes.find(word); it != modes.end()) return it->second;
  if (word == "stand_alone") {
    config.fail("parallel_mode",
                "'stand_alone' exchanges no gradients; expected one of auto_parallel, "
                "data_parallel, hybrid_parallel, semi_auto_parallel");
  }
  std::vector<std::string> words;
  for (const auto& [name, mode] : modes) words.push_back(name);
  config.fail("parallel_mode",
              "ValueError: The context configuration parameter 'parallel_mode' only support "
              "'stand_alone', 'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and "
              "'auto_parallel', but got the value : " +
                  describe(*value) + did_you_mean(word, words));
}

// A whole number as Python's int: 64.0, true and null are none. Too large counts as `most`.
std::optional<std::int64_t> python_int(const Json& value, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    return most;
  }
  return std::min(value.get<std::int64_t>(), most);
}

std::int64_t read_size(const Reader& kind, const Json& value) {
  const auto size = python_int(value, kMostMb);
  if (!size) {
    kind.fail("config", "TypeError: the size in MB must be int, found " + describe(value));
  }
  if (*size < 0) {
    kind.fail("config", "ValueError: fusion threshold must be larger than 0, but got " +
                            std::to_string(*size));
  }
  if (*size == kMostMb) {
    kind.fail("config", "found " + describe(value) + ", expected less than " +
                            std::to_string(kMostMb) + " MB");
  }
  return *size;
}

std::vector<std::int64_t> read_indices(const Reader& kind, const Json& value) {
  if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) {
    kind.fail("config", "ValueError: the argument 'indices' can not be empty");
  }
  if (!value.is_array()) {
    kind.fail("config", "TypeError: the argument 'indices' must be list, found " + describe(value));
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::int64_t> indices;
  for (const auto& entry : value) {
    const std::string key = "config[" + std::to_string(indices.size()) + "]";
    const auto index = python_int(entry, kMost);
    if (!index) {
      kind.fail(key, "TypeError: the argument 'index' must be int, found " + describe(entry));
    }
    if (*index < 0) {
      kind.fail(key, "TypeError: an index must be a uint32, found " + describe(entry));
    }
    indices.push_back(*index);
  }
  auto sorted = indices;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    kind.fail("config", "ValueError: The indices has duplicate elements");
  }
  if (sorted != indices) {
    kind.fail("config",
              "ValueError: the elements in argument 'indices' must be sorted in ascending order");
  }
  return indices;
}

// {"mode": ..., "config": ...} of one kind of collective.
void read_kind(Reader& fusion, const std::string& name, const Json& value, Context& context,
               std::vector<std::string>& notes) {
  if (!value.is_object()) {
    fusion.fail(name, "TypeError: For 'comm_fusion', the '" + name +
                          "' config must be dict, found " + describe(value));
  }
  const bool all_reduce = name == "allreduce";
  Reader kind(value, fusion.file(), fusion.place_of(name));
  for (const char* key : {"mode", "config"}) {
    if (kind.has(key)) continue;
    kind.fail(key, std::string("KeyError: For 'comm_fusion', the key '") + key +
                       "' should be contained.");
  }
  const std::vector<std::string> modes = all_reduce
                                             ? std::vector<std::string>{"auto", "index", "size"}
                                             : std::vector<std::string>{"auto", "size"};
  const Json& mode = kind.require("mode");
  const Json& config = kind.require("config");
  kind.finish();
  const std::string word = mode.is_string() ? mode.get<std::string>() : "";
  if (std::find(modes.begin(), modes.end(), word) == modes.end()) {
    kind.fail("mode", std::string("KeyError: fusion method mode must be ") +
                          (all_reduce ? "auto, index or size" : "auto or size") + ", but got " +
                          describe(mode) + did_you_mean(mode, modes));
  }
  if (word == "auto" && !config.is_null()) {
    notes.push_back(name + ": mode auto does not look at its config (" + describe(config) +
                    "): the threshold is " + std::to_string(kDefaultMb) + " MB");
  }
  if (word == "index") {
    context.split_indices = read_indices(kind, config);
    return;
  }
  const std::int64_t size = word == "size" ? read_size(kind, config) : kDefaultMb;
  if (all_reduce) {
    context.megabytes = size;
  } else {
    context.sharded_kinds = true;
  }
}

// Keys act in the order in which they are written: behind openstate False the rest is not looked
// at, whatever it is; in front of it, allreduce has been set and the data-parallel pass uses it.
void read_comm_fusion(Reader& config, Context& context, std::vector<std::string>& notes) {
  const Json* value = config.find("comm_fusion");
  if (value == nullptr) return;
  if (!value->is_object()) {
    config.fail("comm_fusion", "TypeError: comm_fusion must be dict, found " + describe(*value));
  }
  const std::vector<std::string> known{"openstate", "allreduce", "allgather", "reducescatter"};
  Reader fusion = config.object("comm_fusion");
  for (const auto& [key, entry] : value->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fusion.fail(key,
                  "KeyError: comm fusion type must be openstate,allreduce, allgather or "
                  "reducescatter, but got " +
                      key + did_you_mean(key, known));
    }
    if (key == "openstate") {
      if (!entry.is_boolean()) {
        fusion.fail(key, "TypeError: For 'comm_fusion', the 'openstate' must be bool, found " +
                             describe(entry));
      }
      if (!entry.get<bool>()) context.enabled = false;
    } else if (context.enabled) {
      read_kind(fusion, key, entry, context, notes);
    } else {
      notes.push_back("'" + key + "' stands behind openstate False and is not looked at");
    }
  }
}

// Fusion ids in parameter order.
Ids read_ids(Reader& config, const std::vector<const Tensor*>& parameters, Context& context) {
  Ids ids(parameters.size(), kDefaultId);
  const Json* value = config.find("set_comm_fusion");
  if (value == nullptr) return ids;
  Reader calls = config.object("set_comm_fusion");
  for (const auto& [cell, entry] : value->items()) {
    const auto id = python_int(entry, std::numeric_limits<std::int64_t>::max());
    if (!id) {
      calls.fail(cell, "TypeError: the fusion id must be int, found " + describe(entry));
    }
    if (*id < 0) {
      calls.fail(cell,
                 "ValueError: the fusion id must be a non-negative int, found " + describe(entry));
    }
    bool found = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string& name = parameters[i]->name;
      if (!cell.empty() && name != cell && !name.starts_with(cell + ".")) continue;
      ids[i] = *id;
      found = true;
    }
    if (!found) {
      std::vector<std::string> names;
      for (const auto* parameter : parameters) {
        names.push_back(parameter->name);
        names.push_back(parameter->name.substr(0, parameter->name.find('.')));
      }
      calls.fail(cell, "neither a parameter of the workload nor the beginning of one up to a dot" +
                           did_you_mean(cell, names));
    }
    context.by_hand = true;
  }
  return ids;
}

// ---- the rules ------------------------------------------------------------------------------

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

// Semi-automatic and automatic parallel.
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

// Data and hybrid parallel: nn.DistributedGradReducer puts the ids onto the AllReduces. Ids that
// are all the same count as none.
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
        "gradients are cast to FP32 before the AllReduce; groups are found for FP32, while bytes "
        "are counted here in the workload's own types");
  }
  Parts groups = backend_pass(context, parameters, ids);
  if (groups.size() == 1 && groups.front().size() == parameters.size()) {
    notes.push_back("all " + counted(parameters.size(), "gradient") +
                    " go in one AllReduce, after the backward pass: nothing overlaps");
  }
  return groups;
}

// The documents' words: a fusion buffer of so many MB, the entries of an index list as counts of
// gradients, ids of set_comm_fusion in every mode, openstate False for no fusion.
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

Reading read(Reader config, const Workload& workload, const Cluster&, bool as_documents) {
  Reading reading;
  Context context;
  // Parameters come first layer first; the workload's gradients in backward order.
  std::vector<const Tensor*> parameters;
  for (auto it = workload.tensors.rbegin(); it != workload.tensors.rend(); ++it) {
    parameters.push_back(&*it);
  }
  context.mode = read_mode(config, reading.notes);
  read_comm_fusion(config, context, reading.notes);
  const Ids ids = read_ids(config, parameters, context);
  config.finish();
  if (context.front_end() && context.enabled && context.megabytes == 0) {
    config.fail("comm_fusion.allreduce.config",
                "found 0: the fusion threshold must be larger than 0 in semi_auto_parallel and "
                "auto_parallel; openstate False keeps the ids of set_comm_fusion");
  }
  if (context.sharded_kinds) {
    reading.notes.push_back(
        "allgather and reducescatter act with a parallel optimizer, which is not modelled yet: no "
        "effect here");
  }

  Parts groups;
  if (as_documents) {
    groups = documented_groups(context, parameters, ids);
  } else if (context.front_end()) {
    groups = front_end_groups(context, parameters, ids, reading.notes);
  } else {
    groups = reducer_groups(context, parameters, ids, reading.notes);
  }
  const int last = static_cast<int>(parameters.size()) - 1;
  for (auto& group : groups) {
    std::reverse(group.begin(), group.end());
    for (int& index : group) index = last - index;
  }
  reading.strategy.fusion.rule = Fusion::Rule::kGroups;
  reading.strategy.fusion.groups = std::move(groups);
  return reading;
}

// Any partition into runs of its parameter order, first layer first, is an index list; everything
// in one AllReduce and every gradient alone have words of their own.
std::vector<Json> suggest(const Strategy&, const std::vector<Bucket>& buckets, const Workload&,
                          const Cluster&) {
  Json config{{"parallel_mode", "data_parallel"}};
  if (buckets.size() < 2) return {config};
  std::vector<Json> configs;
  Json ends = Json::array();
  std::int64_t last = -1;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    last += static_cast<std::int64_t>(bucket->tensors.size());
    ends.push_back(last);
  }
  const bool alone = std::all_of(buckets.begin(), buckets.end(),
                                 [](const Bucket& bucket) { return bucket.tensors.size() == 1; });
  if (alone) {
    config["comm_fusion"] = {{"allreduce", {{"mode", "size"}, {"config", 0}}}};
    configs.push_back(config);
  }
  config["comm_fusion"] = {{"allreduce", {{"mode", "index"}, {"config", ends}}}};
  configs.push_back(config);
  return configs;
}

}  // namespace

Dialect mindspore_dialect() {
  return {"mindspore", "MindSpore 2.2: parallel_mode, comm_fusion, set_comm_fusion", read, suggest};
}

}  // namespace syncline
