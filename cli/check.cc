#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/verbs.h"
#include "core/collective/nccl.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/planner.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

bool uses_nccl(const Strategy& strategy) {
  return strategy.algorithm == collective::kNcclName ||
         strategy.hierarchy.inside == collective::kNcclName ||
         strategy.hierarchy.across == collective::kNcclName;
}

// What the choice of NCCL rests on here.
std::string nccl_remark(const Cluster& cluster) {
  const collective::NcclTopology t =
      collective::nccl_topology(cluster, collective::world_group(cluster.ranks()));
  std::ostringstream text;
  text << "algorithm nccl: taken for compute capability " << t.least_capability << ", "
       << t.ring.channels << (t.ring.channels == 1 ? " channel" : " channels") << " of "
       << t.ring.intra / kGigabytePerSecond << " GB/s inside a node and "
       << t.ring.inter / kGigabytePerSecond << " GB/s across" << (t.nvswitch ? ", NVSwitch" : "")
       << " (cluster.nccl overrides); "
       << (cluster.law ? "times by the cluster's calibration where it covers them"
                       : "times are what NCCL 2.28.9's own model believes, not calibrated here");
  return text.str();
}

// Things that are allowed and rarely meant.
std::vector<std::string> remarks(const Scenario& scenario) {
  std::vector<std::string> list;
  const int ranks = scenario.cluster.ranks();
  const bool computes_alike =
      scenario.workload.operators.empty() ||
      std::none_of(scenario.strategies.begin(), scenario.strategies.end(),
                   [](const Strategy& strategy) { return plan::any(strategy.compute_fusion); });
  if (ranks == 1 && computes_alike) {
    list.push_back("one rank exchanges nothing: every strategy costs the same");
  }
  if (backward_time(scenario.workload) == 0 && scenario.workload.forward == 0) {
    list.push_back(
        "the workload has no compute times (forward_ms, backward_us or backward_ms, or FLOPs with "
        "cluster.device.tflops): only communication is priced, nothing can overlap");
  }
  for (const auto& strategy : scenario.strategies) {
    if (uses_nccl(strategy) && ranks > 1) {
      list.push_back("strategy '" + strategy.name + "': " + nccl_remark(scenario.cluster));
    }
    const bool memory = scenario.cluster.device.memory > 0;
    if (!strategy.compression.codec.empty() && !memory) {
      list.push_back("strategy '" + strategy.name +
                     "': cluster.device.memory_gbytes_per_s is not given, encoding costs nothing");
    }
    const auto& hierarchy = strategy.hierarchy;
    if (hierarchy.form != Hierarchy::Form::kFlat &&
        (hierarchy.group_size == 1 || hierarchy.group_size == ranks)) {
      list.push_back("strategy '" + strategy.name + "': hierarchy with groups of " +
                     std::to_string(hierarchy.group_size) + " of " + std::to_string(ranks) +
                     " ranks has only one level");
    }
    if (strategy.local_sgd.enabled && strategy.local_sgd.period == 1 &&
        !strategy.local_sgd.adaptive) {
      list.push_back("strategy '" + strategy.name +
                     "': local_sgd with period 1 averages parameters after every step");
    }
  }
  return list;
}

int run(const std::string& file) {
  const input::Document document = input::read_document(file);
  const Scenario scenario = input::parse_scenario(document);
  const auto points = sweep_points(scenario);
  for (const auto& point : points) {
    input::Document at = document;
    for (const auto& [path, value] : point) input::set_key(at, path, value);
    input::parse_scenario(at);
  }
  const Workload& workload = scenario.workload;
  std::cout << file << ": correct\n"
            << "  workload  " << workload.name << ": "
            << reports::plural(workload.tensors.size(), "gradient") << ", "
            << reports::bytes_text(static_cast<double>(gradient_bytes(workload))) << ", forward "
            << reports::seconds_text(workload.forward) << ", backward "
            << reports::seconds_text(backward_time(workload)) << "\n"
            << "  cluster   " << scenario.cluster.name << ": "
            << reports::plural(static_cast<std::size_t>(scenario.cluster.nodes), "node") << " x "
            << reports::plural(static_cast<std::size_t>(scenario.cluster.gpus_per_node), "GPU")
            << "\n"
            << "  rows      " << scenario.strategies.size()
            << (scenario.strategies.size() == 1 ? " strategy x " : " strategies x ")
            << reports::plural(points.size(), "sweep point") << "\n";
  for (const auto& remark : remarks(scenario)) std::cout << "  note: " << remark << "\n";
  for (const auto& strategy : scenario.strategies) {
    for (const auto& note : strategy.notes) {
      std::cout << "  note: strategy '" << strategy.name << "'"
                << (strategy.dialect.empty() ? "" : " (" + strategy.dialect + ")") << ": " << note
                << "\n";
    }
  }
  return 0;
}

}  // namespace

VerbAction add_check(CLI::App& app) {
  auto file = std::make_shared<std::string>();
  auto* verb = app.add_subcommand("check", "Validate a scenario at every sweep point");
  verb->add_option("file", *file, "the scenario (JSON)")->required();
  return [file] { return run(*file); };
}

}  // namespace syncline::cli
