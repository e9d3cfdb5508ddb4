// A framework's settings of only the exchange, which are nearly a strategy's configuration:
// Paddle's DistributedStrategy as JSON or by save_to_prototxt (paddlepaddle 2.6.2,
// distributed_strategy.py), MindSpore's set_auto_parallel_context, Horovod's variables,
// DistributedDataParallel's arguments.
#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "formats/json/text.h"
#include "formats/text/limits.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

using Names = std::set<std::string, std::less<>>;

struct OwnSettings {
  const char* framework;
  const char* dialect;
  Names marks;
  Names known;           // by the dialect; empty: it accepts all
  Names without_effect;  // on a step's time
};

const std::vector<OwnSettings>& own_settings() {
  static const std::vector<OwnSettings> all{
      {"Horovod",
       "horovod",
       {"HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME", "HOROVOD_HIERARCHICAL_ALLREDUCE",
        "HOROVOD_NUM_NCCL_STREAMS", "HOROVOD_AUTOTUNE"},
       {},
       {}},
      {"Paddle",
       "paddle",
       {"fuse_grad_size_in_MB", "fuse_all_reduce_ops", "nccl_comm_num", "sync_nccl_allreduce",
        "use_hierarchical_allreduce", "dgc", "localsgd"},
       {"fuse_all_reduce_ops", "fuse_grad_size_in_MB", "fuse_grad_size_in_TFLOPS",
        "_fuse_grad_size_in_TFLOPS", "nccl_comm_num", "sync_nccl_allreduce",
        "use_hierarchical_allreduce", "hierarchical_allreduce_inter_nranks", "sync_batch_norm",
        "build_strategy", "dgc", "localsgd", "adaptive_localsgd", "amp", "amp_configs",
        "dgc_configs", "localsgd_configs", "adaptive_localsgd_configs"},
       {"mode", "cudnn_exhaustive_search", "conv_workspace_size_limit",
        "cudnn_batchnorm_spatial_persistent", "find_unused_parameters", "elastic", "auto",
        "execution_strategy", "gradient_scale_configs", "recompute_configs", "heter_ccl_mode",
        "without_graph_optimization", "split_data", "last_comm_group_size_MB",
        "fuse_grad_size_in_num", "calc_comm_same_stream", "fuse_grad_merge"}},
      {"MindSpore",
       "mindspore",
       {"comm_fusion", "all_reduce_fusion_config", "parallel_mode"},
       {"parallel_mode", "comm_fusion", "enable_parallel_optimizer", "parallel_optimizer_config",
        "set_comm_fusion"},
       {"gradients_mean", "mirror_mean", "device_num", "global_rank", "parameter_broadcast",
        "strategy_ckpt_load_file", "strategy_ckpt_save_file", "full_batch", "dataset_strategy",
        "gradient_fp32_sync", "loss_repeated_mean", "communi_parallel_mode", "group_ckpt_save_file",
        "strategy_ckpt_config"}},
      {"PyTorch",
       "pytorch",
       {"bucket_cap_mb", "find_unused_parameters", "gradient_as_bucket_view", "static_graph"},
       {},
       {}}};
  return all;
}

// Refuses keys that change the exchange and are not modelled.
void refuse_unmodelled(const Json& json, const std::string& file) {
  const Keys keys{json, file};
  for (const char* key : {"sharding", "pipeline", "tensor_parallel", "a_sync", "fp16_allreduce",
                          "semi_auto", "auto_search", "is_fl_ps_mode"}) {
    if (json.contains(key) && keys.on(key)) {
      fail(file, key, "is not modelled in Paddle's static graphs yet: leave it out, or false");
    }
  }
  const Json stages = json.value("pipeline_stages", Json(1));
  if (stages != 1) fail(file, "pipeline_stages", "is the layout's: name the model, and --pp");
}

