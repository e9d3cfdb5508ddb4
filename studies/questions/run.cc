#include "studies/questions/run.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/run/jobs.h"
#include "studies/questions/predictors.h"

namespace syncline::questions {

Arguments arguments_of(Run& question) {
  Arguments arguments{{.name = "strategy",
                       .value = &question.strategies,
                       .help = "strategies to predict; may be repeated (default: all)"},
                      executor_argument(question.executor, "predict with"),
                      {.name = "grain",
                       .value = &question.granularity,
                       .help = "simulate rounds or every message, with --executor sim",
                       .words = {"merged", "step"},
                       .shown = "merged",
                       .group = "Rows"},
                      {.name = "jobs",
                       .value = &question.jobs,
                       .help = "processes that share the rows",
                       .low = 1,
                       .high = 4096,
                       .group = "Rows"}};
  add_arguments(question.objective, arguments);
  return arguments;
}

void expect_fitting(const Run& question) {
  expect_whole(question.objective);
  if (!question.granularity.empty() && question.executor != "sim") {
    throw InputError("--grain: the " + question.executor +
                     " executor does not simulate: add --executor sim");
  }
}

void set_grain(const Run& question, input::Document& document) {
  if (question.granularity.empty()) return;
  input::set_key(document, "simulation", document.root.value("simulation", Json::object()));
  input::set_key(document, "simulation.grain", question.granularity);
}

measure::StudyOptions study_of(const Run& question) {
  measure::StudyOptions study;
  study.executor = question.executor;
  study.make_executor = predictor_named(question.executor).make;
  study.only = question.strategies;
  study.parallel_map = run::over_processes(question.jobs);
  return study;
}

}  // namespace syncline::questions
