#include "formats/dialect/dialects.h"

#include <algorithm>
#include <map>

#include "formats/dialect/framework_keys.h"
#include "formats/dialect/paddle.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

using Notes = std::vector<std::string>;

constexpr std::int64_t kMaxComms = 64;
constexpr const char* kRanksAGroup = "hierarchical_allreduce_inter_nranks";
// A fused group's gradients share one buffer; each is padded to the GPU allocator's least chunk.
constexpr Bytes kGpuChunk = 256;

// Fields of distributed_strategy.proto with its defaults.
struct Settings {
  bool fuse_all_reduce_ops = true;
  std::int64_t fuse_grad_size_in_mb = 32;
  double fuse_grad_size_in_tflops = 50;  // despite its name a number of gradients
  std::int64_t nccl_comm_num = 1;
  bool sync_nccl_allreduce = true;
  bool use_hierarchical_allreduce = false;
  std::int64_t inter_nranks = 1;
  bool sync_batch_norm = false;
  bool without_graph_optimization =
      false;  // true by default since Paddle 2.6 has no graph executor
  std::int64_t fuse_grad_size_in_num = 8;
};

std::string number(std::int64_t value) { return std::to_string(value); }

bool named_elsewhere(const Workload& workload) {
  return std::any_of(workload.tensors.begin(), workload.tensors.end(), [](const Tensor& tensor) {
    return std::count(tensor.name.begin(), tensor.name.end(), '.') > 1;
  });
}

// Returns the rule of coalesce_grad_tensor_pass.cc: gradients of one layer (name up to the first
// dot) stay together; layers are added to a group until it holds at least the size or *more* than
// the count of tensors. A count up to 1 is ignored; a size of 0 or less merges nothing.
Fusion fusion_of(const Settings& settings, bool as_documents) {
  Fusion fusion;
  if (!settings.fuse_all_reduce_ops) return fusion;
  fusion.layer_key = Fusion::LayerKey::kFirstDot;
  fusion.align = kGpuChunk;
  if (settings.fuse_grad_size_in_mb <= 0) {
    fusion.rule = Fusion::Rule::kLayer;
    return fusion;
  }
  const auto count = static_cast<std::int64_t>(settings.fuse_grad_size_in_tflops);
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = settings.fuse_grad_size_in_mb * kMiB;
  // The documents: at most that count.
  if (count > 1) fusion.count = as_documents ? count : count + 1;
  fusion.by_layer = true;
  return fusion;
}

// Returns the groups of raw_program_optimizer.py, _allreduce_fusion_program: so many gradients of a
// format in the order of the backward pass, sent in the order of their last ones.
Fusion raw_fusion(const Settings& settings, const Workload& workload) {
  Fusion fusion;
  if (!settings.fuse_all_reduce_ops) return fusion;
  fusion.rule = Fusion::Rule::kGroups;
  fusion.align = kGpuChunk;
  std::map<DType, std::size_t> open;  // index of a format's open group
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    if (tensor.sparse || tensor.frozen) continue;
    auto [at, fresh] = open.try_emplace(tensor.dtype, fusion.groups.size());
    const auto count = fresh ? 0 : static_cast<std::int64_t>(fusion.groups[at->second].size());
    if (fresh || count == settings.fuse_grad_size_in_num) {
      at->second = fusion.groups.size();
      fusion.groups.emplace_back();
    }
    fusion.groups[at->second].push_back(static_cast<int>(t));
  }
  std::ranges::sort(fusion.groups, {}, [](const auto& group) { return group.back(); });
  return fusion;
}

void note_fusion(Reader& config, const Settings& settings, const Fusion& fusion, bool as_documents,
                 Notes& notes) {
  if (fusion.rule == Fusion::Rule::kLayer) {
    notes.push_back("fuse_grad_size_in_MB = " + number(settings.fuse_grad_size_in_mb) +
                    " merges nothing by size: only the gradients of one layer, whose names agree "
                    "up to the first dot, travel together");
  }
  const bool given =
      config.has("_fuse_grad_size_in_TFLOPS") || config.has("fuse_grad_size_in_TFLOPS");
  if (given && !as_documents && fusion.rule == Fusion::Rule::kSize) {
    const auto count = static_cast<std::int64_t>(settings.fuse_grad_size_in_tflops);
    notes.push_back("_fuse_grad_size_in_TFLOPS = " + number(count) +
                    (count > 1 ? " is a number of gradients, and a group closes at more than "
                                 "that: at " +
                                     number(count + 1)
                               : " sets no limit: it is a number of gradients, looked at above 1"));
  }
}

