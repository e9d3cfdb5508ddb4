#include "formats/dialect/mindspore_context.h"

#include <algorithm>
#include <limits>
#include <map>

#include "formats/json/reader.h"

namespace syncline::dialect::mindspore {
namespace {

constexpr std::int64_t kMaxMb = std::int64_t{1} << 32;

Mode read_mode(Reader& config, std::vector<std::string>& notes) {
  static const std::map<std::string, Mode> modes{{"auto_parallel", Mode::kAuto},
                                                 {"data_parallel", Mode::kData},
                                                 {"hybrid_parallel", Mode::kHybrid},
                                                 {"semi_auto_parallel", Mode::kSemiAuto}};
  const Json* value = config.find("parallel_mode");
  if (value == nullptr) {
    notes.push_back(
        "parallel_mode is not given; MindSpore's default, stand_alone, sums no gradients: "
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
                "'stand_alone' sums no gradients; expected one of auto_parallel, "
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

// Returns an integer as Python's int, without 64.0, true and null. A larger one gives `most`.
std::optional<std::int64_t> python_int(const Json& value, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    return most;
  }
  return std::min(value.get<std::int64_t>(), most);
}

std::int64_t read_size(const Reader& kind, const Json& value) {
  const auto size = python_int(value, kMaxMb);
  if (!size) {
    kind.fail("config", "TypeError: the size in MB must be int, found " + describe(value));
  }
  if (*size < 0) {
    kind.fail("config", "ValueError: fusion threshold must be larger than 0, but got " +
                            std::to_string(*size));
  }
  if (*size == kMaxMb) {
    kind.fail("config", "found " + describe(value) + ", expected less than " +
                            std::to_string(kMaxMb) + " MB");
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
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::int64_t> indices;
  for (const auto& entry : value) {
    const std::string key = "config[" + std::to_string(indices.size()) + "]";
    const auto index = python_int(entry, kMax);
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

// Reads {"mode": ..., "config": ...} of one kind of collective.
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
                          describe(mode) + did_you_mean(word, modes));
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
  (all_reduce            ? context.megabytes
   : name == "allgather" ? context.gather_megabytes
                         : context.scatter_megabytes) = size;
}

// Reads keys in the order of the file, as they act: MindSpore ignores all keys after openstate
// False. If allreduce comes before it, it is set and the data-parallel pass uses it.
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
      notes.push_back("'" + key + "' comes after openstate False and is not looked at");
    }
  }
}

// Reads the optimizer's sharding, and the size below which a parameter stays whole.
void read_parallel_optimizer(Reader& config, Context& context, std::vector<std::string>& notes) {
  context.sharded = config.boolean_or("enable_parallel_optimizer", false);
  if (config.has("parallel_optimizer_config")) {
    Reader shards = config.object("parallel_optimizer_config");
    context.shard_kb =
        shards.integer_or("parallel_optimizer_threshold", kDefaultShardKb, 0, kMaxMb);
    note(notes, {{shards.boolean_or("gradient_accumulation_shard", false),
                  "gradient_accumulation_shard acts with gradient accumulation alone"},
                 {!context.sharded,
                  "parallel_optimizer_config has no effect without enable_parallel_optimizer"}});
    shards.finish();
  }
  if (context.sharded && !context.front_end()) {
    config.fail("enable_parallel_optimizer",
                "in data_parallel and hybrid_parallel whole parameters are dealt out to the ranks "
                "and broadcast after the update, which is not modelled; semi_auto_parallel and "
                "auto_parallel shard each parameter");
  }
}

}  // namespace

Context read_context(Reader& config, std::vector<std::string>& notes) {
  Context context;
  context.mode = read_mode(config, notes);
  read_comm_fusion(config, context, notes);
  read_parallel_optimizer(config, context, notes);
  if (context.front_end() && context.enabled) {
    const std::pair<const char*, std::optional<std::int64_t>> kinds[] = {
        {"allreduce", context.megabytes},
        {"allgather", context.gather_megabytes},
        {"reducescatter", context.scatter_megabytes}};
    for (const auto& [kind, megabytes] : kinds) {
      if (megabytes != 0) continue;
      config.fail("comm_fusion." + std::string(kind) + ".config",
                  "found 0: the fusion threshold must be larger than 0 in semi_auto_parallel and "
                  "auto_parallel; openstate False keeps the ids of set_comm_fusion");
    }
  }
  note(notes, {{!context.sharded && (context.gather_megabytes || context.scatter_megabytes),
                "allgather and reducescatter act on a parallel optimizer's collectives: no effect "
                "without enable_parallel_optimizer"}});
  return context;
}

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

}  // namespace syncline::dialect::mindspore
