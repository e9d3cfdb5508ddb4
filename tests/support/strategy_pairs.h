// Native strategies that hold every value of every knob beside every value of every other, where a
// scenario may hold both: a covering array of strength two, in as few strategies as a greedy walk
// finds. What never goes together is asked for all the same: its refusal is an answer too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "formats/input/document.h"

namespace syncline::test {

// Parts of a strategy, a line a knob: values of one knob exclude each other.
inline const std::vector<std::vector<Json>>& strategy_knobs() {
  static const std::vector<std::vector<Json>> knobs = [] {
    const std::vector<std::vector<std::string>> written{
        {R"({"overlap": false})", R"({"streams": 3})"},
        {R"({"algorithm": "double_binary_tree"})", R"({"algorithm": "nccl"})",
         R"({"algorithm": "halving_doubling"})", R"({"algorithm": "to_one"})"},
        {R"({"fusion": {"rule": "layer"}})", R"({"fusion": {"rule": "size", "size_mb": 1}})",
         R"({"fusion": {"rule": "count", "count": 3}})",
         R"({"fusion": {"rule": "index", "ends": [1, 4]}})", R"({"fusion": {"rule": "one"}})",
         R"({"fusion": {"rule": "groups", "groups": [[0, 2], [1, 3], [5, 4]]}})",
         R"({"fusion": {"rule": "mg_wfbp", "min_elements": 5000}})"},
        {R"({"fusion": {"first_size_mb": 0.25}})"},
        {R"({"fusion": {"close": "before"}})"},
        {R"({"fusion": {"order": "forward"}})"},
        {R"({"fusion": {"cycle_ms": 2}})"},
        {R"({"fusion": {"cast": "fp32"}})"},
        {R"({"fusion": {"by_layer": true}})"},
        {R"({"fusion": {"layer_key": "first_dot"}})"},
        {R"({"fusion": {"align_bytes": 512}})", R"({"fusion": {"align_elements": 64}})"},
        {R"({"fusion": {"pad_elements": 1024}})", R"({"fusion": {"pad_rows": 8}})"},
        {R"({"fusion": {"with_next": true}})", R"({"fusion": {"sums_frozen": true}})"},
        {R"({"fusion": {"cast": "bf16"}})"},
        {R"({"fusion": {"in_turn": true}})"},
        {R"({"fusion": {"cuts": [{"tensor": 4, "at": [100, 5000]}]}})"},
        {R"({"hierarchy": {"form": "leaders", "group_size": 4}})",
         R"({"hierarchy": {"form": "leaders", "group_size": 2, "first": "all_reduce"}})",
         R"({"hierarchy": {"form": "sharded", "group_size": 4, "across": "double_binary_tree"}})",
         R"({"hierarchy": {"form": "sharded", "group_size": 2, "across_stream": true,
                           "across_last": true}})"},
        {R"({"compression": {"codec": "dgc", "sparsity": [0.99], "min_elements": 2000}})",
         R"({"compression": {"codec": "fp16"}})", R"({"compression": {"codec": "bf16"}})",
         R"({"compression": {"codec": "powersgd", "rank": 2}})",
         R"({"compression": {"codec": "batched_powersgd", "rank": 2}})"},
        {R"({"local_sgd": {"period": 3}})", R"({"local_sgd": {"period": 2, "subgroup": 4}})",
         R"({"local_sgd": {"adaptive": true, "begin_step": 3}})",
         R"({"local_sgd": {"period": 2, "warmup": "gradients", "begin_step": 3}})"},
        {R"({"compute_fusion": {"fuse_all_optimizer_ops": true}})",
         R"({"compute_fusion": {"fuse_gemm_epilogue": true}})"},
        {R"({"update": "per_bucket"})"},
        {R"({"preset": "mg_wfbp"})", R"({"preset": "dear"})", R"({"preset": "bytescheduler"})"},
        {R"({"exchange": "decoupled"})", R"({"exchange": "sharded"})",
         R"({"exchange": "sharded_update"})"},
        {R"({"gather_groups": [[0, 1, 2], [3, 4, 5]]})"},
        {R"({"cross_step": true})"},
        {R"({"priority": "layer"})"},
        {R"({"credit_mb": 2})"},
        {R"({"partition_mb": 0.5})"},
        {R"({"bucket_copies": true})"},
        {R"({"host_sync": true})"},
        {R"({"broadcast_buffers": false})"},
        {R"({"regather": true})"},
        {R"({"each_micro_batch": true})"},
        {R"({"in_flight": 1})"},
        {R"({"offload": "optimizer"})"},
        {R"({"regather_group": 2})"},
        {R"({"kept_groups": 1})"},
        {R"({"kept_in_step": true})"},
        {R"({"fetches": {"live_elements": 300000, "ahead_elements": 50000, "reuse_elements": 1000}})"},
        {R"({"gather_format": "bf16"})", R"({"gather_format": "fp8"})"},
        {R"({"pieces": [2]})"},
    };
    std::vector<std::vector<Json>> read;
    for (const auto& values : written) {
      auto& knob = read.emplace_back();
      for (const auto& value : values) knob.push_back(Json::parse(value));
    }
    return read;
  }();
  return knobs;
}

