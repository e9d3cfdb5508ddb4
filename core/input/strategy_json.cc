#include "core/input/strategy_json.h"

#include <algorithm>

namespace syncline {
namespace {

constexpr double kBytesPerMegabyte = 1e6;

double mebibytes(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

const char* rule_word(Fusion::Rule rule) {
  switch (rule) {
    case Fusion::Rule::kNone:
      return "none";
    case Fusion::Rule::kLayer:
      return "layer";
    case Fusion::Rule::kSize:
      return "size";
    case Fusion::Rule::kCount:
      return "count";
    case Fusion::Rule::kIndex:
      return "index";
    case Fusion::Rule::kOne:
      return "one";
    case Fusion::Rule::kMgWfbp:
      return "mg_wfbp";
    case Fusion::Rule::kGroups:
      break;
  }
  return "groups";
}

Json fusion_json(const Fusion& fusion) {
  Json json{{"rule", rule_word(fusion.rule)}};
  switch (fusion.rule) {
    case Fusion::Rule::kSize:
      // A limit of nothing leaves each gradient alone, as that of a byte does.
      json["size_mb"] = mebibytes(std::max<Bytes>(1, fusion.size));
      if (fusion.first_size > 0) json["first_size_mb"] = mebibytes(fusion.first_size);
      break;
    case Fusion::Rule::kIndex:
      json["ends"] = fusion.ends;
      break;
    case Fusion::Rule::kGroups:
      // A rule without a group leaves each gradient alone.
      if (fusion.groups.empty()) {
        json = {{"rule", "none"}};
      } else {
        json["groups"] = fusion.groups;
      }
      break;
    default:
      break;
  }
  if (fusion.rule == Fusion::Rule::kSize || fusion.rule == Fusion::Rule::kCount) {
    if (fusion.count > 0) json["count"] = fusion.count;
    if (fusion.close == Fusion::Close::kBefore) json["close"] = "before";
    if (fusion.by_layer) json["by_layer"] = true;
    if (fusion.order == Fusion::Order::kForward) json["order"] = "forward";
    if (fusion.cycle > 0) json["cycle_ms"] = fusion.cycle / kMillisecond;
  }
  if (fusion.min_elements > 0) json["min_elements"] = fusion.min_elements;
  for (const auto& cost : fusion.costs) {
    json["costs"].push_back(
        {{"ranks", cost.ranks},
         {"latency_us", cost.latency / kMicrosecond},
         {"us_per_mbyte", cost.seconds_per_byte / kMicrosecond * kBytesPerMegabyte}});
  }
  if (fusion.to_fp32) json["cast"] = "fp32";
  if (fusion.layer_key == Fusion::LayerKey::kFirstDot) json["layer_key"] = "first_dot";
  if (fusion.align > 1) json["align_bytes"] = fusion.align;
  return json;
}

Json hierarchy_json(const Hierarchy& hierarchy) {
  const bool leaders = hierarchy.form == Hierarchy::Form::kLeaders;
  Json json{{"form", leaders ? "leaders" : "sharded"}, {"group_size", hierarchy.group_size}};
  if (hierarchy.group_size == 0) json.erase("group_size");
  if (leaders && hierarchy.first_all_reduce) json["first"] = "all_reduce";
  if (!hierarchy.inside.empty()) json["inside"] = hierarchy.inside;
  if (!hierarchy.across.empty()) json["across"] = hierarchy.across;
  return json;
}

Json compression_json(const Compression& compression) {
  Json json{{"codec", compression.codec}};
  if (compression.codec == "dgc") {
    json["sparsity"] = compression.sparsity;
    json["rampup_begin_step"] = compression.rampup_begin_step;
    json["rampup_step"] = compression.rampup_step;
    json["min_elements"] = compression.min_elements;
  }
  json["encode_launches"] = compression.encode_launches;
  json["decode_launches"] = compression.decode_launches;
  return json;
}

Json local_sgd_json(const LocalSgd& local) {
  Json json{{"begin_step", local.begin_step}};
  if (local.subgroup > 1) json["subgroup"] = local.subgroup;
  if (local.warmup_gradients) json["warmup"] = "gradients";
  if (!local.adaptive) {
    json["period"] = local.period;
    return json;
  }
  json["adaptive"] = true;
  json["init_period"] = local.init_period;
  json["max_period"] = local.max_period;
  return json;
}

// What is exchanged when.
void add_schedule(Json& json, const Strategy& strategy) {
  using Exchange = Strategy::Exchange;
  if (strategy.exchange == Exchange::kDecoupled) json["exchange"] = "decoupled";
  if (strategy.exchange == Exchange::kSharded) {
    json["exchange"] = "sharded";
    if (!strategy.gather_groups.empty()) json["gather_groups"] = strategy.gather_groups;
  }
  if (strategy.cross_step) json["cross_step"] = true;
  if (strategy.priority == Strategy::Priority::kLayer) {
    json["priority"] = "layer";
    if (strategy.credit > 0) json["credit_mb"] = mebibytes(strategy.credit);
  }
  if (strategy.partition > 0) json["partition_mb"] = mebibytes(strategy.partition);
  if (strategy.bucket_copies) json["bucket_copies"] = true;
  if (strategy.host_sync) json["host_sync"] = true;
  const bool each = strategy.cross_step && strategy.exchange != Exchange::kSharded;
  const bool per_bucket = strategy.update == Strategy::Update::kPerBucket;
  if (per_bucket != each) json["update"] = per_bucket ? "per_bucket" : "after_all";
}

// Only what differs from the defaults.
void add_compute_fusion(Json& json, const ComputeFusion& fusion) {
  Json object = Json::object();
  if (fusion.fuse_relu_depthwise_conv) object["fuse_relu_depthwise_conv"] = true;
  if (fusion.fuse_bn_act_ops) object["fuse_bn_act_ops"] = true;
  if (fusion.fuse_bn_add_act_ops) object["fuse_bn_add_act_ops"] = true;
  if (fusion.fuse_gemm_epilogue) object["fuse_gemm_epilogue"] = true;
  if (fusion.fuse_elewise_add_act_ops) object["fuse_elewise_add_act_ops"] = true;
  if (fusion.fuse_all_optimizer_ops) object["fuse_all_optimizer_ops"] = true;
  if (object.empty()) return;
  if (!fusion.fuse_bn_add_act_ops) object["fuse_bn_add_act_ops"] = false;
  json["compute_fusion"] = object;
}

}  // namespace

Json strategy_json(const Strategy& strategy) {
  Json json{{"name", strategy.name}};
  if (!strategy.about.empty()) json["about"] = strategy.about;
  if (!strategy.overlap) json["overlap"] = false;
  if (strategy.streams > 1) json["streams"] = strategy.streams;
  json["algorithm"] = strategy.algorithm;
  json["fusion"] = fusion_json(strategy.fusion);
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    json["hierarchy"] = hierarchy_json(strategy.hierarchy);
  }
  if (!strategy.compression.codec.empty()) {
    json["compression"] = compression_json(strategy.compression);
  }
  if (strategy.local_sgd.enabled) json["local_sgd"] = local_sgd_json(strategy.local_sgd);
  add_schedule(json, strategy);
  add_compute_fusion(json, strategy.compute_fusion);
  return json;
}

}  // namespace syncline
