#include "core/input/parts.h"

#include <algorithm>

#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/error.h"
#include "core/json/reader.h"
#include "core/plan/compute_fusion.h"

namespace syncline {
namespace {

constexpr double kBytesPerMegabyte = 1e6;

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin < list.size()) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return names;
}

Bytes mebibytes(double value) { return static_cast<Bytes>(value * static_cast<double>(kMiB)); }

// Lists of places among `count` tensors, each place at most once.
std::vector<std::vector<int>> read_groups(Reader& reader, const char* key, std::size_t count) {
  std::vector<std::vector<int>> groups;
  std::vector<bool> taken(count, false);
  const Json& lists = reader.array(key);
  for (std::size_t g = 0; g < lists.size(); ++g) {
    const std::string place = reader.place_of(key) + "[" + std::to_string(g) + "]";
    const auto fail = [&](const std::string& what) {
      throw InputError(reader.file() + ": " + place + ": " + what);
    };
    if (!lists[g].is_array()) fail("found " + describe(lists[g]) + ", expected a list of places");
    if (lists[g].empty()) fail("empty, expected at least one place");
    auto& group = groups.emplace_back();
    for (std::size_t i = 0; i < lists[g].size(); ++i) {
      const auto at = static_cast<std::size_t>(
          checked_integer(lists[g][i], 0, static_cast<std::int64_t>(count) - 1, reader.file(),
                          place + "[" + std::to_string(i) + "]"));
      if (taken[at]) fail("found " + std::to_string(at) + " twice, expected each tensor once");
      taken[at] = true;
      group.push_back(static_cast<int>(at));
    }
  }
  if (groups.empty()) reader.fail(key, "empty, expected at least one group");
  return groups;
}

