#include "core/tune/search_space.h"

#include <algorithm>
#include <charconv>

#include "core/collective/algorithm.h"
#include "core/compress/codec.h"
#include "core/input/parts.h"

namespace syncline {
namespace {

// Four significant digits without trailing zeros.
std::string short_number(double value, int digits = 4) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
  return {text, end.ptr};
}

std::string mebibytes(Bytes bytes) {
  if (bytes < kMiB / 10) return short_number(static_cast<double>(bytes) / kKiB) + " KiB";
  return short_number(static_cast<double>(bytes) / static_cast<double>(kMiB)) + " MiB";
}

// Puts each value of an axis into each strategy; an axis without values keeps the strategies.
template <typename Value, typename Set>
void vary(std::vector<Strategy>& strategies, const std::vector<Value>& values, Set set) {
  if (values.empty()) return;
  std::vector<Strategy> varied;
  for (const auto& strategy : strategies) {
    for (const auto& value : values) set(varied.emplace_back(strategy), value);
  }
  strategies = std::move(varied);
}

// " (one thing; another)": what of a value is not said by its first words. A value that differs
// from another in any field has other words, or two candidates would bear one name.
class Details {
 public:
  void say(bool differs, const std::string& what) {
    if (differs) words_ += (words_.empty() ? " (" : "; ") + what;
  }
  std::string words() const { return words_.empty() ? "" : words_ + ")"; }

 private:
  std::string words_;
};

std::string hierarchy_words(const Hierarchy& hierarchy) {
  if (hierarchy.form == Hierarchy::Form::kFlat) return "flat";
  std::string words = hierarchy.form == Hierarchy::Form::kSharded ? "sharded" : "leaders";
  if (hierarchy.first_all_reduce) words += " (all-reduce first)";
  words += " in groups of " + std::to_string(hierarchy.group_size);
  Details more;
  more.say(!hierarchy.inside.empty(), hierarchy.inside + " inside");
  more.say(!hierarchy.across.empty(), hierarchy.across + " across");
  return words + more.words();
}

// Digits enough to tell 99.999 % from all.
std::string percent(double share) { return short_number(100 * share, 8); }

// "75, 93.75, 99.9": a ramp's sparsities in percent.
std::string ramp_words(const std::vector<double>& sparsity) {
  std::string words;
  for (const double share : sparsity) words += (words.empty() ? "" : ", ") + percent(share);
  return words;
}

std::string compression_words(const Compression& compression) {
  if (compression.codec.empty()) return "uncompressed";
  const Compression usual;
  std::string words = compression.codec;
  if (find_codec(compression.codec)->sparse) {
    words += " at " + percent(compression.sparsity.back()) + " %";
  }
  Details more;
  more.say(compression.sparsity.size() > 1, "by " + ramp_words(compression.sparsity));
  more.say(compression.rampup_begin_step != usual.rampup_begin_step,
           "from step " + std::to_string(compression.rampup_begin_step));
  more.say(compression.rampup_step != usual.rampup_step,
           "a ramp of " + std::to_string(compression.rampup_step) + " steps");
  more.say(compression.min_elements != usual.min_elements,
           "tensors of " + std::to_string(compression.min_elements) + " elements or more");
  more.say(compression.encode_launches != usual.encode_launches,
           std::to_string(compression.encode_launches) + " launches to encode");
  more.say(compression.decode_launches != usual.decode_launches,
           std::to_string(compression.decode_launches) + " launches to decode");
  return words + more.words();
}

std::string averaging_words(const LocalSgd& local) {
  if (!local.enabled) return "gradients at every step";
  const LocalSgd usual;
  const std::string words = local.adaptive ? "adaptive LocalSGD"
                                           : "LocalSGD every " + std::to_string(local.period) +
                                                 (local.period == 1 ? " step" : " steps");
  Details more;
  more.say(local.begin_step != usual.begin_step, "from step " + std::to_string(local.begin_step));
  more.say(local.init_period != usual.init_period,
           "at first every " + std::to_string(local.init_period));
  more.say(local.max_period != usual.max_period,
           "at most every " + std::to_string(local.max_period));
  more.say(local.subgroup != usual.subgroup,
           "gradients all-reduced among " + std::to_string(local.subgroup));
  more.say(local.warmup_gradients, "gradients all-reduced before");
  return words + more.words();
}

std::string compute_fusion_words(const ComputeFusion& fusion) {
  std::string words;
  const auto say = [&](bool on, const char* what) {
    if (on) words += (words.empty() ? "" : " + ") + std::string(what);
  };
  say(fusion.fuse_relu_depthwise_conv, "relu_depthwise_conv");
  say(fusion.fuse_bn_act_ops, "bn_act");
  say(fusion.fuse_bn_add_act_ops, "bn_add_act");
  say(fusion.fuse_gemm_epilogue, "gemm_epilogue");
  say(fusion.fuse_elewise_add_act_ops, "elewise_add_act");
  say(fusion.fuse_all_optimizer_ops, "all_optimizer");
  return words.empty() ? "operators unfused" : "operators fused: " + words;
}

std::string exchange_words(Strategy::Exchange exchange) {
  if (exchange == Strategy::Exchange::kDecoupled) return "decoupled";
  return exchange == Strategy::Exchange::kSharded ? "sharded update" : "all-reduced in one go";
}

// Across steps each layer's parameters are updated before its forward pass; within one, all of them
// at once, unless the base says otherwise.
void set_cross_step(Strategy& strategy, bool value) {
  if (strategy.cross_step == value) return;
  strategy.cross_step = value;
  strategy.update = value && strategy.exchange != Strategy::Exchange::kSharded
                        ? Strategy::Update::kPerBucket
                        : Strategy::Update::kAfterAll;
}

void set_exchange(Strategy& strategy, Strategy::Exchange value) {
  const bool crosses = strategy.cross_step;
  if (strategy.exchange == value) return;
  strategy.exchange = value;
  if (value != Strategy::Exchange::kSharded) strategy.gather_groups.clear();
  if (!crosses) return;
  strategy.cross_step = false;
  set_cross_step(strategy, true);
}

void set_priority(Strategy& strategy, Strategy::Priority value) {
  strategy.priority = value;
  if (value == Strategy::Priority::kReady) strategy.credit = 0;
}

}  // namespace

