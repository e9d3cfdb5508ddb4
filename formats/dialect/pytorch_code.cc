// Writes DistributedDataParallel's or FSDP's configuration as script lines. Names are torch's:
// torch/nn/parallel/distributed.py, torch/distributed/algorithms and torch/distributed/fsdp.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats/dialect/dialects.h"
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

// Returns the module with the children of a pattern, "model.layers"; empty: not a pattern.
std::string holder_of(const std::string& unit) {
  return unit.ends_with(".*") ? "model." + unit.substr(0, unit.size() - 2) : "";
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

// Returns "init_device_mesh("cuda", (4, 8), mesh_dim_names=("replicate", "shard"))".
std::string mesh_of(const Json& sizes) {
  if (sizes.size() < 2) return "init_device_mesh(\"cuda\", (" + sizes[0].dump() + ",))";
  return "init_device_mesh(\"cuda\", (" + sizes[0].dump() + ", " + sizes[1].dump() +
         "), mesh_dim_names=(\"replicate\", \"shard\"))";
}

// Returns the call that wraps the modules of one entry of `units`.
std::string unit_code(const Json& unit) {
  if (unit.is_array()) {
    std::string modules;
    for (const Json& each : unit) modules += ", model." + each.get<std::string>();
    return "fully_shard([" + after_comma(modules) + "], **fsdp); ";
  }
  const std::string name = unit.get<std::string>();
  const std::string holder = holder_of(name);
  if (holder.empty()) return "fully_shard(model." + name + ", **fsdp); ";
  return "[fully_shard(unit, **fsdp) for unit in " + holder + "]; ";
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
  std::string text = "fsdp = dict(" + after_comma(arguments) + "); ";
  for (const Json& unit : config.value("units", Json::array())) text += unit_code(unit);
  text += "fully_shard(model, **fsdp)";
  if (config.value("no_sync", false)) {
    text += "; model.set_requires_gradient_sync(False) in all micro-batches but the last";
  }
  return text;
}

}  // namespace

std::string fsdp_code(const Json& config) {
  const Json units = config.value("units", Json::array());
  const auto nested = [](const Json& unit) {
    return unit.is_string() && holder_of(unit.get<std::string>()).find('*') != std::string::npos;
  };
  // Settings that would take many lines are written as keys.
  const bool lines = config.value("version", 2) == 2 && !config.contains("not_resharded") &&
                     !config.contains("set_requires_all_reduce") && units.is_array() &&
                     std::none_of(units.begin(), units.end(), nested);
  return lines ? fsdp2_code(config) : on_one_line(config);
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
