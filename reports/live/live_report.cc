#include "reports/tune_report.h"

#include <nlohmann/json.hpp>

#include "formats/input/scenario_json.h"
#include "reports/bars.h"
#include "reports/format.h"
#include "reports/live/live_report.h"
#include "reports/page.h"
#include "reports/table.h"
#include "reports/written.h"
#include "studies/tune/tuner.h"

namespace syncline::reports {
namespace {

using chart::Unit;

const tune::Estimate& estimate_of(const tune::LiveReport& report) {
  return report.tuning.state.estimates[report.tuning.state.best];
}

std::string answer_sentence(const tune::LiveReport& report) {
  const tune::Estimate& estimate = estimate_of(report);
  return quoted_name(report.best().name) +
         " is the best found: " + seconds_text(estimate.step_time) +
         " per step as far as the evaluations tell, give or take " +
         share_text(100 * estimate.relative_deviation) + ".";
}

std::string truth_sentence(const tune::LiveReport& report) {
  const tune::KnownTruth& truth = *report.truth;
  const double regret = tune::percent_above(truth.best, truth.least);
  return (truth.measured
              ? "A sweep measured all " + std::to_string(report.problem.candidates.size()) +
                    " candidates: there that takes "
              : "The emulated machine is known: in truth that takes ") +
         seconds_text(truth.best) + " per step, " +
         (regret < 1e-6 ? "the least of all candidates"
                        : percent_text(regret) + " over the best candidate (" +
                              seconds_text(truth.least) + ")") +
         ", and " + short_speedup_text(truth.baseline / truth.best) + " over the baseline " +
         quoted_name(report.baseline) + " (" + seconds_text(truth.baseline) + ").";
}

std::string end_sentence(const tune::LiveReport& report) {
  const tune::LiveTuning& tuning = report.tuning;
  const std::string count = plural(tuning.observations.size(), "evaluation");
  if (!tuning.complete) {
    return "Interrupted after " + count + " of at most " +
           std::to_string(report.settings.search.budget) + ": the answer so far.";
  }
  return "Ended after " + count + ": " + tuning.state.stopped + ".";
}

std::string emitted_sentence(const tune::LiveReport& report) {
  const tune::Emitted& emitted = *report.emitted;
  const std::string predicted =
      "the model predicts " + seconds_text(emitted.step_time) + " per step when it is read back";
  if (emitted.exact) {
    return report.emitted_dialect + " can express the best exactly; " + predicted + ".";
  }
  return report.emitted_dialect + " cannot express the best; for the best of what it can " +
         predicted + ". The difference: " + emitted.difference + ".";
}

std::vector<std::string> live_verdicts(const tune::LiveReport& report) {
  std::vector<std::string> sentences;
  if (!report.tuning.observations.empty()) sentences.push_back(answer_sentence(report));
  if (report.truth) sentences.push_back(truth_sentence(report));
  sentences.push_back(end_sentence(report));
  if (report.emitted) sentences.push_back(emitted_sentence(report));
  return sentences;
}

Table evaluations_of(const tune::LiveReport& report) {
  using enum Kind;
  Table evaluations{columns(table_column("evaluation", "evaluation", kInteger, 0, Column::kNoJson),
                            table_column("candidate", "candidate"),
                            table_column("step time,\nmean", "step_time_s", kSeconds),
                            table_column("standard\nerror", "standard_error_s", kSeconds))};
  for (std::size_t i = 0; i < report.tuning.observations.size(); ++i) {
    const tune::Observation& seen = report.tuning.observations[i];
    evaluations.add(show_as(i, std::to_string(i + 1)),
                    report.problem.candidates[seen.candidate].name, seen.step_time,
                    seen.standard_error);
  }
  return evaluations;
}

std::string source_sentence(const tune::LiveReport& report) {
  std::string text = "Step times: " + report.tuning.source + ", " +
                     plural(report.settings.search.steps, "step") + " an evaluation, seed " +
                     std::to_string(report.settings.seed) + ".";
  if (report.truth && !report.truth->measured) {
    text +=
        " This is an emulation: the machine is the closed-form model with noise, nothing was "
        "measured.";
  }
  return text;
}

Page page_of(const tune::LiveReport& report) {
  Page page;
  page.title = "Tuned live: " + one_line(report.scenario) +
               (report.truth && !report.truth->measured ? " (on an emulated machine)" : "");
  page.add("Workload " + one_line(report.workload) + ", cluster " + one_line(report.cluster) + ".");
  page.add(evaluations_of(report));
  page.add("Chosen from " + plural(report.problem.candidates.size(), "candidate") +
           ", ranked beforehand by " + report.member + ".");
  page.add(Items{"Verdicts:", live_verdicts(report)});
  page.add(source_sentence(report));
  if (!report.tuning.observations.empty()) {
    page.add("The best, as a strategy of a scenario:");
    page.add(Listing{"json", input::strategy_json(report.best().strategy).dump(2) + "\n"});
  }
  if (report.emitted) add_configuration(page, report.emitted_dialect, *report.emitted);
  return page;
}

Json json_of(const tune::LiveReport& report) {
  const tune::LiveTuning& tuning = report.tuning;
  Json json;
  if (!tuning.observations.empty()) {
    json["best"] = input::strategy_json(report.best().strategy);
    json["step_time_s"] = exact(estimate_of(report).step_time);
    json["relative_deviation"] = exact(estimate_of(report).relative_deviation);
  }
  json["evaluations"] = tuning.observations.size();
  json["complete"] = tuning.complete;
  json["source"] = tuning.source;
  if (report.truth) {
    json["true_step_time_s"] = exact(report.truth->best);
    json["regret_percent"] = exact(tune::percent_above(report.truth->best, report.truth->least));
    json["baseline_s"] = exact(report.truth->baseline);
  }
  json["observations"] = json_of(evaluations_of(report));
  json["verdicts"] = live_verdicts(report);
  if (report.emitted) json["emitted"] = emitted_json(report.emitted_dialect, *report.emitted);
  json["provenance"] = {{"workload", report.workload},
                        {"cluster", report.cluster},
                        {"figures", source_sentence(report)}};
  return json;
}

}  // namespace

Answer answer_of(const tune::LiveReport& report) {
  return make_answer("tune", report.scenario, report, page_of, evaluations_of, json_of, {},
                     figures_of);
}

std::vector<Illustration> figures_of(const tune::LiveReport& report) {
  chart::Figure figure{"s-search",
                       "The search, evaluation by evaluation",
                       "",
                       {"evaluation", Unit::kNumber},
                       {"step time", Unit::kSeconds}};
  chart::Series best{"the least so far", chart::kOrange};
  chart::Series seen = chart::point_series("measured", chart::kBlue);
  best.steps = true;
  Seconds least = 0;
  for (const auto& one : report.tuning.observations) {
    const auto number = static_cast<double>(seen.points.size() + 1);
    least = least == 0 ? one.step_time : std::min(least, one.step_time);
    best.points.push_back({number, least});
    seen.points.push_back({number, one.step_time});
    seen.whiskers.push_back(
        {number, one.step_time - one.standard_error, one.step_time + one.standard_error});
    seen.labels.push_back(one_line(report.problem.candidates[one.candidate].name));
  }
  if (seen.points.size() < 2) return {};  // no chart of one point
  figure.up.logarithmic = outlying({seen});
  figure.series = {std::move(seen), std::move(best)};
  if (report.truth) {
    figure.rules = {{"the best candidate, in truth", false, report.truth->least, chart::kGreen},
                    {"the baseline", false, report.truth->baseline, chart::kGrey}};
  }
  figure.note = "Strokes: a standard error up and down.";
  return {{std::move(figure)}};
}

}  // namespace syncline::reports