// Takes keys of both frameworks that do not change the exchange.
void take_around(Json& json, const std::string& file, Settings& settings) {
  const Keys keys{json, file};
  if (json.contains("recompute") && keys.on("recompute")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  if (json.contains("gradient_merge") && keys.on("gradient_merge")) {
    const Json& merge = section_of(json, "gradient_merge_configs");
    settings.micro_batches = Keys{merge, file}.size("k_steps", 1);
  }
  settings.micro_batches = std::max(settings.micro_batches, keys.size("grad_accumulation_step", 0));
  settings.ranks = keys.size("device_num", 0);
  // An older spelling of comm_fusion by index.
  if (has_value(json, "all_reduce_fusion_config")) {
    if (has_value(json, "comm_fusion")) {
      fail(file, "all_reduce_fusion_config", "given twice, also as 'comm_fusion'");
    }
    json["comm_fusion"] = {
        {"allreduce", {{"mode", "index"}, {"config", json["all_reduce_fusion_config"]}}}};
  }
  for (const char* key : {"recompute", "gradient_merge", "gradient_merge_configs",
                          "grad_accumulation_step", "all_reduce_fusion_config"}) {
    json.erase(key);
  }
}

bool is_unset(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "" || value.is_object();
}

// Reads protobuf's text: "name: value", "name { ... }"; a repeated name makes a list.
class TextReader {
 public:
  TextReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  Json message(int depth) {
    Json all = Json::object();
    while (skip_to_next() && text_[at_] != '}' && text_[at_] != '>') {
      const std::string name = word();
      if (name.empty()) wrong();
      Json one = value(depth);
      if (!all.contains(name)) {
        all[name] = std::move(one);
      } else {
        if (!all[name].is_array()) all[name] = Json::array({all[name]});
        all[name].push_back(std::move(one));
      }
      if (++values_ > kMaxValues || all.size() > kMaxKeys) wrong();
    }
    if (depth > 0 && at_ == text_.size()) wrong();
    if (depth == 0 && at_ < text_.size()) wrong();
    ++at_;
    return all;
  }

 private:
  Json value(int depth) {
    if (skip_to_next() && text_[at_] == ':') ++at_;
    if (!skip_to_next() || depth > static_cast<int>(kDeepest)) wrong();
    if (text_[at_] == '{' || text_[at_] == '<') {
      ++at_;
      return message(depth + 1);
    }
    if (text_[at_] == '"' || text_[at_] == '\'') {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == text_.npos) wrong();
      const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return inside;
    }
    const std::string plain = word();
    if (plain.empty()) wrong();
    if (plain == "true" || plain == "false") return plain == "true";
    return number_or_text(plain);
  }

  // Skips blanks, separators and comments. Returns false at the end of the text.
  bool skip_to_next() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',' || c == ';') {
        ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
            std::string_view("_.+-").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  [[noreturn]] void wrong() const {
    const auto line =
        1 + std::count(text_.begin(),
                       text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())),
                       '\n');
    throw InputError(file_ + ": line " + std::to_string(line) +
                     ": no text of protobuf: expected 'name: value' or 'name { ... }'");
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

std::optional<Settings> of_own_settings(const Json& given_settings, const std::string& file) {
  Json json = given_settings;
  for (const OwnSettings& own : own_settings()) {
    const bool marked = std::ranges::any_of(
        own.marks, [&](const std::string& mark) { return json.contains(mark); });
    if (!marked) continue;
    Settings settings;
    settings.framework = own.framework;
    settings.modules = settings.framework == "Horovod";  // the others compile a graph
    settings.autocast = true;  // if the device has a half precision; none is given
    if (!own.known.empty()) {
      refuse_unmodelled(json, file);
      take_around(json, file, settings);
      std::string left;
      const Json all = json;
      for (const auto& [key, value] : all.items()) {
        if (own.known.contains(key)) continue;
        if (!own.without_effect.contains(key) && !is_unset(value)) {
          left += (left.empty() ? "" : ", ") + key;
        }
        json.erase(key);
      }
      if (!left.empty()) {
        settings.assumed.push_back("nothing gained or lost by what is left out: " + left);
      }
    }
    settings.strategy = {{"dialect", own.dialect}, {"config", std::move(json)}};
    return settings;
  }
  return std::nullopt;
}

Settings of_prototxt(const std::string& text, const std::string& file) {
  const Json json = TextReader(text, file).message(0);
  const auto settings = of_own_settings(json, file);
  if (settings && settings->framework == "Paddle" && json.size() >= 2) return *settings;
  throw InputError(file + ": no DistributedStrategy of Paddle's");
}

}  // namespace syncline::job::frameworks