Fusion read_fusion(Reader reader, const Workload& workload) {
  Fusion fusion;
  const std::string rule = reader.word_or(
      "rule", "size", {"none", "layer", "size", "count", "index", "groups", "one", "mg_wfbp"});
  const bool by_size = rule == "size";
  const bool by_count = rule == "count";
  fusion.rule = rule == "none"     ? Fusion::Rule::kNone
                : rule == "layer"  ? Fusion::Rule::kLayer
                : by_size          ? Fusion::Rule::kSize
                : by_count         ? Fusion::Rule::kCount
                : rule == "index"  ? Fusion::Rule::kIndex
                : rule == "one"    ? Fusion::Rule::kOne
                : rule == "groups" ? Fusion::Rule::kGroups
                                   : Fusion::Rule::kMgWfbp;

  // A limit that the rule would ignore is a mistake, not a decoration.
  const auto only_for = [&](const char* key, bool applies, const char* rules) {
    if (reader.has(key) && !applies) {
      reader.fail(key, "has no meaning with rule '" + rule + "', only with " + rules);
    }
  };
  only_for("size_mb", by_size, "'size'");
  only_for("first_size_mb", by_size, "'size'");
  only_for("count", by_size || by_count, "'size' and 'count'");
  only_for("ends", rule == "index", "'index'");
  only_for("groups", rule == "groups", "'groups'");
  only_for("close", by_size || by_count, "'size' and 'count'");
  only_for("by_layer", by_size || by_count, "'size' and 'count'");
  only_for("order", by_size || by_count, "'size' and 'count'");
  only_for("cycle_ms", by_size, "'size'");
  only_for("min_elements", rule == "mg_wfbp", "'mg_wfbp'");
  only_for("costs", rule == "mg_wfbp", "'mg_wfbp'");

  if (by_size) fusion.size = mebibytes(reader.number("size_mb", {0, 1e9, true}));
  if (by_size) fusion.first_size = mebibytes(reader.number_or("first_size_mb", 0, {0, 1e9}));
  if (by_count) reader.require("count");
  fusion.count = reader.integer_or("count", 0, 1, kMostSteps);
  if (rule == "index") {
    const Json& ends = reader.array("ends");
    if (ends.empty()) reader.fail("ends", "empty, expected at least one end index");
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::int64_t end =
          checked_integer(ends[i], 0, kMostSteps, reader.file(),
                          reader.place_of("ends") + "[" + std::to_string(i) + "]");
      if (!fusion.ends.empty() && end <= fusion.ends.back()) {
        reader.fail("ends", "found " + std::to_string(end) + " after " +
                                std::to_string(fusion.ends.back()) + ", expected rising indices");
      }
      fusion.ends.push_back(end);
    }
  }
  if (rule == "groups") {
    fusion.groups =
        read_groups(reader, "groups", workload.tensors.size() + workload.buffers.size());
  }
  fusion.close = reader.word_or("close", "after", {"after", "before"}) == "before"
                     ? Fusion::Close::kBefore
                     : Fusion::Close::kAfter;
  fusion.by_layer = reader.boolean_or("by_layer", false);
  fusion.order = reader.word_or("order", "backward", {"backward", "forward"}) == "forward"
                     ? Fusion::Order::kForward
                     : Fusion::Order::kBackward;
  fusion.cycle = reader.number_or("cycle_ms", 0, {0, 1e6}) * kMillisecond;
  fusion.min_elements = reader.integer_or("min_elements", 0, 0, kMostSteps);
  for (Reader& item : reader.objects("costs")) {
    Fusion::AssumedCost cost;
    cost.ranks = static_cast<int>(item.integer("ranks", 2, 1 << 20));
    cost.latency = item.number("latency_us", {0, 1e9}) * kMicrosecond;
    cost.seconds_per_byte =
        item.number("us_per_mbyte", {0, 1e9}) * kMicrosecond / kBytesPerMegabyte;
    item.finish();
    fusion.costs.push_back(cost);
  }
  fusion.to_fp32 = reader.word_or("cast", "none", {"none", "fp32"}) == "fp32";
  fusion.layer_key =
      reader.word_or("layer_key", "last_dot", {"last_dot", "first_dot"}) == "first_dot"
          ? Fusion::LayerKey::kFirstDot
          : Fusion::LayerKey::kLastDot;
  fusion.align = reader.integer_or("align_bytes", 1, 1, 1 << 20);
  reader.finish();
  if (fusion.cycle > 0) {
    // Packing at a tick has a rule of its own: Horovod's.
    if (fusion.close != Fusion::Close::kBefore) {
      reader.fail("cycle_ms",
                  "needs close: before, as what is packed at a tick never exceeds size_mb");
    }
    for (const char* key : {"first_size_mb", "count", "by_layer", "order"}) {
      if (reader.has(key)) reader.fail(key, "has no meaning with cycle_ms");
    }
  }
  return fusion;
}

}  // namespace

Hierarchy read_hierarchy(Reader reader, const Cluster& cluster) {
  Hierarchy hierarchy;
  hierarchy.form = reader.word_or("form", "leaders", {"leaders", "sharded"}) == "sharded"
                       ? Hierarchy::Form::kSharded
                       : Hierarchy::Form::kLeaders;
  const int ranks = cluster.ranks();
  hierarchy.group_size =
      static_cast<int>(reader.integer_or("group_size", cluster.gpus_per_node, 1, ranks));
  if (ranks % hierarchy.group_size != 0) {
    reader.fail("group_size", "found " + std::to_string(hierarchy.group_size) +
                                  ", expected a divisor of the " + std::to_string(ranks) +
                                  " ranks");
  }
  const bool leaders = hierarchy.form == Hierarchy::Form::kLeaders;
  if (reader.has("first") && !leaders) reader.fail("first", "has no meaning with form 'sharded'");
  hierarchy.first_all_reduce =
      reader.word_or("first", "reduce", {"reduce", "all_reduce"}) == "all_reduce";
  const auto names = split_names(algorithm_choices());
  hierarchy.inside = reader.word_or("inside", "", names);
  hierarchy.across = reader.word_or("across", "", names);
  reader.finish();
  return hierarchy;
}

