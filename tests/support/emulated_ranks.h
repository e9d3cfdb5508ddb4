// A live backend for tests of what stands on one: gradients are exchanged as the host executor does
// it, times are the closed-form model's on a cluster of the test's choice. The same figures every
// time, and no sockets but the control channel's.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/run/payload.h"
#include "live/live_executor.h"

namespace syncline::test {

struct EmulatedMachine {
  Cluster cluster;      // whose times are measured
  double wobble = 0;    // of every second period's length, relative: what a search takes for noise
  int wrong_rank = -1;  // ends with a wrong value
  std::function<void(int rank)> on_run = {};  // called ahead of each run
};

class EmulatedRank final : public live::LiveExecutor {
 public:
  EmulatedRank(const EmulatedMachine& machine, const Workload& workload,
               live::ControlChannel& channel)
      : machine_(machine), workload_(workload), channel_(channel) {}

  std::string_view name() const override { return "emulated"; }
  Seconds clock_error() const override { return 1e-6 * (1 + channel_.rank()); }
  std::string hardware() const override { return "emulated ranks"; }

  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    if (machine_.on_run) machine_.on_run(channel_.rank());
    const auto rank = static_cast<std::size_t>(channel_.rank());
    run::Outcome outcome;
    outcome.timeline =
        run::make_model_executor({machine_.cluster, {}, 1})->run(plan, {}, periods).timeline;
    for (std::size_t p = 0; p < outcome.timeline.period_ends.size(); p += 2) {
      outcome.timeline.period_ends[p] += machine_.wobble * outcome.timeline.period_ends.front();
    }
    auto all = run::make_host_executor(workload_)
                   ->run(plan, everyones(input[rank]), plan.outer.any() ? periods : 1)
                   .gradients;
    outcome.gradients.resize(all.size());
    outcome.gradients[rank] = std::move(all[rank]);
    if (channel_.rank() == machine_.wrong_rank) outcome.gradients[rank].front().front() += 1;
    outcome.bytes_sent.assign(all.size(), 0);
    outcome.bytes_sent[rank] = 1000 * (channel_.rank() + 1) * periods;
    return outcome;
  }

 private:
  run::Gradients everyones(const run::RankGradients& own) {
    std::string mine;
    for (const auto& tensor : own) {
      mine.append(reinterpret_cast<const char*>(tensor.data()), tensor.size() * sizeof(float));
    }
    run::Gradients all;
    for (const auto& text : channel_.gather(mine)) {
      run::RankGradients gradients = own;
      const char* from = text.data();
      for (auto& tensor : gradients) {
        std::memcpy(tensor.data(), from, tensor.size() * sizeof(float));
        from += tensor.size() * sizeof(float);
      }
      all.push_back(std::move(gradients));
    }
    return all;
  }

  const EmulatedMachine& machine_;
  const Workload& workload_;
  live::ControlChannel& channel_;
};

// The machine must outlive the factory's executors.
inline live::LiveExecutorFactory backend_of(const EmulatedMachine& machine) {
  return [&machine](const Workload& workload, live::ControlChannel& channel) {
    return std::make_unique<EmulatedRank>(machine, workload, channel);
  };
}

// A small network on `nodes` nodes, with the strategies "each" (a bucket a tensor) and "one".
inline Scenario emulated_scenario(int nodes) {
  Scenario scenario;
  scenario.name = "small";
  scenario.workload.name = "net";
  scenario.workload.batch = 8;
  scenario.workload.forward = 2e-3;
  for (int i = 0; i < 4; ++i) {
    Tensor tensor;
    tensor.name = "l" + std::to_string(i);
    tensor.elements = 20000 + 1000 * i;
    tensor.shape = {tensor.elements};
    tensor.backward = 1e-3;
    scenario.workload.tensors.push_back(tensor);
  }
  scenario.cluster.name = "switch";
  scenario.cluster.nodes = nodes;
  scenario.cluster.gpus_per_node = 1;
  Tier tier;
  tier.name = "inter";
  tier.span = nodes;
  tier.latency = 50e-6;
  tier.bandwidth = 1.25e9;
  scenario.cluster.tiers = {tier};
  Strategy each;
  each.name = "each";
  Strategy one;
  one.name = "one";
  one.fusion.rule = Fusion::Rule::kOne;
  scenario.strategies = {each, one};
  scenario.baseline = "each";
  return scenario;
}

}  // namespace syncline::test
