#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/tune.h"
#include "cli/word_option.h"
#include "core/dialect/dialect.h"
#include "core/run/jobs.h"
#include "core/tune/thresholds.h"

namespace syncline::cli {

void add_tune_options(CLI::App& verb, TuneVerbOptions& options) {
  add_scenario(verb, options.scenario, "its sweep is ignored");
  verb.add_option("--strategy", options.strategy,
                  "the strategy whose knobs hold where nothing is searched, and which the others "
                  "are compared with; the scenario's own choice if left out");
  verb.add_option("--emit", options.emit,
                  "also write the best as the configuration of this framework, or the best that it "
                  "can express")
      ->transform(one_of_words(dialect::written_dialect_names()));
  verb.add_option("--python", options.python,
                  "with --emit pytorch: file to write that applies the best in a job, also what "
                  "no configuration expresses");
  verb.add_option("--take", options.take,
                  "with --emit: the row of the first table that is written, by its name; the best "
                  "that was found if left out");
  add_format(verb, options.format);
  add_html(verb, options.html);
  verb.add_option("--svg", options.svg, "file for the curve of step time over bucket size");
  verb.add_option("--csv", options.csv, "file for that curve as bytes,step_time_s");
  verb.add_option("--executor", options.executor,
                  "prices the candidates. model: closed form, and the best few simulated; sim: all "
                  "of them simulated")
      ->transform(one_of_words(predictor_names()))
      ->capture_default_str();
  verb.add_option("--top", options.top, "how many of the best are printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb.add_option("--budget", options.budget,
                  "maximum number of candidates (default 3000, fewer for models of more than 600 "
                  "gradients; 0: unlimited); with --live, of "
                  "evaluations (default 12)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "found " + text + ", expected 0 or more" : "";
          },
          ""));
  verb.add_flag("--exhaustive", options.exhaustive,
                "price every candidate, also those that the bounds rule out; with --live "
                "gloo, measure every candidate after the search, to grade it");
  verb.add_option("--jobs", options.jobs,
                  "processes that share exhaustive walks and simulations; the answer is the same")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_objective(verb, options.objective);
  add_live_options(verb, options.live);
}

tune::TuneOptions search_options(const TuneVerbOptions& verb) {
  tune::TuneOptions options;
  options.executor = verb.executor;
  options.make_executor = predictor_named(verb.executor).make;
  options.top = verb.top;
  constexpr std::size_t kPricedAtMost = 3000;
  options.budget = verb.budget.value_or(kPricedAtMost);
  if (!verb.budget) options.work = kPricedAtMost * tune::kMostExact;
  options.confirm_work = 10000;  // some seconds
  if (verb.exhaustive) {
    options.method = tune::TuneOptions::Method::kExhaustive;
    options.budget = options.work = 0;
    options.confirm_work = 0;
  }
  options.parallel_map = run::over_processes(verb.jobs);
  options.interrupted = interrupted;
  options.take = verb.take;
  return options;
}

}  // namespace syncline::cli