Compression read_compression(Reader reader) {
  Compression compression;
  compression.codec = reader.word_or("codec", "dgc", split_names(codec_names()));
  const bool sparse = find_codec(compression.codec)->sparse;
  for (const char* key : {"sparsity", "rampup_begin_step", "rampup_step", "min_elements"}) {
    if (reader.has(key) && !sparse) {
      reader.fail(key, "has no meaning with codec '" + compression.codec + "'");
    }
  }
  if (reader.has("sparsity")) {
    const Json& ramp = reader.array("sparsity");
    if (ramp.empty()) reader.fail("sparsity", "empty, expected at least one value");
    compression.sparsity.clear();
    for (std::size_t i = 0; i < ramp.size(); ++i) {
      const std::string place = reader.place_of("sparsity") + "[" + std::to_string(i) + "]";
      const double value = checked_number(ramp[i], {0, 1}, reader.file(), place);
      if (value == 1) reader.fail("sparsity", "found 1, expected numbers below 1");
      compression.sparsity.push_back(value);
    }
  }
  compression.rampup_begin_step = reader.integer_or("rampup_begin_step", 0, 0, kMostSteps);
  compression.rampup_step = reader.integer_or("rampup_step", 1, 1, kMostSteps);
  compression.encode_launches = reader.integer_or("encode_launches", 1, 0, 100000);
  compression.decode_launches = reader.integer_or("decode_launches", 1, 0, 100000);
  compression.min_elements = reader.integer_or("min_elements", 16384, 0, kMostSteps);
  reader.finish();
  return compression;
}

LocalSgd read_local_sgd(Reader reader, int ranks) {
  LocalSgd local;
  local.enabled = true;
  local.adaptive = reader.boolean_or("adaptive", false);
  if (local.adaptive && reader.has("period")) {
    reader.fail("period", "has no meaning with adaptive, which starts from init_period");
  }
  for (const char* key : {"init_period", "max_period"}) {
    if (!local.adaptive && reader.has(key)) {
      reader.fail(key, "has a meaning only with adaptive: true");
    }
  }
  local.period = reader.integer_or("period", 1, 1, 1 << 20);
  local.begin_step = reader.integer_or("begin_step", 1, 1, kMostSteps);
  local.init_period = reader.integer_or("init_period", 1, 1, 1 << 20);
  local.max_period = reader.integer_or("max_period", 16, 1, 1 << 20);
  local.subgroup = static_cast<int>(reader.integer_or("subgroup", 1, 1, ranks));
  if (ranks % local.subgroup != 0) {
    reader.fail("subgroup", "found " + std::to_string(local.subgroup) +
                                ", expected a divisor of the " + std::to_string(ranks) + " ranks");
  }
  local.warmup_gradients =
      reader.word_or("warmup", "average", {"average", "gradients"}) == "gradients";
  reader.finish();
  return local;
}

// As in Paddle one switch is on unless it is turned off.
ComputeFusion read_compute_fusion(Reader reader) {
  ComputeFusion fusion;
  fusion.fuse_relu_depthwise_conv = reader.boolean_or("fuse_relu_depthwise_conv", false);
  fusion.fuse_bn_act_ops = reader.boolean_or("fuse_bn_act_ops", false);
  fusion.fuse_bn_add_act_ops = reader.boolean_or("fuse_bn_add_act_ops", true);
  fusion.fuse_gemm_epilogue = reader.boolean_or("fuse_gemm_epilogue", false);
  fusion.fuse_elewise_add_act_ops = reader.boolean_or("fuse_elewise_add_act_ops", false);
  fusion.fuse_all_optimizer_ops = reader.boolean_or("fuse_all_optimizer_ops", false);
  reader.finish();
  return fusion;
}

