#include "reports/written.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/collective/library.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "core/plan.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/write.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

// Returns a name without control characters, which could end a comment.
std::string in_one_line(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return name;
}

// Returns DistributedDataParallel's default strategy, with the collectives of `strategy`.
Strategy ddp_itself(const Scenario& scenario, const Strategy& strategy) {
  const auto& ddp = *dialect::find_dialect("pytorch");
  return dialect::reading_of(ddp, Json::object(), scenario.workload, scenario.cluster,
                             {.algorithm = dialect::kept_algorithm(strategy, scenario.cluster)})
      .strategy;
}

std::string how_often(const LocalSgd& local) {
  if (!local.adaptive) return "every " + std::to_string(local.period) + " steps";
  return "every 1 to " + std::to_string(local.max_period) +
         " steps,\n# as the loss tells: the job calls model.loss(value) in each step";
}

// Returns "3 buckets on 2 streams, fp16, in groups of 8 ranks".
std::string what_it_does(const Strategy& strategy, std::size_t buckets) {
  std::string text = plural(buckets, "bucket");
  const auto streams = static_cast<std::size_t>(strategy.streams);
  if (streams > 1) text += " on " + plural(streams, "stream");
  if (!strategy.overlap) text += ", after the backward pass";
  if (!strategy.compression.codec.empty()) text += ", " + strategy.compression.codec;
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    text += ", in groups of " + std::to_string(strategy.hierarchy.group_size) + " ranks";
  }
  if (strategy.local_sgd.enabled) text += ", parameters averaged " + how_often(strategy.local_sgd);
  return text;
}

std::string between(const std::string& low, const std::string& high) {
  return "(80 %: " + low + " to " + high + ")";
}

std::string change_text(double ratio) { return percent_text(100 * (ratio - 1)); }

// Returns how the job gets the collectives that were evaluated.
std::string library_comment(const Scenario& scenario, const Strategy& strategy) {
  const std::string setting = dialect::nccl_setting(strategy, scenario.workload, scenario.cluster);
  if (!setting.empty()) return "# Run the job with '" + setting + "' (NCCL 2.24 or later).\n";
  if (!dialect::nccl_table(strategy, scenario.workload, scenario.cluster).empty()) {
    return "# NCCL is to choose by the table that `syncline emit --nccl-table` writes.\n";
  }
  if (strategy.algorithm == collective::library_algorithm(scenario.cluster)) return {};
  return "# Predicted with collectives by " + strategy.algorithm +
         ", which is the library's to do: no setting of it is known.\n";
}

}  // namespace

std::vector<std::string> list_notes(const Json& config) {
  std::vector<std::string> notes;
  if (config.contains("bucket_cap_mb_list")) {
    notes.emplace_back(
        "bucket_cap_mb_list is torch 2.12's; --python FILE writes what does the same in any from "
        "1.13 on");
  }
  if (config.contains("_DEFAULT_FIRST_BUCKET_BYTES")) {
    notes.emplace_back(
        "_DEFAULT_FIRST_BUCKET_BYTES is no argument: set torch.distributed's variable of that name "
        "before DistributedDataParallel");
  }
  return notes;
}

std::vector<std::string> list_notes(const dialect::Written& written) {
  std::vector<std::string> notes;
  if (!written.setting.empty()) {
    notes.push_back("run it with '" + written.setting + "' (NCCL 2.24 or later)");
  }
  for (auto& note : list_notes(written.config)) notes.push_back(std::move(note));
  if (!written.algorithm.empty()) {
    notes.push_back(
        "a framework's configuration does not say how collectives move their data; to predict it "
        "here, write \"algorithm\": \"" +
        written.algorithm + "\" beside the dialect");
  }
  return notes;
}

void add_configuration(Page& page, const std::string& dialect, const tune::Emitted& emitted) {
  page.add("Configuration for " + dialect +
           (emitted.config.empty() ? ", which is its default:" : ":"));
  page.add(Listing{"json", emitted.config.dump(2) + "\n"});
}

Json emitted_json(const std::string& dialect, const tune::Emitted& emitted) {
  return {{"dialect", dialect},
          {"config", emitted.config},
          {"algorithm", emitted.strategy.algorithm},
          {"setting", emitted.setting},
          {"step_time_s", exact(emitted.step_time)},
          {"exact", emitted.exact},
          {"difference", emitted.difference}};
}

std::string applied_comment(const Scenario& scenario, const Strategy& strategy,
                            const measure::FitErrors& fit_errors) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  measure::Uncertainties uncertainties(scenario, fit_errors);
  const Strategy ddp = ddp_itself(scenario, strategy);
  const auto evaluated = measure::evaluate_strategy(scenario, strategy, *executor, cache);
  const Seconds own = evaluated.metrics.step_time;
  const Seconds other =
      measure::evaluate_strategy(scenario, ddp, *executor, cache).metrics.step_time;
  const auto sensitivity = uncertainties.sensitivity(strategy);
  const double ratio = own / other;
  const auto ratios = measure::ratio_interval(ratio, sensitivity, uncertainties.sensitivity(ddp));
  const auto step = measure::interval_of(own, sensitivity);
  const auto plan = plan::make_plan(scenario.workload, scenario.cluster, strategy);
  const bool library_own = strategy.algorithm == collective::library_algorithm(scenario.cluster);
  std::string text = "# '" + in_one_line(strategy.name) + "' for " +
                     in_one_line(scenario.workload.name) + " on " + std::to_string(plan.ranks) +
                     " ranks of " + in_one_line(scenario.cluster.name) + ":\n";
  text += "# " + what_it_does(strategy, plan.buckets.size()) + ".\n";
  text += "# Predicted: " + seconds_text(own) + " per step " +
          between(seconds_text(step.low), seconds_text(step.high)) + ".\n";
  text += "# DistributedDataParallel as it comes" +
          std::string(library_own ? "" : ", by the same collectives") + ": " + seconds_text(other) +
          ", compared with that\n";
  text += "# " + change_text(ratio) + " " +
          between(change_text(ratios.low), change_text(ratios.high)) + ".\n";
  text += library_comment(scenario, strategy);
  if (strategy.compression.codec == "dgc" && strategy.compression.rampup_begin_step > 0) {
    text += "# Before step " + std::to_string(strategy.compression.rampup_begin_step) +
            " what DGC sends later travels whole, in buffers of its own.\n";
  }
  return text;
}

std::string apply_usage(const std::string& file, const Strategy& strategy) {
  const LocalSgd& local = strategy.local_sgd;
  return "in the job, on every rank: from " + std::filesystem::path(file).stem().string() +
         " import apply; model = apply(model, optimizer)" +
         (local.enabled && local.adaptive
              ? "; in each step, before optimizer.step(): model.loss(loss)"
              : "");
}

std::string other_strategy_note(const std::string& file, const tune::Tuning& tuning,
                                const tune::Ranked& applied) {
  const tune::Ranked& choice = tuning.tuned.winner();
  if (tuning.taken || &applied == &choice) return {};
  return file + " holds '" + applied.strategy.name + "' (" +
         seconds_text(applied.metrics.step_time) + " per step): the best, '" +
         choice.strategy.name + "', cannot be applied by a Python file, as " +
         dialect::apply_refusal(choice.strategy, tuning.scenario.workload, tuning.scenario.cluster);
}

}  // namespace syncline::reports