Search default_search(const Scenario& scenario) {
  Search search;
  search.base = scenario.baseline;
  search.optimum = search.breakpoints = true;
  search.closes = {Fusion::Close::kAfter, Fusion::Close::kBefore};
  search.rules = {Fusion::Rule::kOne};
  const Strategy* base = find_strategy(scenario, search.base);
  if (base->overlap) search.streams = {1, 2, 3, 4};
  // Averaging hides behind nothing, so only the number of buckets matters: a few sizes show it.
  if (base->local_sgd.enabled) {
    search.breakpoints = false;
    search.closes = {Fusion::Close::kAfter};
    for (const int mebibytes : {1, 2, 4, 8, 16, 32, 64}) search.sizes.push_back(mebibytes * kMiB);
  }
  const Cluster& cluster = scenario.cluster;
  if (cluster.ranks() == 1) return search;
  for (const auto& algorithm : algorithms()) search.algorithms.emplace_back(algorithm.name);
  search.hierarchies.emplace_back();
  if (cluster.nodes > 1 && cluster.gpus_per_node > 1) {
    for (const auto form : {Hierarchy::Form::kSharded, Hierarchy::Form::kLeaders}) {
      search.hierarchies.emplace_back();
      search.hierarchies.back().form = form;
      search.hierarchies.back().group_size = cluster.gpus_per_node;
    }
  }
  return search;
}