class StrategyPairs {
 public:
  // `base` is a scenario; its strategies are replaced.
  explicit StrategyPairs(Json base) : base_(std::move(base)) {
    for (std::size_t knob = 0; knob < strategy_knobs().size(); ++knob) {
      for (const Json& value : strategy_knobs()[knob]) {
        if (enables(value)) enabling_.push_back(settings_.size());
        settings_.push_back({knob, value});
      }
    }
  }

  // Scenarios of one strategy each.
  std::vector<Json> scenarios() {
    std::vector<Json> all;
    for (Index a = 0; a < settings_.size(); ++a) {
      for (Index b = a + 1; b < settings_.size(); ++b) {
        if (settings_[a].knob == settings_[b].knob || covered_.count({a, b}) > 0) continue;
        all.push_back(scenario(widened(made_possible({a, b}))));
      }
    }
    return all;
  }

 private:
  using Index = std::size_t;
  struct Setting {
    std::size_t knob;
    Json value;
  };

  // Whether other knobs say that they need this one.
  static bool enables(const Json& value) {
    if (value.contains("fusion")) {
      const auto rule = value["fusion"].value("rule", "");
      return rule == "size" || rule == "groups" || value["fusion"].contains("close");
    }
    return value.contains("cross_step") || value.contains("priority") ||
           value.value("exchange", "") == "sharded" || value.contains("regather") ||
           value.contains("each_micro_batch") || value.contains("gather_groups");
  }

  Json scenario(const std::set<Index>& chosen) const {
    Json strategy{{"name", "s"}};
    for (const Index each : chosen) strategy.merge_patch(settings_[each].value);
    Json root = base_;
    root["strategies"] = Json::array({strategy});
    if (strategy.contains("local_sgd") && strategy["local_sgd"].contains("adaptive")) {
      root["training"] = Json::parse(
          R"({"steps": 20, "loss": [[0, 2], [20, 1]], "learning_rate": {"initial": 0.1}})");
    }
    return root;
  }

  bool possible(const std::set<Index>& chosen) const {
    try {
      input::parse_scenario(input::document_from_text("pair.json", scenario(chosen).dump()));
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  bool free(const std::set<Index>& chosen, Index more) const {
    return std::ranges::none_of(
        chosen, [&](Index each) { return settings_[each].knob == settings_[more].knob; });
  }

  // With up to three of what others need beside them; as it is where none make it valid.
  std::set<Index> made_possible(const std::set<Index>& pair) const {
    std::vector<std::set<Index>> tried{pair};
    for (std::size_t next = 0; next < tried.size(); ++next) {
      const std::set<Index> chosen = tried[next];
      if (possible(chosen)) return chosen;
      if (chosen.size() == pair.size() + 3) continue;
      for (const Index more : enabling_) {
        if (!free(chosen, more)) continue;
        tried.push_back(chosen);
        tried.back().insert(more);
      }
    }
    return pair;
  }

  // With each further setting that is still unseen beside one of these, as long as all is valid.
  std::set<Index> widened(std::set<Index> chosen) {
    if (possible(chosen)) {
      for (Index more = 0; more < settings_.size() && chosen.size() < kMaxSettings; ++more) {
        if (!free(chosen, more) || !adds_pairs(chosen, more)) continue;
        std::set<Index> wider = chosen;
        wider.insert(more);
        if (possible(wider)) chosen = wider;
      }
    }
    for (const Index a : chosen) {
      for (const Index b : chosen) {
        if (a < b) covered_.insert({a, b});
      }
    }
    return chosen;
  }

  bool adds_pairs(const std::set<Index>& chosen, Index more) const {
    return std::ranges::none_of(
        chosen, [&](Index each) { return covered_.count(std::minmax(each, more)) > 0; });
  }

  static constexpr std::size_t kMaxSettings = 10;
  Json base_;
  std::vector<Setting> settings_;
  std::vector<Index> enabling_;
  std::set<std::pair<Index, Index>> covered_;
};

}  // namespace syncline::test
