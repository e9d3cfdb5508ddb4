#include <csignal>
#include <iostream>
#include <memory>

#include "cli/files.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/tune/tuning.h"
#include "reports/curve.h"
#include "reports/tune_report.h"
#include "sim/sim_executor.h"

namespace syncline {
namespace {

volatile std::sig_atomic_t interrupts = 0;

// The first Ctrl-C ends the search with what it has; the second ends the program.
void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts < 2) return;
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

struct TuneVerbOptions {
  std::string file;
  std::string emit;
  std::string format = "text";
  std::string svg;
  std::string csv;
  std::string executor = "model";
  std::vector<std::string> set;
  std::size_t top = 5;
  std::size_t budget = 3000;
};

// "cluster.inter.bandwidth_gbps=10": the value as JSON, or as plain text where it is none.
void set_keys(Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + change + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;
    set_key(document, change.substr(0, equals), value);
  }
}

std::string printed(const Tuning& tuning, const std::string& format) {
  if (format == "json") return tune_json(tuning);
  if (format == "markdown") return tune_markdown(tuning);
  if (format == "csv") return tune_csv(tuning);
  return tune_text(tuning);
}

int run(const TuneVerbOptions& verb) {
  Document document = read_document(verb.file);
  set_keys(document, verb.set);
  Progress progress("syncline tune");
  const bool simulated = verb.executor == "sim";
  TuneOptions options;
  options.executor = verb.executor;
  options.make_executor = simulated ? make_sim_executor : make_model_executor;
  if (!simulated) options.confirm = make_sim_executor;
  options.top = verb.top;
  options.budget = verb.budget;
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  options.interrupted = [] { return interrupts > 0; };
  std::signal(SIGINT, on_interrupt);
  const Dialect* emit = verb.emit.empty() ? nullptr : find_dialect(verb.emit);
  const Tuning tuning = tune_document(document, options, simulated ? "" : "sim", emit);

  if (!verb.svg.empty()) {
    write_file(verb.svg, curve_svg(tuning.tuned.curve, tuning.tuned.winner().metrics.step_time,
                                   tuning.scenario.name));
  }
  if (!verb.csv.empty()) write_file(verb.csv, curve_csv(tuning.tuned.curve));
  std::cout << printed(tuning, verb.format);
  constexpr int kInterrupted = 130;
  return interrupts > 0 ? kInterrupted : 0;
}

}  // namespace

VerbAction add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneVerbOptions>();
  auto* verb = app.add_subcommand(
      "tune", "Find the best strategy, say how good it is, and write it for a framework");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is left aside")
      ->required();
  verb->add_option(
          "--emit", options->emit,
          "also write the best as the configuration of this framework, or the best that it "
          "can say")
      ->check(CLI::IsMember({"paddle", "mindspore", "pytorch", "horovod"}));
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "json", "markdown", "csv"}))
      ->capture_default_str();
  verb->add_option("--svg", options->svg, "file for the curve of step time over bucket size");
  verb->add_option("--csv", options->csv, "file for that curve as bytes,step_time_s");
  verb->add_option(
          "--executor", options->executor,
          "prices the candidates. model: closed form, and the best few simulated; sim: all "
          "of them simulated")
      ->check(CLI::IsMember({"model", "sim"}))
      ->capture_default_str();
  verb->add_option("--top", options->top, "how many of the best are printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--budget", options->budget, "candidates priced at most; 0: no limit")
      ->capture_default_str();
  verb->add_option("--set", options->set, "change a key of the scenario first: KEY=VALUE");
  return [options] { return run(*options); };
}

}  // namespace syncline
