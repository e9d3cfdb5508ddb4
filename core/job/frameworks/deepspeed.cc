// DeepSpeed's JSON: the layout is what it says of tensor and sequence parallelism; the model and a
// pipeline's stages stand in the script. Source: DeepSpeed edaa7221, deepspeed/runtime/config.py
// and runtime/tensor_parallel/config.py.
#include "core/job/frameworks/settings.h"
#include "core/json/reader.h"

namespace syncline::job::frameworks {
namespace {

std::int64_t size_of(Reader& reader, const char* key, std::int64_t most) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null() || *value == "auto") return 0;
  return reader.integer(key, 1, most);
}

bool enabled(const Json& json, const char* key) {
  const auto section = json.find(key);
  return section != json.end() && section->is_object() && section->value("enabled", Json()) == true;
}

}  // namespace

Settings of_deepspeed(const Json& json, const std::string& file) {
  Reader reader(json, file, "");
  Settings settings;
  settings.framework = "DeepSpeed";
  Json parallel = Json::object();
  if (reader.has("tensor_parallel")) {
    Reader tensor = reader.object("tensor_parallel");
    const std::int64_t size = size_of(tensor, "autotp_size", kMostRanks);
    if (size > 1) parallel["tensor"] = size;
  }
  const std::int64_t sequence = size_of(reader, "sequence_parallel_size", kMostRanks);
  if (sequence > 1) {
    parallel["context"] = sequence;
    parallel["context_exchange"] = "all_to_all";
  }
  if (!parallel.empty()) settings.workload["parallel"] = std::move(parallel);
  const std::int64_t micro = size_of(reader, "train_micro_batch_size_per_gpu", kMostSamples);
  if (micro > 0) settings.workload["batch"] = micro;
  settings.micro_batches = size_of(reader, "gradient_accumulation_steps", kMostSamples);
  settings.global_batch = size_of(reader, "train_batch_size", kMostSamples);
  const bool bf16 = enabled(json, "bf16"), fp16 = enabled(json, "fp16");
  settings.workload["operators"] = {{"dtype", bf16 ? "bf16" : fp16 ? "fp16" : "fp32"}};
  Json config = json;
  // The layout is the workload's.
  for (const char* key : {"tensor_parallel", "sequence_parallel_size"}) config.erase(key);
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    config.erase(key);
  }
  settings.strategy = {{"dialect", "deepspeed"}, {"config", std::move(config)}};
  return settings;
}

}  // namespace syncline::job::frameworks
