// Writes DistributedDataParallel's or FSDP's configuration as script lines. Names are torch's:
// torch/nn/parallel/distributed.py, torch/distributed/algorithms and torch/distributed/fsdp.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "formats/dialect/dialects.h"
#include "formats/dialect/schemes.h"
#include "formats/dialect/write.h"

namespace syncline::dialect {
namespace {

// Keys that are set around the model, or that are not the name of an argument.
constexpr std::array<std::string_view, 9> kNoArguments{
    "torch",         "DDP_SET_LAST_BUCKET_CAP", "_DEFAULT_FIRST_BUCKET_BYTES",
    "comm_hook",     "PowerSGDState",           "PostLocalSGDState",
    "torch_compile", "PeriodicModelAverager",   "no_sync"};

std::string python_word(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_number_float() &&
      value.get<double>() == static_cast<double>(value.get<std::int64_t>()))
    return std::to_string(value.get<std::int64_t>());
  return value.dump();
}

// Returns ", bucket_cap_mb=2, gradient_as_bucket_view=True".
std::string arguments(const Json& given) {
  std::string text;
  for (const auto& [key, value] : given.items()) text += ", " + key + "=" + python_word(value);
  return text;
}

std::string after_comma(const std::string& text) { return text.empty() ? text : text.substr(2); }

std::string wrapped(const Json& config) {
  Json own = config;
  for (const auto key : kNoArguments) own.erase(std::string(key));
  return "model = DDP(model" + arguments(own) + ")";
}

std::string averaging(const Json& config) {
  Json state = config.at("PostLocalSGDState");
  const int size = state.value("subgroup_size", 0);
  state.erase("subgroup_size");
  Json averager = config.at("PeriodicModelAverager");
  if (!averager.contains("warmup_steps")) {
    averager["warmup_steps"] = state.value("start_localSGD_iter", 0);
  }
  const std::string subgroup =
      size > 1 ? "torch.distributed.new_subgroups(" + std::to_string(size) + ")[0]" : "None";
  return "PostLocalSGDState(None, " + subgroup + arguments(state) +
         "), post_localSGD_hook); optimizer = PostLocalSGDOptimizer(optimizer, "
         "PeriodicModelAverager(" +
         after_comma(arguments(averager)) + "))";
}

std::string hooked(const Json& config) {
  const std::string hook = config.value("comm_hook", "allreduce_hook");
  if (hook == "allreduce_hook") return "";
  const std::string call = "; model.register_comm_hook(";
  if (hook == "post_localSGD_hook") return call + averaging(config);
  if (hook.ends_with("powerSGD_hook")) {
    const Json state = config.value("PowerSGDState", Json::object());
    return call + "PowerSGDState(None" + arguments(state) + "), " + hook + ")";
  }
  return call + "None, " + hook + ")";
}

// Python that walks the modules of an entry of `units`.
struct Walk {
  std::string module;  // "unit.mlp"; "model.head" without loops
  std::string loops;   // " for unit in model.layers.children()"; empty: one module
};

// Returns the way to the modules of a pattern, "layers.*.mlp"; nothing: too many levels for a line.
std::optional<Walk> walk_of(const std::string& pattern) {
  constexpr std::array<std::string_view, 3> kVariables{"unit", "part", "piece"};
  Walk walk{"model", ""};
  std::size_t level = 0;
  std::string numbered;  // a name with a number in it is no attribute
  std::stringstream parts(pattern);
  const auto enter = [&] {
    if (!numbered.empty()) walk.module += ".get_submodule(\"" + numbered + "\")";
    numbered.clear();
  };
  for (std::string part; std::getline(parts, part, '.');) {
    if (part == "*") {
      if (level == kVariables.size()) return std::nullopt;
      enter();
      const std::string variable(kVariables[level++]);
      walk.loops += " for " + variable + " in " + walk.module + ".children()";
      walk.module = variable;
    } else if (!numbered.empty() || (!part.empty() && part.front() >= '0' && part.front() <= '9')) {
      numbered += (numbered.empty() ? "" : ".") + part;
    } else {
      walk.module += "." + part;
    }
  }
  enter();
  return walk;
}

// Returns the call for each module of an entry: "[fully_shard(unit) for unit in ...]".
std::string each_of(const std::string& pattern, const std::string& before,
                    const std::string& after) {
  const Walk walk = *walk_of(pattern);
  const std::string call = before + walk.module + after;
  return walk.loops.empty() ? call : "[" + call + walk.loops + "]";
}

// Returns torch's name of a format: "torch.bfloat16".
std::string torch_format(const Json& word) {
  const std::string text = word.get<std::string>();
  return "torch." + (text == "bf16"   ? "bfloat16"
                     : text == "fp16" ? "float16"
                     : text == "fp32" ? "float32"
                                      : text);
}

// Returns "MixedPrecisionPolicy(param_dtype=torch.bfloat16)".
std::string policy_of(const std::string& kind, const Json& formats) {
  std::string text;
  for (const auto& [key, value] : formats.items()) {
    const bool format = value.is_string() && value != "none";
    text += ", " + key + "=" + (format ? torch_format(value) : python_word(value));
  }
  return kind + "(" + after_comma(text) + ")";
}

// Returns "init_device_mesh("cuda", (4, 8), mesh_dim_names=("replicate", "shard"))". The job's own
// ranks are in place of -1, which torch does not take.
std::string mesh_of(const Json& sizes) {
  const auto size = [&](std::size_t axis) {
    if (sizes[axis] != kOthers) return sizes[axis].dump();
    const std::string ranks = "torch.distributed.get_world_size()";
    return sizes.size() < 2 ? ranks : ranks + " // " + sizes[1 - axis].dump();
  };
  if (sizes.size() < 2) return "init_device_mesh(\"cuda\", (" + size(0) + ",))";
  return "init_device_mesh(\"cuda\", (" + size(0) + ", " + size(1) +
         "), mesh_dim_names=(\"replicate\", \"shard\"))";
}

// Returns the calls that wrap the units, modules inside others first.
std::string wrapped_units(const Json& config) {
  std::vector<Json> units = config.value("units", Json::array());
  const auto depth = [](const Json& unit) {
    return unit.is_string() ? -std::ranges::count(unit.get<std::string>(), '.') : 0;
  };
  std::ranges::stable_sort(units, {}, depth);
  std::string text;
  for (const Json& unit : units) {
    if (unit.is_string()) {
      text += each_of(unit.get<std::string>(), "fully_shard(", ", **fsdp)") + "; ";
      continue;
    }
    std::string modules;
    for (const Json& each : unit) modules += ", " + walk_of(each.get<std::string>())->module;
    text += "fully_shard([" + after_comma(modules) + "], **fsdp); ";
  }
  return text;
}

std::string fsdp2_code(const Json& config) {
  std::string arguments;
  if (config.contains("reshard_after_forward")) {
    arguments = ", reshard_after_forward=" + python_word(config["reshard_after_forward"]);
  }
  if (config.contains("mesh")) arguments += ", mesh=" + mesh_of(config["mesh"]);
  if (config.contains("mp_policy")) {
    arguments += ", mp_policy=" + policy_of("MixedPrecisionPolicy", config["mp_policy"]);
  }
  if (config.contains("offload_policy")) arguments += ", offload_policy=CPUOffloadPolicy()";
  std::string text = "fsdp = dict(" + after_comma(arguments) + "); ";
  text += wrapped_units(config) + "fully_shard(model, **fsdp)";
  for (const Json& kept : config.value("not_resharded", Json::array())) {
    text += "; " + each_of(kept.get<std::string>(), "",
                           ".set_reshard_after_forward(False, recurse=False)");
  }
  std::string earlier;
  if (!config.value("set_requires_all_reduce", true)) {
    earlier += ", model.set_requires_all_reduce(False)";
  }
  if (config.value("no_sync", false)) earlier += ", model.set_requires_gradient_sync(False)";
  if (!earlier.empty()) text += "  # in all micro-batches but the last: " + after_comma(earlier);
  return text;
}

// Returns the set of FSDP1's units and the call that wraps them and the model.
std::string fsdp1_code(const Json& config) {
  std::string units;
  for (const Json& unit : config.value("units", Json::array())) {
    const Walk walk = *walk_of(unit.get<std::string>());
    units += walk.loops.empty() ? ", " + walk.module : ", *(" + walk.module + walk.loops + ")";
  }
  std::string text = units.empty() ? "model = FSDP(model"
                                   : "units = {" + after_comma(units) + "}; model = FSDP(model";
  if (!units.empty()) text += ", auto_wrap_policy=CustomPolicy(lambda module: module in units)";
  text += ", sharding_strategy=ShardingStrategy." + config.value("sharding_strategy", "FULL_SHARD");
  if (config.contains("device_mesh")) text += ", device_mesh=" + mesh_of(config["device_mesh"]);
  if (config.contains("mixed_precision")) {
    text += ", mixed_precision=" + policy_of("MixedPrecision", config["mixed_precision"]);
  }
  if (config.contains("cpu_offload")) text += ", cpu_offload=CPUOffload(offload_params=True)";
  if (config.value("use_orig_params", false)) text += ", use_orig_params=True";
  text += ")";
  if (config.value("no_sync", false))
    text += "  # in all micro-batches but the last: model.no_sync()";
  return text;
}

// Returns true if an entry of `units` names modules that a line of Python reaches.
bool is_reached(const Json& unit) {
  if (unit.is_string()) return walk_of(unit.get<std::string>()).has_value();
  return std::ranges::all_of(unit, [](const Json& each) {
    const auto walk = each.is_string() ? walk_of(each.get<std::string>()) : std::nullopt;
    return walk && walk->loops.empty();
  });
}

}  // namespace

