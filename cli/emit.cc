#include "cli/tune.h"

#include <cmath>
#include <iostream>
#include <memory>

#include "cli/built_in.h"
#include "cli/heartbeat.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "core/executor.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "reports/format.h"
#include "reports/written.h"
#include "studies/study/study.h"

namespace syncline::cli {
namespace {

struct EmitOptions {
  ScenarioOption scenario;
  std::string strategy;
  std::string dialect;
  std::string python;
  std::string nccl_table;
  bool code = false;
};

void write_nccl_table(const EmitOptions& options, const Scenario& scenario,
                      const Strategy& strategy) {
  const std::string lines = dialect::nccl_table(strategy, scenario.workload, scenario.cluster);
  if (lines.empty()) {
    throw InputError("--nccl-table: strategy '" + strategy.name +
                     "' names no NCCL algorithm on this cluster: NCCL chooses");
  }
  write_file(
      options.nccl_table,
      "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n" + lines);
  std::cerr << "syncline: wrote " << options.nccl_table
            << "; run the job with NCCL_TUNER_PLUGIN=PATH/libsyncline_nccl_tuner.so "
               "SYNCLINE_NCCL_TABLE="
            << options.nccl_table << "\n";
}

// Writes the file that applies the strategy, even if settings alone would do.
int write_python(const EmitOptions& options, const Scenario& scenario, const Strategy& strategy,
                 const dialect::Written& written, const measure::FitErrors& fit_errors) {
  write_apply_file(options.python, scenario, strategy, fit_errors);
  if (written.exact) {
    std::cerr << "syncline: DistributedDataParallel needs no file for this strategy, only "
              << written.config.dump() << "\n";
    tell_warnings(reports::list_notes(written));
  }
  return 0;
}

// Returns a note on --python for a strategy that the configuration does not express.
std::string way_out(const EmitOptions& options, const Scenario& scenario,
                    const Strategy& strategy) {
  const bool possible =
      options.dialect == kPythonDialect &&
      dialect::apply_refusal(strategy, scenario.workload, scenario.cluster).empty();
  return possible ? "; --python FILE writes a Python file that applies it" : "";
}

int run(const EmitOptions& options) {
  const auto [document, known] = measure::calibrate_document(read(options.scenario));
  const Scenario scenario = input::parse_scenario(document);
  expect_writable({options.python, options.nccl_table});
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, document.file);
  const auto written = dialect::write_config(*dialect::find_dialect(options.dialect), strategy,
                                             scenario.workload, scenario.cluster);
  const bool by_file = !options.nccl_table.empty() || !options.python.empty();
  if (written->exact || by_file) tell_warnings(warnings_here(document, {strategy}));
  if (!options.nccl_table.empty()) write_nccl_table(options, scenario, strategy);
  if (!options.python.empty()) return write_python(options, scenario, strategy, *written, known);
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  const auto evaluated = [&](const Strategy& one) {
    return measure::evaluate_strategy(scenario, one, *executor, cache);
  };
  const auto wanted = evaluated(strategy);
  const auto found = evaluated(written->strategy);
  const std::string times = reports::seconds_text(found.metrics.step_time) +
                            " per step instead of " +
                            reports::seconds_text(wanted.metrics.step_time);
  if (!written->exact) {
    throw InputError(questions::nearest_text(strategy, options.dialect, *written) + " (" + times +
                     ")" + way_out(options, scenario, strategy));
  }
  const dialect::Dialect& dialect = *dialect::find_dialect(options.dialect);
  break_silence();
  std::cout << (options.code
                    ? dialect::config_text(dialect, written->config, scenario.workload.parallel)
                    : written->config.dump(2))
            << "\n";
  const Seconds off = std::abs(found.metrics.step_time - wanted.metrics.step_time);
  if (off > 1e-9 * wanted.metrics.step_time) {
    std::cerr << "syncline: the same communication, but " +
                     dialect::time_difference(wanted.plan, found.plan)
              << " (" << times << ")\n";
  }
  tell_warnings(reports::list_notes(*written));
  return 0;
}

}  // namespace

VerbAction add_emit(CLI::App& verb) {
  auto options = std::make_shared<EmitOptions>();
  add_scenario(verb, options->scenario, "its sweep is ignored");
  add_strategy(verb, options->strategy, "the first");
  verb.add_option("--dialect", options->dialect, "framework")
      ->required()
      ->transform(one_of_words(dialect::written_dialect_names()));
  verb.add_flag("--code", options->code, "print flags or script lines to paste, instead of JSON");
  add_file(verb, "--python", options->python,
           "write a Python file that applies it (--dialect pytorch)");
  add_file(verb, "--nccl-table", options->nccl_table,
           "write its algorithms for NCCL's tuner plugin (2.24+)");
  return [options] {
    check_python(options->python, options->dialect, "--dialect");
    return run(*options);
  };
}

void check_python(const std::string& file, const std::string& dialect, const std::string& option) {
  if (file.empty() || dialect == kPythonDialect) return;
  throw InputError("--python writes a file for PyTorch: add " + option + " " +
                   std::string(kPythonDialect));
}

std::string apply_file(const Scenario& scenario, const Strategy& chosen,
                       const measure::FitErrors& fit_errors) {
  const Strategy strategy = dialect::with_whole_graph(chosen);
  const std::string refusal = dialect::apply_refusal(strategy, scenario.workload, scenario.cluster);
  if (!refusal.empty()) {
    throw InputError("strategy '" + strategy.name +
                     "' cannot be applied by a Python file: " + refusal);
  }
  const Strategy applied = dialect::as_applied(strategy);
  const std::string placeholder = "STRATEGY = None\n";
  std::string file(apply_script());
  file.replace(file.find(placeholder), placeholder.size(),
               reports::applied_comment(scenario, applied, fit_errors) + "STRATEGY = " +
                   dialect::apply_table(strategy, scenario.workload, scenario.cluster) + "\n");
  return file;
}

void write_apply_file(const std::string& file, const Scenario& scenario, const Strategy& strategy,
                      const measure::FitErrors& fit_errors) {
  write_file(file, apply_file(scenario, strategy, fit_errors));
  std::cerr << "syncline: wrote " << file << "; " << reports::apply_usage(file, strategy) << "\n";
}

}  // namespace syncline::cli
