#include <iostream>
#include <memory>

#include "cli/exit.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/scenario_option.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/train/numerics.h"
#include "reports/numerics.h"

namespace syncline::cli {
namespace {

struct NumericsOptions {
  ScenarioOption scenario;
  OutputFormat format;
  int seeds = 5;
  std::int64_t steps = 4000;
  int jobs = 1;
  std::string curves;
};

int run(const NumericsOptions& options) {
  // A wrong scenario is to be known before minutes of training.
  std::unique_ptr<input::Document> document;
  if (!options.scenario.file.empty()) {
    document = std::make_unique<input::Document>(read(options.scenario));
    input::parse_scenario(*document);
  }
  expect_writable({options.curves});
  catch_interrupts();
  train::NumericsSettings settings;
  settings.seeds = options.seeds;
  settings.steps = options.steps;
  settings.jobs = options.jobs;
  settings.curves = !options.curves.empty();
  train::Numerics numerics;
  {
    Progress progress("syncline numerics");
    settings.hooks.progress = [&](std::size_t done, std::size_t wanted) {
      progress.update(done, wanted);
    };
    settings.hooks.interrupted = interrupted;
    numerics = train::run_numerics(settings);
  }
  if (document) numerics = train::priced(std::move(numerics), *document);
  if (!numerics.complete) {
    std::cerr << "syncline: interrupted: only methods with all of their seeds are shown\n";
  }
  const SideFile curves{options.curves,
                        [&] { return reports::csv_text(reports::curves_of(numerics)); }};
  answer_with({curves}, [&] { print(reports::answer_of(numerics), options.format); });
  return interrupted() ? kInterruptedExit : 0;
}

}  // namespace

VerbAction add_numerics(CLI::App& app) {
  auto options = std::make_shared<NumericsOptions>();
  auto* verb = app.add_subcommand(
      "numerics", "Train a small network with DGC and LocalSGD: what they do to the loss");
  verb->add_option("scenario", options->scenario.file,
                   "workload and cluster (JSON) whose throughput LocalSGD's periods are priced on");
  add_set(*verb, options->scenario.set);
  verb->add_option("--seeds", options->seeds, "trainings of each method")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "steps of each training")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  verb->add_option("--jobs", options->jobs,
                   "processes that share the trainings; the answer is the same")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--curves", options->curves,
                   "file for the curves of loss and accuracy (CSV), as `run --objective "
                   "time_to_loss` takes them");
  add_format(*verb, options->format);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