// Reads the private attribute, or the documents' spelling of it. With `as_documents` an int is
// accepted too.
double read_tflops(Reader& config, bool as_documents, Notes& notes) {
  const char* key = "_fuse_grad_size_in_TFLOPS";
  const char* spelt = "fuse_grad_size_in_TFLOPS";
  if (config.has(spelt)) {
    if (config.has(key)) config.fail(spelt, std::string("given twice, also as '") + key + "'");
    if (!as_documents) {
      notes.push_back(std::string(spelt) + " is read as " + key +
                      ": DistributedStrategy has no attribute without the underscore");
    }
    key = spelt;
  }
  const Json* value = config.find(key);
  if (as_documents && value != nullptr && value->is_number_integer()) {
    return static_cast<double>(paddle_integer(config, key, 50, notes));
  }
  return paddle_real(config, key, 50, notes);
}

// Reads the fusions below the gradients in build_strategy. core/plan/compute_fusion notes their
// effect on the workload's operators; without operators it is unknown.
ComputeFusion read_build_strategy(Reader build, const Workload& workload, Notes& notes) {
  std::string asked;
  ComputeFusion fusion;
  for (const auto& [key, on, usual] : kBuildSwitches) {
    fusion.*on = build.boolean_or(key, usual);
    const bool asked_for =
        fusion.*on && build.has(key) && on != &ComputeFusion::fuse_all_optimizer_ops;
    if (asked_for) asked += (asked.empty() ? "" : ", ") + std::string(key);
  }
  const bool spelt = build.boolean_or("fused_bn_add_act_ops", false);
  const bool broadcasts = build.boolean_or("fuse_broadcast_ops", false);
  note(notes,
       {{spelt,
         "fused_bn_add_act_ops is the documents' spelling of fuse_bn_add_act_ops, true by default"},
        {!asked.empty() && workload.operators->empty(),
         asked + ": what they fuse is not known, as the workload has no operators; its times are "
                 "used as given"},
        {broadcasts, "fuse_broadcast_ops is turned off: it only works under Reduce mode"}});
  finish_keys(build, key_list("paddle.build_strategy"), notes);
  return fusion;
}

// Resets the settings that _try_to_compile of graph_execution_optimizer.py silently resets.
void apply_guards(const Cluster& cluster, bool as_documents, Settings& settings, Notes& notes) {
  if (cluster.ranks() <= 1) {
    note(notes, {{settings.nccl_comm_num > 1, "set nccl_comm_num=1 since you only have 1 node."}});
    settings.nccl_comm_num = 1;
    settings.use_hierarchical_allreduce = false;
    settings.fuse_all_reduce_ops = false;
    return;
  }
  if (cluster.nodes <= 1 && settings.use_hierarchical_allreduce && !as_documents) {
    notes.push_back(
        "set hierachical_allreduce=False since you only have 1 node: every all-reduce runs flat");
    settings.use_hierarchical_allreduce = false;
  }
  if (settings.sync_batch_norm) {
    notes.push_back(
        "sync_batch_norm sets num_threads=1, nccl_comm_num=1, hierachical_allreduce=False; its own "
        "all-reduces of the statistics are not modelled");
    settings.nccl_comm_num = 1;
    settings.use_hierarchical_allreduce = false;
  }
}

// Returns the hierarchy of the documents: hierarchical_allreduce_inter_nranks is the number of
// leaders (by default one per node), and groups all-reduce inside first.
Hierarchy documented_hierarchy(Reader& config, std::int64_t inter, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  const std::int64_t leaders = config.has(kRanksAGroup) ? inter : cluster.nodes;
  if (leaders < 1 || ranks % leaders != 0) {
    config.fail(kRanksAGroup, "found " + number(leaders) + ", expected a divisor of the " +
                                  number(ranks) +
                                  " workers: as the documents read it, the number of leaders");
  }
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = ranks / static_cast<int>(leaders);
  hierarchy.first_all_reduce = true;
  return hierarchy;
}

// Returns the hierarchy of parallel_executor.cc, InitOrGetNCCLCommunicator and nccl_op_handle.h:
// reduce to each group's first rank, all-reduce among those, broadcast.
Hierarchy hierarchy_of(Reader& config, std::int64_t inter, const Cluster& cluster,
                       std::vector<std::string>& notes) {
  const int ranks = cluster.ranks();
  if (inter <= 1) {
    config.fail(kRanksAGroup,
                "The inter_nranks should be greater than 1, but received " + number(inter) +
                    (config.has(kRanksAGroup) ? "" : ", its default") +
                    " (ranks per group; the nodes have " + number(cluster.gpus_per_node) + ")");
  }
  if (ranks % inter != 0) {
    config.fail(kRanksAGroup, "num_trainers:" + number(ranks) +
                                  " mod inter_nranks:" + number(inter) +
                                  " != 0, expected a divisor of the number of workers");
  }
  if (inter * inter != ranks) {
    notes.push_back(std::string(kRanksAGroup) + " = " + number(inter) +
                    " is the number of ranks per group, " + number(ranks / inter) +
                    (ranks == inter ? " group" : " groups") +
                    "; the documents take it for the number of leaders");
  }
  notes.push_back(
      "hierarchical all-reduce begins with a reduce to each group's leader; the documents tell of "
      "an all-reduce inside the group");
  notes.push_back(
      "Fleet 2.0 and 2.1 hand the group size to gen_nccl_id under a misspelt name and may stop "
      "with 'inter_nranks -1 <= 1 while in hierarchical allreduce mode'");
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = static_cast<int>(inter);
  return hierarchy;
}

