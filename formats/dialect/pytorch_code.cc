// A configuration of DistributedDataParallel as the lines of a script. Names are torch's:
// torch/nn/parallel/distributed.py and torch/distributed/algorithms.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats/dialect/dialects.h"

namespace syncline::dialect {
namespace {

// Set around the model, or of no argument's name.
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

// ", bucket_cap_mb=2, gradient_as_bucket_view=True"
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

}  // namespace

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
