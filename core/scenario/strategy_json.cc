#include "core/scenario/strategy_json.h"

#include <algorithm>

namespace syncline {
namespace {

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
    case Fusion::Rule::kGroups:
      break;
  }
  return "groups";
}

// The end indices of groups that are runs, in whatever order they are listed; empty otherwise.
std::vector<std::int64_t> ends_of(std::vector<std::vector<int>> groups) {
  for (auto& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  std::vector<std::int64_t> ends;
  int next = 0;
  for (const auto& group : groups) {
    for (const int index : group) {
      if (index != next++) return {};
    }
    ends.push_back(group.back());
  }
  return ends;
}

Json fusion_json(const Fusion& fusion) {
  Json json{{"rule", rule_word(fusion.rule)}};
  switch (fusion.rule) {
    case Fusion::Rule::kSize:
      json["size_mb"] = mebibytes(fusion.size);
      if (fusion.first_size > 0) json["first_size_mb"] = mebibytes(fusion.first_size);
      break;
    case Fusion::Rule::kIndex:
      json["ends"] = fusion.ends;
      break;
    case Fusion::Rule::kGroups:
      if (const auto ends = ends_of(fusion.groups); !ends.empty()) {
        json = {{"rule", "index"}, {"ends", ends}};
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
  }
  if (fusion.layer_key == Fusion::LayerKey::kFirstDot) json["layer_key"] = "first_dot";
  if (fusion.align > 1) json["align_bytes"] = fusion.align;
  return json;
}

Json hierarchy_json(const Hierarchy& hierarchy) {
  const bool leaders = hierarchy.form == Hierarchy::Form::kLeaders;
  Json json{{"form", leaders ? "leaders" : "sharded"}, {"group_size", hierarchy.group_size}};
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
  if (!local.adaptive) {
    json["period"] = local.period;
    return json;
  }
  json["adaptive"] = true;
  json["init_period"] = local.init_period;
  json["max_period"] = local.max_period;
  return json;
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
  if (strategy.update == Strategy::Update::kPerBucket) json["update"] = "per_bucket";
  return json;
}

}  // namespace syncline