// Returns the streams. sync_nccl_allreduce: the host issues one all-reduce after the other.
int streams_of(Reader& config, const Settings& settings, bool as_documents, Notes& notes) {
  const auto comms = static_cast<int>(settings.nccl_comm_num);
  if (comms == 1 || !settings.sync_nccl_allreduce) return comms;
  const bool given = config.has("sync_nccl_allreduce");
  // The documents: more communicators overlap, with any default.
  if (as_documents && !given) return comms;
  notes.push_back("sync_nccl_allreduce is true" + std::string(given ? "" : " by default") +
                  ": one all-reduce in flight at a time, nccl_comm_num = " + number(comms) +
                  " gains nothing");
  return 1;
}

// Returns the update of fuse_optimizer_op_pass.cc: one operator for all parameters waits for every
// all-reduce; separate ones run after the backward pass, each after its own all-reduce.
Strategy::Update update_of(const ComputeFusion& fusion, const Workload& workload, bool dgc,
                           Notes& notes) {
  if (!fusion.fuse_all_optimizer_ops) return Strategy::Update::kPerBucket;
  if (dgc) {
    notes.push_back(
        "fuse_all_optimizer_ops fuses nothing under dgc: momentum and dgc_momentum are two types "
        "of operator");
    return Strategy::Update::kPerBucket;
  }
  const Tensor* first = nullptr;
  for (const auto& tensor : workload.tensors) {
    if (tensor.sparse || tensor.frozen) continue;
    if (first == nullptr) first = &tensor;
    if (tensor.dtype == first->dtype) continue;
    notes.push_back("fuse_all_optimizer_ops fuses nothing: the gradients are of several dtypes");
    return Strategy::Update::kPerBucket;
  }
  notes.push_back("fuse_all_optimizer_ops: the one optimizer operator waits for every all-reduce");
  return Strategy::Update::kAfterAll;
}

// Notes settings without effect: those that the graph executor alone reads, which LocalSGD and
// without_graph_optimization exclude.
void note_unread(Reader& config, bool local, Notes& notes) {
  std::string unread = list_given(
      config, {"fuse_grad_size_in_MB", "_fuse_grad_size_in_TFLOPS", "fuse_grad_size_in_TFLOPS",
               "nccl_comm_num", "sync_nccl_allreduce", "use_hierarchical_allreduce", kRanksAGroup,
               "sync_batch_norm", "build_strategy"});
  if (local && config.has("fuse_all_reduce_ops")) {
    unread = "fuse_all_reduce_ops" + (unread.empty() ? "" : ", " + unread);
  }
  const std::string where = local ? "under LocalSGD" : "without the graph executor";
  note(notes, {{!unread.empty(), "no effect " + where + ": " + unread}});
}

// Sets the plan of RawProgramOptimizer: all all-reduces on one stream, each update after its own,
// and no fused operators.
void take_raw_program(Reader& config, const Settings& settings, const Workload& workload,
                      Reading& reading) {
  Strategy& strategy = reading.strategy;
  strategy.compute_fusion = {};
  strategy.fusion = raw_fusion(settings, workload);
  strategy.update = Strategy::Update::kPerBucket;
  note_unread(config, false, reading.notes);
}