std::string fsdp_code(const Json& config) {
  const bool second = config.value("version", 2) == 2;
  const auto lines = [&](const char* key) {
    const Json entries = config.value(key, Json::array());
    return entries.is_array() && std::ranges::all_of(entries, [&](const Json& unit) {
             return (second || unit.is_string()) && is_reached(unit);
           });
  };
  // Settings that no line of Python reaches are written as keys.
  if (!lines("units") || !lines("not_resharded")) return on_one_line(config);
  return second ? fsdp2_code(config) : fsdp1_code(config);
}

std::string ddp_code(const Json& config) {
  std::string text;
  if (config.contains("DDP_SET_LAST_BUCKET_CAP")) {
    text += "os.environ[\"DDP_SET_LAST_BUCKET_CAP\"] = \"" +
            config["DDP_SET_LAST_BUCKET_CAP"].dump() + "\"; ";
  }
  if (config.contains("_DEFAULT_FIRST_BUCKET_BYTES")) {
    text += "torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = " +
            config["_DEFAULT_FIRST_BUCKET_BYTES"].dump() + "; ";
  }
  const Json compiled = config.value("torch_compile", Json());
  if (compiled.is_object() && compiled.contains("optimize_ddp")) {
    text += "torch._dynamo.config.optimize_ddp = " + python_word(compiled["optimize_ddp"]) + "; ";
  }
  text += wrapped(config) + hooked(config);
  if (compiled.is_object() || compiled == Json(true)) text += "; model = torch.compile(model)";
  if (config.value("no_sync", false)) {
    text += "; model.no_sync() around all micro-batches but the last";
  }
  return text;
}

}  // namespace syncline::dialect
