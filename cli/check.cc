#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "formats/input/document.h"
#include "reports/format.h"
#include "reports/table.h"
#include "studies/rows/fitting.h"
#include "studies/warnings/warnings.h"

namespace syncline::cli {
namespace {

struct CheckOptions {
  ScenarioOption scenario;
  std::vector<std::string> strategies;
  Output output;
};

// A scenario that is correct at each of its sweep points.
struct Checked {
  std::string file;
  Scenario scenario;
  std::string shortage = {};  // memory shortage; empty: all fit
  std::size_t points = 1;
  std::vector<std::string> warnings = {};
};

std::size_t gradients_of(const Workload& workload) {
  return static_cast<std::size_t>(std::ranges::count(workload.tensors, false, &Tensor::frozen));
}

Bytes frozen_bytes(const Workload& workload) {
  Bytes bytes = 0;
  for (const Tensor& tensor : workload.tensors) bytes += tensor.frozen ? tensor.bytes() : 0;
  return bytes;
}

// Returns the number and bytes of frozen parameters, ", 291 frozen parameters, 16 GB"; empty: none.
std::string frozen_text(const Workload& workload) {
  const Bytes bytes = frozen_bytes(workload);
  if (bytes == 0) return "";
  return ", " +
         reports::plural(workload.tensors.size() - gradients_of(workload), "frozen parameter") +
         ", " + reports::bytes_text(bytes);
}

std::string contents(const Checked& checked) {
  const Scenario& scenario = checked.scenario;
  const Workload& workload = scenario.workload;
  const std::size_t strategies = scenario.strategies.size();
  return "  workload  " + workload.name + ": " +
         reports::plural(gradients_of(workload), "gradient") + ", " +
         reports::bytes_text(gradient_bytes(workload)) + frozen_text(workload) + ", forward " +
         reports::seconds_text(workload.forward) + ", backward " +
         reports::seconds_text(backward_time(workload)) + "\n  cluster   " + scenario.cluster.name +
         ": " + reports::plural(scenario.cluster.nodes, "node") + " x " +
         reports::plural(scenario.cluster.gpus_per_node, "GPU") + "\n  rows      " +
         std::to_string(strategies) + (strategies == 1 ? " strategy x " : " strategies x ") +
         reports::plural(checked.points, "sweep point") + "\n";
}

reports::Page page_of(const Checked& checked) {
  const std::string& shortage = checked.shortage;
  std::vector<std::string> warnings = checked.warnings;
  const bool doubtful = !measure::take_suspicious(warnings).empty();
  reports::Page page{checked.file,
                     !shortage.empty() ? "correct, but does not fit: " + shortage
                     : doubtful        ? "correct, but doubtful"
                                       : "correct",
                     {reports::Listing{"text", contents(checked)}}};
  page.add(reports::Items{"Notes:", measure::strategy_notes(checked.scenario.strategies)});
  return page;
}

reports::Table notes_of(const Checked& checked) {
  using reports::data_column;
  reports::Table notes{
      reports::columns(data_column("strategy"), data_column("dialect"), data_column("note"))};
  for (const auto& strategy : checked.scenario.strategies) {
    for (const auto& note : strategy.notes) notes.add(strategy.name, strategy.dialect, note);
  }
  return notes;
}

Json json_of(const Checked& checked) {
  const Scenario& scenario = checked.scenario;
  const Workload& workload = scenario.workload;
  Json json{{"file", checked.file},
            {"workload",
             {{"name", workload.name},
              {"gradients", gradients_of(workload)},
              {"bytes", gradient_bytes(workload)},
              {"forward_s", reports::exact(workload.forward)},
              {"backward_s", reports::exact(backward_time(workload))}}},
            {"cluster",
             {{"name", scenario.cluster.name},
              {"nodes", scenario.cluster.nodes},
              {"gpus_per_node", scenario.cluster.gpus_per_node}}},
            {"strategies", scenario.strategies.size()},
            {"sweep_points", checked.points},
            {"notes", reports::json_of(notes_of(checked))}};
  if (const Bytes bytes = frozen_bytes(workload); bytes > 0) {
    json["workload"]["frozen_parameters"] = workload.tensors.size() - gradients_of(workload);
    json["workload"]["frozen_bytes"] = bytes;
  }
  if (!checked.shortage.empty()) json["does_not_fit"] = checked.shortage;
  return json;
}

int run(const CheckOptions& options) {
  const input::Document document = read(options.scenario);
  Checked checked{document.file, input::parse_scenario(document)};
  checked.shortage = measure::memory_shortage(document, checked.scenario).words();
  const Sweep sweep(checked.scenario);
  checked.points = sweep.size();
  Progress progress("syncline check");
  checked.warnings = measure::warnings_of(
      document, checked.scenario, sweep, [] { return false; },
      [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); });
  checked.scenario.strategies =
      chosen_strategies(checked.scenario, options.strategies, document.file);
  print(reports::make_answer("check", checked.scenario.name, checked, page_of, notes_of, json_of,
                             checked.warnings),
        options.output);
  return 0;
}

}  // namespace

VerbAction add_check(CLI::App& verb) {
  auto options = std::make_shared<CheckOptions>();
  add_scenario(verb, options->scenario);
  add_strategies(verb, options->strategies,
                 "strategies to print notes on; may be repeated (default: all)");
  add_format(verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