// Reads the fields of DistributedStrategy that say how gradients travel.
Settings read_settings(Reader& config, bool as_documents, Notes& notes) {
  Settings settings;
  const auto flag = [&](const char* key, bool& on) { on = paddle_flag(config, key, on, notes); };
  const auto integer = [&](const char* key, std::int64_t& number) {
    number = paddle_integer(config, key, number, notes);
  };
  flag("fuse_all_reduce_ops", settings.fuse_all_reduce_ops);
  integer("fuse_grad_size_in_MB", settings.fuse_grad_size_in_mb);
  settings.fuse_grad_size_in_tflops = read_tflops(config, as_documents, notes);
  integer("nccl_comm_num", settings.nccl_comm_num);
  flag("sync_nccl_allreduce", settings.sync_nccl_allreduce);
  flag("use_hierarchical_allreduce", settings.use_hierarchical_allreduce);
  integer(kRanksAGroup, settings.inter_nranks);
  flag("sync_batch_norm", settings.sync_batch_norm);
  flag("without_graph_optimization", settings.without_graph_optimization);
  integer("fuse_grad_size_in_num", settings.fuse_grad_size_in_num);
  if (settings.nccl_comm_num < 1 || settings.nccl_comm_num > kMaxComms) {
    config.fail("nccl_comm_num", "found " + number(settings.nccl_comm_num) +
                                     ", expected a whole number from 1 to " + number(kMaxComms));
  }
  if (settings.fuse_grad_size_in_num < 1) {
    config.fail("fuse_grad_size_in_num", "found " + number(settings.fuse_grad_size_in_num) +
                                             ", expected a number of gradients, 1 or more");
  }
  return settings;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool as_documents) {
  Reading reading;
  Notes& notes = reading.notes;
  Strategy& strategy = reading.strategy;

  Settings settings = read_settings(config, as_documents, notes);
  Notes build_notes;
  strategy.compute_fusion.fuse_bn_add_act_ops = true;
  if (config.has("build_strategy")) {
    strategy.compute_fusion =
        read_build_strategy(config.object("build_strategy"), workload, build_notes);
  }
  read_paddle_training(config, workload, cluster, reading);
  finish_keys(config, key_list("paddle"), notes);

  if (strategy.local_sgd.enabled) {
    strategy.compute_fusion = {};
    strategy.streams = 2;
    note_unread(config, true, notes);
    note(notes,
         {{settings.without_graph_optimization,
           "RawProgramOptimizer sums the gradients in each step all the same (Paddle 2.6.2), "
           "which is left out: LocalSGD gains nothing there"}});
    return reading;
  }
  notes.insert(notes.end(), build_notes.begin(), build_notes.end());
  apply_guards(cluster, as_documents, settings, notes);
  const bool dgc = !strategy.compression.codec.empty();
  if (dgc) settings.fuse_all_reduce_ops = false;
  if (settings.without_graph_optimization && cluster.ranks() > 1) {
    take_raw_program(config, settings, workload, reading);
    return reading;
  }
  note(notes, {{config.has("fuse_grad_size_in_num"),
                "fuse_grad_size_in_num has no effect without without_graph_optimization"}});
  strategy.streams = streams_of(config, settings, as_documents, notes);
  strategy.fusion = fusion_of(settings, as_documents);
  // Paddle's own names have one dot ("fc_0.w_0"). Names with more are from another framework: their
  // first dot would make whole stages of the model one layer. In Paddle each module would have its
  // own name.
  if (settings.fuse_all_reduce_ops && named_elsewhere(workload)) {
    strategy.fusion.layer_key = Fusion::LayerKey::kLastDot;
    notes.push_back("gradients are not named as in Paddle: a layer is the name up to its last dot");
  }
  note_fusion(config, settings, strategy.fusion, as_documents, notes);
  if (settings.use_hierarchical_allreduce) {
    strategy.hierarchy = as_documents ? documented_hierarchy(config, settings.inter_nranks, cluster)
                                      : hierarchy_of(config, settings.inter_nranks, cluster, notes);
    if (dgc) notes.push_back("dgc sends its encoded gradients flat: no hierarchy for them");
  }
  strategy.host_sync = settings.sync_nccl_allreduce && cluster.ranks() > 1;
  ComputeFusion& fusion = strategy.compute_fusion;
  if (cluster.ranks() > 1) strategy.update = update_of(fusion, workload, dgc, notes);
  if (strategy.update == Strategy::Update::kPerBucket) fusion.fuse_all_optimizer_ops = false;
  return reading;
}

}  // namespace

Dialect paddle_dialect() {
  return {.name = "paddle",
          .summary = "Paddle Fleet's DistributedStrategy, static graph",
          .read = read,
          .suggest = suggest_paddle,
          .changes = paddle_changes,
          .defaults = {{"fuse_grad_size_in_MB", 32},
                       {"_fuse_grad_size_in_TFLOPS", 50.0},
                       {"fuse_all_reduce_ops", true},
                       {"nccl_comm_num", 1},
                       {"sync_nccl_allreduce", true},
                       {"use_hierarchical_allreduce", false},
                       {kRanksAGroup, 1},
                       {"dgc", false},
                       {"localsgd", false},
                       {"localsgd_configs", {{"k_steps", 1}}}},
          .candidates = paddle_candidates,
          .group_keys = {"hierarchical_allreduce_inter_nranks"}};
}

}  // namespace syncline::dialect