namespace {

// What compute fusion finds on this workload, in the strategy's notes.
void note_compute_fusion(const Workload& workload, const Cluster& cluster, bool default_on,
                         Strategy& strategy) {
  std::vector<std::string> silent;
  if (default_on) silent.push_back("fuse_bn_add_act_ops");
  for (auto& note : fusion_notes(workload, cluster.device, strategy.compute_fusion, silent)) {
    strategy.notes.push_back(std::move(note));
  }
}

// Named rules: what the keys of a strategy fall back on.
//   mg_wfbp        merges gradients by ready times and prices (MG-WFBP)
//   dear           all-reduce in two halves around the step's end, buckets of 25 MiB formed first
//                  layer first, whole layers (DeAR's defaults)
//   bytescheduler  parts of a million fp32 parameters, first layers first, four million under way
//                  (BYTESCHEDULER_PARTITION and _CREDIT)
Strategy preset_of(const std::string& name) {
  constexpr Bytes kMillionParameters = 4'000'000;
  Strategy strategy;
  if (name == "mg_wfbp") strategy.fusion.rule = Fusion::Rule::kMgWfbp;
  if (name == "dear") {
    strategy.fusion.rule = Fusion::Rule::kSize;
    strategy.fusion.size = 25 * kMiB;
    strategy.fusion.close = Fusion::Close::kBefore;
    strategy.fusion.by_layer = true;
    strategy.fusion.order = Fusion::Order::kForward;
    strategy.exchange = Strategy::Exchange::kDecoupled;
    strategy.cross_step = true;
  }
  if (name == "bytescheduler") {
    strategy.partition = kMillionParameters;
    strategy.credit = 4 * kMillionParameters;
    strategy.priority = Strategy::Priority::kLayer;
    strategy.cross_step = true;
  }
  return strategy;
}

// What is exchanged when: the keys that split, order and stretch exchanges over steps.
void read_schedule(Reader& reader, std::size_t tensors, Strategy& strategy) {
  using Exchange = Strategy::Exchange;
  const char* own = strategy.exchange == Exchange::kDecoupled ? "decoupled" : "all_reduce";
  const std::string exchange =
      reader.word_or("exchange", own, {"all_reduce", "decoupled", "sharded"});
  strategy.exchange = exchange == "decoupled" ? Exchange::kDecoupled
                      : exchange == "sharded" ? Exchange::kSharded
                                              : Exchange::kAllReduce;
  if (reader.has("gather_groups")) {
    strategy.gather_groups = read_groups(reader, "gather_groups", tensors);
  }
  strategy.cross_step = reader.boolean_or("cross_step", strategy.cross_step);
  const bool by_layer = strategy.priority == Strategy::Priority::kLayer;
  const std::string priority =
      reader.word_or("priority", by_layer ? "layer" : "ready", {"ready", "layer"});
  strategy.priority = priority == "layer" ? Strategy::Priority::kLayer : Strategy::Priority::kReady;
  if (reader.has("credit_mb") && priority != "layer") {
    reader.fail("credit_mb", "has a meaning only with priority 'layer'");
  }
  if (priority != "layer") strategy.credit = 0;
  const auto in_mebibytes = [](Bytes bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kMiB);
  };
  strategy.credit =
      mebibytes(reader.number_or("credit_mb", in_mebibytes(strategy.credit), {0, 1e9}));
  strategy.partition =
      mebibytes(reader.number_or("partition_mb", in_mebibytes(strategy.partition), {0, 1e9}));
  if (strategy.partition > 0 && strategy.fusion.rule != Fusion::Rule::kNone) {
    if (reader.has("partition_mb")) {
      reader.fail("partition_mb",
                  "parts are made of gradients that travel alone: needs fusion rule "
                  "'none'");
    }
    strategy.partition = 0;
  }
  strategy.bucket_copies = reader.boolean_or("bucket_copies", false);
  strategy.host_sync = reader.boolean_or("host_sync", false);
  const bool each = strategy.cross_step && strategy.exchange != Exchange::kSharded;
  strategy.update = reader.word_or("update", each ? "per_bucket" : "after_all",
                                   {"after_all", "per_bucket"}) == "per_bucket"
                        ? Strategy::Update::kPerBucket
                        : Strategy::Update::kAfterAll;
  if (each && strategy.update == Strategy::Update::kAfterAll) {
    reader.fail("update",
                "'after_all' leaves nothing to overlap: with cross_step each layer's "
                "parameters are updated before its forward pass");
  }
}

