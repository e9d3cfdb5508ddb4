#include <memory>

#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/output.h"
#include "cli/validate_rank.h"
#include "cli/verbs.h"
#include "cli/word_option.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/input/read_scenario.h"

namespace syncline::cli {
namespace {

int run(const ValidateOptions& options) {
  const input::Document document = read_on_ranks(options.scenario);
  Scenario scenario = input::parse_scenario(document);
  scenario.cluster.device.overlap = {};  // timers stand in for what exchanges would slow
  scenario.strategies = chosen_strategies(scenario, options.only, document.file);
  if (!options.cluster_out.empty() && !options.calibrate) {
    throw InputError("--cluster-out: expected --calibrate too, which measures what is written");
  }
  catch_interrupts();
  std::string key = document.root.dump() + options.backend + options.values;
  for (const auto& name : options.only) key += "\n" + name;
  key += std::to_string(options.warmup) + " " + std::to_string(options.repeats) +
         (options.calibrate ? " calibrate" : "") + (options.no_check ? " no check" : "");
  return with_ranks(options.ranks, fingerprint(key), [&](live::ControlChannel& channel) {
    require_ranks(channel, document, scenario.cluster);
    return validate_rank(options, document, scenario, channel);
  });
}

}  // namespace

VerbAction add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  auto* verb = app.add_subcommand(
      "validate",
      "Run a scenario's plans on real machines too, and say where prediction and "
      "measurement differ");
  add_scenario(*verb, options->scenario, "its sweep is ignored");
  verb->add_option("--backend", options->backend, "what moves the gradients")
      ->transform(one_of_words(backend_names()))
      ->capture_default_str();
  add_ranks_options(*verb, options->ranks);
  verb->add_flag("--calibrate", options->calibrate,
                 "measure the links first and predict with what was found; else the scenario's "
                 "figures stand");
  verb->add_option("--cluster-out", options->cluster_out,
                   "file for the cluster with the measured links (JSON)");
  verb->add_option("--strategy,--only", options->only, "names of strategies, instead of all");
  verb->add_option("--executor", options->executor, "executor used for the prediction")
      ->transform(one_of_words(predictor_names()))
      ->capture_default_str();
  verb->add_option("--warmup", options->warmup, "warm-up periods, run but not measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--repeats", options->repeats, "periods that are measured")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_flag("--no-check", options->no_check,
                 "do not compare the exchanged values with the host executor's");
  verb->add_option("--values", options->values,
                   "gradients made of integers, whose sums are exact, or of real numbers")
      ->transform(one_of_words({"integers", "real"}))
      ->capture_default_str();
  add_format(*verb, options->format);
  add_html(*verb, options->html);
  verb->add_option("--trace", options->trace,
                   "file for a Chrome trace of every row, predicted and measured on every rank "
                   "(open in ui.perfetto.dev)");
  verb->add_option("-o,--out", options->out, "file for the report (JSON), kept current row by row");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
