#include "python/verbs.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/executor.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialects.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/input/cost_model_json.h"
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "imports/format.h"
#include "imports/init_question.h"
#include "imports/scenario_of.h"
#include "reports/answer.h"
#include "reports/calibration.h"
#include "reports/explain_report.h"
#include "reports/imported/import_report.h"
#include "reports/imported/init_report.h"
#include "reports/layouts_report.h"
#include "reports/plan_report.h"
#include "reports/run_report.h"
#include "reports/tune_report.h"
#include "reports/utilisation_report.h"
#include "reports/worth_report.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/step_fit.h"
#include "studies/questions/explain.h"
#include "studies/questions/plan.h"
#include "studies/questions/predictors.h"
#include "studies/questions/run.h"
#include "studies/questions/strategies.h"
#include "studies/questions/target.h"
#include "studies/questions/tune.h"
#include "studies/questions/validate.h"
#include "studies/study/study.h"
#include "studies/tune/tuning.h"

namespace syncline::python {
namespace {

// `made` is written by name.
Json told(const reports::Answer& answer, Json made = nullptr) {
  return Json{{"json", reports::whole_json(answer, version())},
              {"text", reports::format_answer(answer, reports::Format::kTable, version())},
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

// Returns the path or the content of a file of JSON.
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

// Returns the scenario at `key`, with the changes of `set`.
input::Document scenario_at(Reader& arguments, const std::string& key) {
  const Json& given = file_at(arguments, key);
  input::Document document = given.is_string() ? input::read_document(given.get<std::string>())
                                               : input::document_of("the scenario", given);
  if (!arguments.has("set")) return document;
  const Reader changes = arguments.object("set");
  for (const auto& [path, value] : changes.json().items()) input::set_key(document, path, value);
  return document;
}

// Takes the value under the argument's name; a missing one keeps its default.
void take(Reader& arguments, const std::string& key, const questions::Argument& argument,
          std::string& value) {
  value = argument.words.empty() ? arguments.text_or(key, value)
                                 : arguments.word_or(key, value, argument.words);
}
void take(Reader& arguments, const std::string& key, const questions::Argument&,
          std::vector<std::string>& value) {
  value = texts(arguments, key);
}
void take(Reader& arguments, const std::string& key, const questions::Argument&, bool& value) {
  value = arguments.boolean_or(key, value);
}
std::int64_t whole(Reader& arguments, const std::string& key, const questions::Argument& argument) {
  return arguments.integer(key, static_cast<std::int64_t>(argument.low),
                           static_cast<std::int64_t>(argument.high));
}
void take(Reader& arguments, const std::string& key, const questions::Argument& argument,
          int& value) {
  value = static_cast<int>(whole(arguments, key, argument));
}
void take(Reader& arguments, const std::string& key, const questions::Argument& argument,
          std::optional<std::size_t>& value) {
  value = static_cast<std::size_t>(whole(arguments, key, argument));
}
void take(Reader& arguments, const std::string& key, const questions::Argument& argument,
          std::optional<double>& value) {
  const bool limited = argument.high > argument.low;
  value = arguments.number(key,
                           limited ? Reader::Limits{argument.low, argument.high}
                                   : Reader::Limits{-questions::kUnlimited, questions::kUnlimited});
}
// One number or a list of them.
void take(Reader& arguments, const std::string& key, const questions::Argument& argument,
          std::vector<std::int64_t>& value) {
  const Json& given = arguments.require(key);
  Json list = given.is_array() ? given : Json::array({given});
  for (const Json& one : list) {
    value.push_back(checked_integer(one, static_cast<std::int64_t>(argument.low),
                                    static_cast<std::int64_t>(argument.high), "tune()", key));
  }
}

// Returns the question with the arguments that its table has.
template <typename Question>
Question question_of(Reader& arguments) {
  Question question;
  for (const questions::Argument& argument : arguments_of(question)) {
    const std::string key = keyword(argument);
    if (!arguments.has(key)) continue;
    std::visit([&](auto* value) { take(arguments, key, argument, *value); }, argument.value);
  }
  return question;
}

Json run_scenario(Reader& arguments) {
  const auto question = question_of<questions::Run>(arguments);
  input::Document document = scenario_at(arguments, "scenario");
  arguments.finish();
  expect_fitting(question);
  set_grain(question, document);
  if (question.objective.has_target()) {
    const worth::Worth worth =
        questions::run_to_target(document, question.objective, question.executor);
    return told(reports::answer_of(worth, "run"));
  }
  const Scenario scenario = input::parse_scenario(document);
  questions::chosen_strategies(scenario, question.strategies, document.file);
  measure::StudyOptions study = study_of(question);
  study.trace = true;  // for the figures
  const measure::Report report = measure::run_study(document, study);
  return told(reports::answer_of(report));
}

// Returns the table that syncline.apply takes; nothing where no file can apply the strategy.
Json applied(const Scenario& scenario, const Strategy& strategy) {
  const Cluster& cluster = scenario.cluster;
  if (!dialect::apply_refusal(strategy, scenario.workload, cluster).empty()) return nullptr;
  return dialect::apply_table(dialect::as_applied(strategy), scenario.workload, cluster);
}

Json tune_to_target(Reader& arguments, const questions::Tune& question,
                    const input::Document& document) {
  if (!question.emit.empty()) {
    arguments.fail("emit", "is for steps: leave it out with an objective");
  }
  const worth::Worth worth = worth_of(question, document, search_of(question));
  return told(reports::answer_of(worth, "tune"),
              worth.rows.empty() ? Json() : applied(worth.scenario, worth.rows.front().strategy));
}

Json tune_scenario(Reader& arguments) {
  const auto question = question_of<questions::Tune>(arguments);
  input::Document document = scenario_at(arguments, "scenario");
  arguments.finish();
  expect_fitting(question);
  set_baseline(question, document);
  if (question.utilisation) return told(reports::answer_of(utilisation_of(question, document)));
  if (question.choice.any()) {
    const tune::Layouts layouts = layouts_of(question, document, search_of(question));
    return told(reports::answer_of(layouts));
  }
  if (question.objective.has_target()) return tune_to_target(arguments, question, document);
  const tune::Tuning tuning = steps_of(question, document, search_of(question));
  return told(reports::answer_of(tuning),
              applied(tuning.scenario, tune::best_to_apply(tuning).strategy));
}

// Answers a question about a scenario that has one answer for all its arguments.
template <typename Question>
Json answer_to(Reader& arguments) {
  const auto question = question_of<Question>(arguments);
  const input::Document document = scenario_at(arguments, "scenario");
  arguments.finish();
  const auto answer = questions::answer(question, document);
  return told(reports::answer_of(answer));
}

// Returns the factor of the forced trees in a cluster that was calibrated with one.
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
  calibrate::LogCalibration calibration =
      calibrate::calibration_of(calibrate::read_tables(logs, algorithm),
                                calibrate::read_tables(against, algorithm), name, tree);
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

Json init_job(Reader& arguments) {
  auto question = question_of<job::InitQuestion>(arguments);
  question.model = arguments.text("model");
  question.words = texts(arguments, "words");
  arguments.finish();
  const job::Begun begun = job::answer(question);
  return told(reports::answer_of(begun), begun.scenario);
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
  static const std::map<std::string, Json (*)(Reader&)> verbs{
      {"run", run_scenario},
      {"tune", tune_scenario},
      {"explain", answer_to<questions::Explain>},
      {"plan", answer_to<questions::PlanQuestion>},
      {"calibrate", calibrate_cluster},
      {"init", init_job},
      {"import_job", import_job}};
  Reader reader(arguments, verb + "()", "");
  return verbs.at(verb)(reader);
}

Json arguments() {
  questions::Run run;
  questions::Tune tune;
  questions::Explain explain;
  questions::PlanQuestion plan;
  job::InitQuestion init;
  questions::Validate validate;
  return {{"run", describe_arguments(arguments_of(run))},
          {"tune", describe_arguments(arguments_of(tune))},
          {"explain", describe_arguments(arguments_of(explain))},
          {"plan", describe_arguments(arguments_of(plan))},
          {"init", describe_arguments(arguments_of(init))},
          {"validate", describe_arguments(arguments_of(validate))}};
}

void hand_in_all() {
  dialect::hand_in(dialect::all_dialects());
  questions::hand_in(
      {{"model", "", run::make_model_executor}, {"sim", "", sim::make_sim_executor}});
}

std::string version() { return SYNCLINE_VERSION; }

}  // namespace syncline::python