// What of the schedule (what is exchanged when) cannot be had together, with the key to change.
std::optional<Misfit> schedule_misfit(const Strategy& strategy, const Cluster& cluster) {
  const LocalSgd& local = strategy.local_sgd;
  const bool split = strategy.exchange != Strategy::Exchange::kAllReduce;
  const bool reordered = strategy.priority == Strategy::Priority::kLayer;
  const char* key = split                    ? "exchange"
                    : strategy.cross_step    ? "cross_step"
                    : reordered              ? "priority"
                    : strategy.partition > 0 ? "partition_mb"
                                             : nullptr;
  if (key != nullptr) {
    if (!strategy.overlap) return Misfit{key, "has no meaning with overlap: false"};
    if (local.enabled) {
      return Misfit{key, "cannot be combined with local_sgd, which averages parameters"};
    }
    if (strategy.fusion.cycle > 0) return Misfit{key, "cannot be combined with fusion.cycle_ms"};
    if (strategy.bucket_copies) {
      return Misfit{"bucket_copies", std::string("is DDP's, which has no ") + key};
    }
  }
  if (split) {
    if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
      return Misfit{"hierarchy", "an exchange in two halves is flat"};
    }
    const std::string& codec = strategy.compression.codec;
    const bool sharded = strategy.exchange == Strategy::Exchange::kSharded;
    if (!codec.empty() && (sharded || find_codec(codec)->sparse)) {
      return Misfit{"compression", sharded ? "sharded parameters are gathered in full"
                                           : "a sparse exchange has no halves"};
    }
    for (const auto kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
      if (choice_fits(strategy.algorithm, kind, cluster.ranks())) continue;
      return Misfit{"algorithm", "'" + strategy.algorithm + "' does no " +
                                     std::string(to_string(kind)) + " among " +
                                     std::to_string(cluster.ranks()) + " ranks"};
    }
  }
  const auto& costs = strategy.fusion.costs;
  if (!costs.empty() && cluster.ranks() > 1 &&
      std::none_of(costs.begin(), costs.end(),
                   [&](const auto& cost) { return cost.ranks == cluster.ranks(); })) {
    return Misfit{"fusion.costs", "none is for the " + std::to_string(cluster.ranks()) + " ranks"};
  }
  if (local.enabled && strategy.fusion.cycle > 0) {
    return Misfit{"fusion.cycle_ms", "has no meaning with local_sgd"};
  }
  if (local.enabled && local.subgroup > 1) {
    if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
      return Misfit{"hierarchy", "cannot be combined with local_sgd.subgroup"};
    }
    if (!choice_fits(strategy.algorithm, CollectiveKind::kAllReduce, local.subgroup)) {
      return Misfit{"algorithm", "'" + strategy.algorithm + "' does no all_reduce among " +
                                     std::to_string(local.subgroup) + " ranks"};
    }
  }
  if (strategy.compute_fusion.fuse_all_optimizer_ops &&
      strategy.update == Strategy::Update::kPerBucket) {
    return Misfit{"compute_fusion.fuse_all_optimizer_ops",
                  "cannot stand beside update 'per_bucket': the one operator waits for every "
                  "gradient"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Misfit> misfit_of(const Strategy& strategy, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  std::optional<Misfit> misfit;
  const auto must_fit = [&](const char* key, const std::string& name, CollectiveKind kind,
                            int size) {
    if (misfit || choice_fits(name, kind, size)) return;
    misfit = Misfit{key, "'" + name + "' does no " + std::string(to_string(kind)) + " among " +
                             std::to_string(size) + " ranks"};
  };
  const Hierarchy& hierarchy = strategy.hierarchy;
  if (hierarchy.form == Hierarchy::Form::kFlat) {
    must_fit("algorithm", strategy.algorithm, CollectiveKind::kAllReduce, ranks);
  } else {
    const int size = hierarchy.group_size;
    const auto& inside = hierarchy.inside.empty() ? strategy.algorithm : hierarchy.inside;
    const auto& across = hierarchy.across.empty() ? strategy.algorithm : hierarchy.across;
    must_fit("hierarchy.across", across, CollectiveKind::kAllReduce, ranks / size);
    if (hierarchy.form == Hierarchy::Form::kSharded) {
      must_fit("hierarchy.inside", inside, CollectiveKind::kReduceScatter, size);
      must_fit("hierarchy.inside", inside, CollectiveKind::kAllGather, size);
    } else {
      must_fit("hierarchy.inside", inside,
               hierarchy.first_all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduce,
               size);
      must_fit("hierarchy.inside", inside, CollectiveKind::kBroadcast, size);
    }
  }
  if (!misfit && strategy.local_sgd.enabled && !strategy.compression.codec.empty()) {
    misfit =
        Misfit{"compression", "cannot be combined with local_sgd: parameters are averaged in full"};
  }
  if (!misfit) misfit = schedule_misfit(strategy, cluster);
  return misfit;
}

Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster) {
  Strategy strategy;
  const std::string name = reader.text("name");
  if (name.empty()) reader.fail("name", "empty");
  const std::string about = reader.text_or("about", "");
  if (reader.has("dialect")) {
    const Dialect* dialect = find_dialect(reader.word_or("dialect", "", dialect_names()));
    const bool as_documents =
        reader.word_or("read_as", "code", {"code", "documents"}) == "documents";
    Reading reading = dialect->read(reader.object("config"), workload, cluster, as_documents);
    reader.finish();
    strategy = std::move(reading.strategy);
    strategy.name = name;
    strategy.about = about;
    strategy.dialect = dialect->name;
    strategy.notes = std::move(reading.notes);
    note_compute_fusion(workload, cluster, true, strategy);
    return strategy;
  }
  if (reader.has("preset")) {
    strategy = preset_of(reader.word_or("preset", "", {"mg_wfbp", "dear", "bytescheduler"}));
  }
  strategy.name = name;
  strategy.about = about;
  strategy.overlap = reader.boolean_or("overlap", true);
  strategy.streams = static_cast<int>(reader.integer_or("streams", 1, 1, 64));
  if (!strategy.overlap && strategy.streams > 1) {
    reader.fail("streams", "has no meaning with overlap: false (everything on one stream)");
  }
  strategy.algorithm = reader.word_or("algorithm", "ring", split_names(algorithm_choices()));
  if (reader.has("fusion")) strategy.fusion = read_fusion(reader.object("fusion"), workload);
  if (reader.has("hierarchy")) {
    strategy.hierarchy = read_hierarchy(reader.object("hierarchy"), cluster);
  }
  if (reader.has("compression")) {
    strategy.compression = read_compression(reader.object("compression"));
  }
  if (reader.has("local_sgd")) {
    strategy.local_sgd = read_local_sgd(reader.object("local_sgd"), cluster.ranks());
  }
  read_schedule(reader, workload.tensors.size(), strategy);
  if (reader.has("compute_fusion")) {
    Reader fusion = reader.object("compute_fusion");
    strategy.compute_fusion = read_compute_fusion(fusion);
    if (workload.operators.empty()) {
      strategy.notes.push_back(
          "compute_fusion changes nothing here: the workload has no operators");
    }
    note_compute_fusion(workload, cluster, !fusion.has("fuse_bn_add_act_ops"), strategy);
  }
  // A mistake is told here, where the user can still be told where.
  if (const auto misfit = misfit_of(strategy, cluster)) reader.fail(misfit->key, misfit->why);
  reader.finish();
  if (!strategy.gather_groups.empty() && strategy.exchange != Strategy::Exchange::kSharded) {
    reader.fail("gather_groups", "has a meaning only with exchange 'sharded'");
  }
  return strategy;
}

}  // namespace syncline
