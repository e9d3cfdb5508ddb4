#include "formats/input/read_strategy.h"

#include <array>

#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/plan/compute_fusion.h"
#include "formats/dialect/dialect.h"
#include "formats/input/conflicts.h"
#include "formats/input/knobs.h"

namespace syncline::input {
namespace {

// Adds the findings of compute fusion on this workload to the strategy's notes.
void note_compute_fusion(const Workload& workload, const Cluster& cluster, bool default_on,
                         Strategy& strategy) {
  std::vector<std::string> silent;
  if (default_on) silent.push_back("fuse_bn_add_act_ops");
  for (auto& note : plan::fusion_notes(workload, cluster.device, strategy.compute_fusion, silent)) {
    strategy.notes.push_back(std::move(note));
  }
}

Strategy read_dialect(Reader& reader, const Workload& workload, const Cluster& cluster) {
  if (dialect::dialects().empty()) {
    reader.fail("dialect", "this program hands in no framework (formats/dialect/dialects.h)");
  }
  const dialect::Dialect* dialect =
      dialect::find_dialect(reader.word_or("dialect", "", dialect::dialect_names()));
  dialect::ReadAs as;
  as.as_documents = reader.word_or("read_as", "code", {"code", "documents"}) == "documents";
  as.algorithm = reader.word_or("algorithm", "", collective::algorithm_choices());
  dialect::Reading reading =
      dialect::reading_of(*dialect, reader.object("config"), workload, cluster, as);
  Strategy strategy = std::move(reading.strategy);
  // A framework's own settings go together; an algorithm next to them, or a layout, may not.
  const bool own = as.algorithm.empty();
  const auto conflict =
      own ? whole_job_conflict(strategy, workload) : conflict_of(strategy, workload, cluster);
  if (conflict) {
    const char* at = own ? "config" : "algorithm";
    reader.fail(reader.has(conflict->key) ? conflict->key : at, conflict->why);
  }
  reader.finish();
  strategy.notes = std::move(reading.notes);
  note_compute_fusion(workload, cluster, true, strategy);
  return strategy;
}

Strategy read_own_keys(Reader& reader, const Workload& workload, const Cluster& whole) {
  const Cluster cluster = exchanging(whole, workload.parallel);
  Strategy strategy;
  if (reader.has("preset")) strategy = preset_of(reader.word_or("preset", "", preset_names()));
  // All rows have one network: the library decides if a strategy names no algorithm.
  if (!reader.has("algorithm")) strategy.algorithm = collective::library_algorithm(cluster);
  read_knobs(reader, strategy_knobs(), {workload, cluster}, strategy);
  if (!reader.has("update")) strategy.update = usual_update(strategy);
  // A preset's credit and partition go with the choice that they belong to.
  if (strategy.priority != Strategy::Priority::kLayer) strategy.credit = 0;
  const bool in_parts = strategy.fusion.rule == Fusion::Rule::kNone || reader.has("partition_mb");
  if (!in_parts) strategy.partition = 0;
  if (reader.has("compute_fusion")) {
    if (workload.operators->empty()) {
      strategy.notes.push_back(
          "compute_fusion changes nothing here: the workload has no operators");
    }
    const bool given = reader.object("compute_fusion").has("fuse_bn_add_act_ops");
    note_compute_fusion(workload, cluster, !given, strategy);
  }
  if (strategy.traits.across_last && !strategy.each_micro_batch) {
    strategy.notes.push_back(
        "hierarchy.across_last changes nothing here: without each_micro_batch gradients are summed "
        "in the last micro-batch alone");
  }
  // A mistake is reported here, while its key is known.
  if (const auto conflict = conflict_of(strategy, workload, whole)) {
    reader.fail(conflict->key, conflict->why);
  }
  reader.finish();
  return strategy;
}

struct Preset {
  std::string_view name;
  void (*apply)(Strategy&);
};

// Merges gradients by ready times and costs.
void apply_mg_wfbp(Strategy& strategy) { strategy.fusion.rule = Fusion::Rule::kMgWfbp; }

// Sets DeAR's defaults: all-reduce in two halves around the step's end, buckets of 25 MiB formed
// first layer first, whole layers.
void apply_dear(Strategy& strategy) {
  strategy.fusion.rule = Fusion::Rule::kSize;
  strategy.fusion.size = 25 * kMiB;
  strategy.fusion.close = Fusion::Close::kBefore;
  strategy.fusion.by_layer = true;
  strategy.fusion.order = Fusion::Order::kForward;
  strategy.exchange = Strategy::Exchange::kDecoupled;
  strategy.cross_step = true;
}

// Parts of a million fp32 parameters, first layers first, four million under way
// (BYTESCHEDULER_PARTITION and _CREDIT).
void apply_bytescheduler(Strategy& strategy) {
  constexpr Bytes kMillionParameters = 4'000'000;
  strategy.partition = kMillionParameters;
  strategy.credit = 4 * kMillionParameters;
  strategy.priority = Strategy::Priority::kLayer;
  strategy.cross_step = true;
}

constexpr std::array kPresets{Preset{"mg_wfbp", apply_mg_wfbp}, Preset{"dear", apply_dear},
                              Preset{"bytescheduler", apply_bytescheduler}};

}  // namespace

Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster) {
  const std::string name = reader.text("name");
  if (name.empty()) reader.fail("name", "empty");
  const std::string about = reader.text_or("about", "");
  Strategy strategy = reader.has("dialect") ? read_dialect(reader, workload, cluster)
                                            : read_own_keys(reader, workload, cluster);
  strategy.name = name;
  strategy.about = about;
  return strategy;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Strategy preset_of(std::string_view name) {
  Strategy strategy;
  for (const auto& preset : kPresets) {
    if (preset.name == name) preset.apply(strategy);
  }
  return strategy;
}

}  // namespace syncline::input
