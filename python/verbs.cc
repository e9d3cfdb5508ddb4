#include "python/verbs.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/executor.h"
#include "core/run/jobs.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/input/cost_model_json.h"
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "imports/format.h"
#include "imports/scenario_of.h"
#include "reports/answer.h"
#include "reports/calibration.h"
#include "reports/explain_report.h"
#include "reports/import_report.h"
#include "reports/run_report.h"
#include "reports/tune_report.h"
#include "reports/utilisation_report.h"
#include "reports/worth_report.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/step_fit.h"
#include "studies/explain/explanation.h"
#include "studies/layouts/utilisation.h"
#include "studies/study/study.h"
#include "studies/tune/thresholds.h"
#include "studies/tune/tuning.h"
#include "studies/worth/curves.h"
#include "studies/worth/time_to_target.h"

namespace syncline::python {
namespace {

// `made` is written by name.
Json told(const reports::Answer& answer, Json made = nullptr) {
  return Json{{"json", reports::whole_json(answer, version())},
              {"text", reports::printed(answer, reports::Format::kTable, version())},
              {"html", reports::html_page(answer, version())},
              {"made", std::move(made)}};
}

// One text or a list of them.
std::vector<std::string> texts(Reader& arguments, const std::string& key) {
  const Json* given = arguments.find(key);
  if (given == nullptr) return {};
  const Json list = given->is_array() ? *given : Json::array({*given});
  std::vector<std::string> all;
  for (const Json& one : list) {
    if (!one.is_string()) {
      arguments.fail(key, "found " + describe(one) + ", expected text, or a list of it");
    }
    all.push_back(one.get<std::string>());
  }
  return all;
}

// A file of JSON, by its path or as what it holds.
const Json& file_at(Reader& arguments, const std::string& key) {
  const Json& given = arguments.require(key);
  if (given.is_string() || given.is_object()) return given;
  arguments.fail(key, "found " + describe(given) + ", expected a dict or the path of a file");
}

struct Part {
  Json json;
  std::string name;  // in messages
};

std::optional<Part> part(Reader& arguments, const std::string& key) {
  if (!arguments.has(key)) return std::nullopt;
  const Json& given = file_at(arguments, key);
  if (given.is_object()) return Part{given, "the " + key};
  const auto path = given.get<std::string>();
  return Part{read_json_file(path), path};
}

// The scenario at `key`, with what `set` changes of it.
input::Document scenario_at(Reader& arguments, const std::string& key) {
  const Json& given = file_at(arguments, key);
  input::Document document = given.is_string() ? input::read_document(given.get<std::string>())
                                               : input::document_of("the scenario", given);
  if (!arguments.has("set")) return document;
  const Reader changes = arguments.object("set");
  for (const auto& [path, value] : changes.json().items()) input::set_key(document, path, value);
  return document;
}

struct Predictor {
  std::string name;
  measure::ExecutorFactory make;
};

Predictor predictor_of(Reader& arguments) {
  static const std::map<std::string, measure::ExecutorFactory> factories{
      {"model", run::make_model_executor}, {"sim", sim::make_sim_executor}};
  const std::string name = arguments.word_or("executor", "model", {"model", "sim"});
  return {name, factories.at(name)};
}

run::ParallelMap processes_of(Reader& arguments) {
  return run::over_processes(static_cast<int>(arguments.integer_or("jobs", 1, 1, 4096)));
}

// The strategies of these names, as the scenario calls them.
std::vector<std::string> strategies_at(Reader& arguments, const std::string& key,
                                       const input::Document& document) {
  std::vector<std::string> found;
  const std::vector<std::string> names = texts(arguments, key);
  if (names.empty()) return found;
  const Scenario scenario = input::parse_scenario(document);
  for (const auto& name : names) {
    if (const Strategy* strategy = find_strategy(scenario, name)) {
      found.push_back(strategy->name);
      continue;
    }
    std::vector<std::string> known;
    for (const auto& strategy : scenario.strategies) known.push_back(strategy.name);
    arguments.fail(key, "'" + shortened(name) + "' is no strategy of " + document.file +
                            did_you_mean(name, known) + "; it has " + Json(known).dump());
  }
  return found;
}

std::vector<worth::Curve> curves_in(const std::string& file, worth::Quantity quantity,
                                    worth::Over over) {
  return worth::curves_of(read_text_file(file, "a CSV file"), file, quantity, over);
}

// None by the time of a step.
std::optional<worth::Objective> objective_of(Reader& arguments) {
  const std::string word = arguments.word_or("objective", "step_time",
                                             {"step_time", "time_to_loss", "time_to_accuracy"});
  const std::string curves = arguments.text_or("curves", "");
  const std::string measured = arguments.text_or("measured", "");
  const bool targeted = arguments.has("target");
  const double target = arguments.number_or("target", 0, {-1e15, 1e15});
  if (word == "step_time") {
    if (!targeted && measured.empty()) return std::nullopt;
    arguments.fail("objective",
                   "found step_time, expected time_to_loss or time_to_accuracy: target and "
                   "measured belong to them");
  }
  if (!targeted || curves.empty()) arguments.fail("objective", word + " needs target and curves");
  worth::Objective objective;
  objective.quantity = word == "time_to_loss" ? worth::Quantity::kLoss : worth::Quantity::kAccuracy;
  objective.target = target;
  objective.curves = curves_in(curves, objective.quantity, worth::Over::kSteps);
  if (!measured.empty()) {
    objective.measured = curves_in(measured, objective.quantity, worth::Over::kSeconds);
  }
  return objective;
}

void set_grain(Reader& arguments, const Predictor& predictor, input::Document& document) {
  if (!arguments.has("grain")) return;
  if (predictor.name != "sim") {
    arguments.fail("grain", "the " + predictor.name +
                                " executor has no grain, only a simulation has: executor=\"sim\"");
  }
  const std::string grain = arguments.word_or("grain", "merged", {"merged", "step"});
  input::set_key(document, "simulation", document.root.value("simulation", Json::object()));
  input::set_key(document, "simulation.grain", grain);
}

Json run_scenario(Reader& arguments) {
  const Predictor predictor = predictor_of(arguments);
  input::Document document = scenario_at(arguments, "scenario");
  set_grain(arguments, predictor, document);
  measure::StudyOptions study;
  study.executor = predictor.name;
  study.make_executor = predictor.make;
  study.trace = true;  // for the figures
  study.only = strategies_at(arguments, "strategy", document);
  study.parallel_map = processes_of(arguments);
  auto objective = objective_of(arguments);
  if (!objective && arguments.has("curves")) arguments.fail("curves", "belongs to an objective");
  arguments.finish();
  if (objective) {
    const worth::Worth worth = worth::worth_of(document, std::move(*objective), predictor.name,
                                               predictor.make, std::nullopt);
    return told(reports::answer_of(worth, "run"));
  }
  const measure::Report report = measure::run_study(document, study);
  return told(reports::answer_of(report));
}

// As far as `syncline tune` goes.
tune::TuneOptions search_of(Reader& arguments, const Predictor& predictor) {
  tune::TuneOptions options;
  options.executor = predictor.name;
  options.make_executor = predictor.make;
  if (predictor.name != "sim") options.confirm = sim::make_sim_executor;
  options.top = static_cast<std::size_t>(arguments.integer_or("top", 5, 1, 1000));
  constexpr std::int64_t kEvaluatedAtMost = 3000;
  options.budget = static_cast<std::size_t>(
      arguments.integer_or("budget", kEvaluatedAtMost, 0, std::int64_t{1} << 50));
  if (!arguments.has("budget")) options.work = double{kEvaluatedAtMost} * tune::kMostExact;
  options.confirm_work = 10000;  // some seconds
  if (arguments.boolean_or("exhaustive", false)) {
    options.method = tune::TuneOptions::Method::kExhaustive;
    options.budget = options.work = 0;
    options.confirm_work = 0;
  }
  options.parallel_map = processes_of(arguments);
  return options;
}

// The table that syncline.apply takes; nothing where no file can apply the strategy.
Json applied(const Scenario& scenario, const Strategy& strategy) {
  const Cluster& cluster = scenario.cluster;
  if (!dialect::apply_refusal(strategy, scenario.workload, cluster).empty()) return nullptr;
  return dialect::apply_table(dialect::as_applied(strategy), scenario.workload, cluster);
}

Json tune_to_target(Reader& arguments, const input::Document& document, const Predictor& predictor,
                    const tune::TuneOptions& options, worth::Objective objective) {
  if (arguments.has("emit")) arguments.fail("emit", "is for steps: leave it out with an objective");
  arguments.finish();
  const worth::Worth worth =
      worth::worth_of(document, std::move(objective), predictor.name, predictor.make, options);
  return told(reports::answer_of(worth, "tune"),
              worth.rows.empty() ? Json() : applied(worth.scenario, worth.rows.front().strategy));
}

Json tune_scenario(Reader& arguments) {
  const Predictor predictor = predictor_of(arguments);
  input::Document document = scenario_at(arguments, "scenario");
  const std::vector<std::string> chosen = strategies_at(arguments, "strategy", document);
  if (chosen.size() > 1) arguments.fail("strategy", "found several, expected one");
  for (const auto& name : chosen) {
    document.root["baseline"] = name;
    if (document.root.contains("search")) document.root["search"]["base"] = name;
  }
  if (arguments.has("utilisation")) {
    if (predictor.name != "model") arguments.fail("executor", "utilisation needs \"model\"");
    const double share = arguments.number("utilisation", {0.01, 0.9999});
    arguments.finish();
    return told(reports::answer_of(tune::utilisation_of(document, share)));
  }
  tune::TuneOptions options = search_of(arguments, predictor);
  const auto names = dialect::written_dialect_names();
  const std::string emit = arguments.has("emit") ? arguments.word_or("emit", "", names) : "";
  options.take = arguments.text_or("take", "");
  if (!options.take.empty() && emit.empty())
    arguments.fail("take", "names a row to emit: add emit");
  auto objective = objective_of(arguments);
  if (objective) {
    return tune_to_target(arguments, document, predictor, options, std::move(*objective));
  }
  const std::string curves = arguments.text_or("curves", "");
  arguments.finish();
  tune::Tuning tuning = tune::tune_document(document, options, predictor.name == "sim" ? "" : "sim",
                                            emit.empty() ? nullptr : dialect::find_dialect(emit));
  if (!curves.empty()) {
    const auto quantity = worth::quantity_in(read_text_file(curves, "a CSV file"));
    worth::add_outcomes(curves_in(curves, quantity, worth::Over::kSteps), quantity, tuning);
  }
  return told(reports::answer_of(tuning),
              applied(tuning.scenario, tune::best_to_apply(tuning).strategy));
}

Json explain_scenario(Reader& arguments) {
  const auto [document, fit_errors] = measure::calibrated(scenario_at(arguments, "scenario"));
  std::vector<std::string> names = strategies_at(arguments, "strategy", document);
  arguments.finish();
  Scenario scenario = input::parse_scenario(document);
  if (names.empty()) {
    for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  }
  const auto explanation = measure::explained(document, std::move(scenario), names, fit_errors);
  return told(reports::answer_of(explanation));
}

// The factor of the forced trees in a cluster that was calibrated with one.
cost::TreeFactor tree_factor(Reader& arguments, const std::string& key, const Part& cluster) {
  if (!cluster.json.contains("calibration")) {
    arguments.fail(key, "expected a cluster with a calibration, as calibrate makes it");
  }
  const cost::MeasuredCostModel cost_model =
      input::read_cost_model(Reader(cluster.json.at("calibration"), cluster.name, "calibration"));
  const auto factor = cost::tree_factor(cost_model);
  if (!factor && cost_model.tree) return *cost_model.tree;
  if (!factor) {
    arguments.fail(key,
                   "expected a table of a forced tree on three nodes or more (LOG:tree) and one of "
                   "the same network that is not a tree");
  }
  return {*factor, cluster.name};
}

std::optional<calibrate::DeviceFit> device_of(Reader& arguments) {
  const auto workload = part(arguments, "workload");
  const std::string trace = arguments.text_or("trace", "");
  const double throughput = arguments.number_or("throughput", 0, {0, 1e12});
  const bool measured = !trace.empty() || throughput > 0;
  if (!workload && !measured) return std::nullopt;
  if (!workload || !measured) arguments.fail("workload", "goes with trace or throughput of it");
  if (throughput > 0 && !trace.empty()) arguments.fail("trace", "found throughput too: give one");
  if (throughput > 0) {
    return calibrate::device_from_throughput(workload->json, workload->name, throughput);
  }
  return calibrate::device_from_trace(workload->json, workload->name, calibrate::read_trace(trace),
                                      trace);
}

Json calibrate_from_logs(Reader& arguments, const std::optional<calibrate::KernelCosts>& kernels) {
  const std::string name = arguments.text_or("name", "calibrated");
  const std::string algorithm = arguments.word_or("algorithm", "nccl", {"nccl", "ring", "tree"});
  const double line_rate = arguments.number_or("line_rate", 0, {0, 1e7});
  std::optional<cost::TreeFactor> tree;
  if (const auto other = part(arguments, "factor_from")) {
    tree = tree_factor(arguments, "factor_from", *other);
  }
  const auto device = device_of(arguments);
  const std::vector<std::string> logs = texts(arguments, "logs");
  const std::vector<std::string> against = texts(arguments, "against");
  arguments.finish();
  calibrate::LogCalibration calibration = calibrate::calibration_of(
      calibrate::tables_in(logs, algorithm), calibrate::tables_in(against, algorithm), name, tree);
  if (line_rate > 0) calibrate::set_line_rate(calibration, line_rate * kGigabitPerSecond);
  if (device) calibrate::set_device(calibration, *device);
  if (kernels) {
    calibration.cluster = calibrate::with_kernel_costs(calibration.cluster, name, *kernels);
  }
  return told(reports::answer_of(calibration), calibration.cluster);
}

Json calibrate_from_steps(Reader& arguments) {
  const input::Document document = scenario_at(arguments, "steps");
  const std::vector<std::string> rows = texts(arguments, "rows");
  arguments.finish();
  const calibrate::StepFit fit = calibrate::fit_steps(document, rows);
  return told(reports::answer_of(fit), fit.fitted.root);
}

Json calibrate_cluster(Reader& arguments) {
  if (arguments.has("steps")) return calibrate_from_steps(arguments);
  std::optional<calibrate::KernelCosts> kernels;
  if (const auto costs = part(arguments, "kernels")) {
    kernels = calibrate::kernel_costs(costs->json, costs->name);
  }
  if (arguments.has("logs") || !kernels) return calibrate_from_logs(arguments, kernels);
  const auto cluster = part(arguments, "cluster");
  if (!cluster) arguments.fail("cluster", "missing, expected the cluster that kernels go into");
  arguments.finish();
  return told(reports::answer_of(*kernels),
              calibrate::with_kernel_costs(cluster->json, cluster->name, *kernels));
}

Json import_job(Reader& arguments) {
  arguments.require("files");
  const std::vector<std::string> files = texts(arguments, "files");
  job::ImportOptions options;
  options.batch = arguments.integer_or("batch", 0, 1, std::int64_t{1} << 30);
  if (auto cluster = part(arguments, "cluster")) options.cluster = std::move(cluster->json);
  arguments.finish();
  reports::ImportedJob job;
  job.observed = job::read_job(files);
  job.imported = job::scenario_of(job.observed, options);
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  study.trace = true;  // for the figures
  job.evaluated =
      measure::run_study(input::document_of("the imported scenario", job.imported.scenario), study);
  return told(reports::answer_of(job), job.imported.scenario);
}

}  // namespace

Json answer(const std::string& verb, const Json& arguments) {
  static const std::map<std::string, Json (*)(Reader&)> verbs{{"run", run_scenario},
                                                              {"tune", tune_scenario},
                                                              {"explain", explain_scenario},
                                                              {"calibrate", calibrate_cluster},
                                                              {"import_job", import_job}};
  Reader reader(arguments, verb + "()", "");
  return verbs.at(verb)(reader);
}

std::string version() { return SYNCLINE_VERSION; }

}  // namespace syncline::python