std::vector<Strategy> arm_strategies(const Search& search, const Strategy& base,
                                     const Cluster& cluster) {
  Strategy plain = base;
  plain.about.clear();
  plain.dialect.clear();
  plain.notes.clear();
  std::vector<Strategy> strategies{plain};
  vary(strategies, search.local_sgds,
       [](Strategy& strategy, const LocalSgd& value) { strategy.local_sgd = value; });
  vary(strategies, search.compressions,
       [](Strategy& strategy, const Compression& value) { strategy.compression = value; });
  vary(strategies, search.hierarchies,
       [](Strategy& strategy, const Hierarchy& value) { strategy.hierarchy = value; });
  vary(strategies, search.algorithms,
       [](Strategy& strategy, const std::string& value) { strategy.algorithm = value; });
  vary(strategies, search.compute_fusions,
       [](Strategy& strategy, const ComputeFusion& value) { strategy.compute_fusion = value; });
  vary(strategies, search.exchanges, set_exchange);
  vary(strategies, search.cross_steps, set_cross_step);
  vary(strategies, search.priorities, set_priority);
  vary(strategies, search.streams, [](Strategy& strategy, int value) { strategy.streams = value; });
  std::erase_if(strategies, [&](const Strategy& strategy) {
    if (!strategy.overlap && strategy.streams > 1) return true;
    // Ticks are the fusion's: a candidate with another fusion may fit.
    Strategy unticked = strategy;
    if (search.varies_fusion()) unticked.fusion.cycle = 0;
    return misfit_of(unticked, cluster).has_value();
  });
  return strategies;
}

bool changes_training(const Strategy& strategy) {
  return !strategy.compression.codec.empty() || strategy.local_sgd.enabled;
}

std::string fusion_words(const Fusion& fusion) {
  switch (fusion.rule) {
    case Fusion::Rule::kNone:
      return "each gradient alone";
    case Fusion::Rule::kLayer:
      return "by layer";
    case Fusion::Rule::kOne:
      return "one bucket";
    case Fusion::Rule::kCount:
      return std::to_string(fusion.count) + " gradients a bucket";
    case Fusion::Rule::kIndex:
      return std::to_string(fusion.ends.size()) +
             (fusion.ends.size() == 1 ? " explicit bucket" : " explicit buckets");
    case Fusion::Rule::kGroups:
      return std::to_string(fusion.groups.size()) + " groups";
    case Fusion::Rule::kMgWfbp:
      return "merged by MG-WFBP";
    case Fusion::Rule::kSize:
      break;
  }
  std::string words = fusion.close == Fusion::Close::kAfter ? "" : "at most ";
  words += mebibytes(fusion.size);
  if (fusion.first_size > 0) words += ", first " + mebibytes(fusion.first_size);
  if (fusion.cycle > 0)
    words += ", a tick every " + short_number(fusion.cycle / kMillisecond) + " ms";
  if (fusion.count > 0) words += ", " + std::to_string(fusion.count) + " gradients";
  return words;
}

std::string arm_words(const Strategy& strategy, const Strategy& base) {
  std::string words;
  const auto say = [&](const std::string& what) { words += (words.empty() ? "" : ", ") + what; };
  if (strategy.streams != base.streams) {
    say(std::to_string(strategy.streams) + (strategy.streams == 1 ? " stream" : " streams"));
  }
  if (strategy.algorithm != base.algorithm) say(strategy.algorithm);
  if (strategy.hierarchy != base.hierarchy) say(hierarchy_words(strategy.hierarchy));
  if (strategy.compression != base.compression) say(compression_words(strategy.compression));
  if (strategy.local_sgd != base.local_sgd) say(averaging_words(strategy.local_sgd));
  if (strategy.compute_fusion != base.compute_fusion) {
    say(compute_fusion_words(strategy.compute_fusion));
  }
  if (strategy.exchange != base.exchange) say(exchange_words(strategy.exchange));
  if (strategy.cross_step != base.cross_step) {
    say(strategy.cross_step ? "across steps" : "step by step");
  }
  if (strategy.priority != base.priority) {
    const bool by_layer = strategy.priority == Strategy::Priority::kLayer;
    say(by_layer ? "first layers first" : "in the order of readiness");
  }
  return words;
}

}  // namespace syncline
