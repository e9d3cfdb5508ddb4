#include "reports/check_report.h"

#include <nlohmann/json.hpp>

#include "core/measure/memory.h"
#include "core/measure/warnings.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string contents(const Checked& checked) {
  const Scenario& scenario = checked.scenario;
  const Workload& workload = scenario.workload;
  const std::size_t strategies = scenario.strategies.size();
  return "  workload  " + workload.name + ": " + plural(workload.tensors.size(), "gradient") +
         ", " + bytes_text(static_cast<double>(gradient_bytes(workload))) + ", forward " +
         seconds_text(workload.forward) + ", backward " + seconds_text(backward_time(workload)) +
         "\n  cluster   " + scenario.cluster.name + ": " +
         plural(static_cast<std::size_t>(scenario.cluster.nodes), "node") + " x " +
         plural(static_cast<std::size_t>(scenario.cluster.gpus_per_node), "GPU") +
         "\n  rows      " + std::to_string(strategies) +
         (strategies == 1 ? " strategy x " : " strategies x ") +
         plural(checked.points, "sweep point") + "\n";
}

Page page_of(const Checked& checked) {
  const std::string shortage = measure::memory_shortage(checked.scenario);
  std::vector<std::string> warnings = checked.warnings;
  const bool doubtful = !measure::take_suspicious(warnings).empty();
  Page page{checked.file,
            !shortage.empty() ? "correct, but does not fit: " + shortage
            : doubtful        ? "correct, but doubtful"
                              : "correct",
            {Listing{"text", contents(checked)}}};
  std::vector<std::string> notes;
  for (const auto& strategy : checked.scenario.strategies) {
    const std::string who = "strategy '" + strategy.name + "'" +
                            (strategy.dialect.empty() ? "" : " (" + strategy.dialect + ")") + ": ";
    for (const auto& note : strategy.notes) notes.push_back(who + note);
  }
  if (!notes.empty()) page.blocks.emplace_back(Items{"Notes:", std::move(notes)});
  return page;
}

Table notes_of(const Checked& checked) {
  Table notes{columns(kept("strategy"), kept("dialect"), kept("note"))};
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
              {"gradients", workload.tensors.size()},
              {"bytes", gradient_bytes(workload)},
              {"forward_s", exact(workload.forward)},
              {"backward_s", exact(backward_time(workload))}}},
            {"cluster",
             {{"name", scenario.cluster.name},
              {"nodes", scenario.cluster.nodes},
              {"gpus_per_node", scenario.cluster.gpus_per_node}}},
            {"strategies", scenario.strategies.size()},
            {"sweep_points", checked.points},
            {"notes", json_of(notes_of(checked))}};
  const std::string shortage = measure::memory_shortage(scenario);
  if (!shortage.empty()) json["does_not_fit"] = shortage;
  return json;
}

}  // namespace

Answer answer_of(const Checked& checked) {
  return {"check",
          checked.scenario.name,
          [&] { return page_of(checked); },
          [&] { return notes_of(checked); },
          [&] { return json_of(checked); },
          checked.warnings};
}

}  // namespace syncline::reports
