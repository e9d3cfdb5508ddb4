#include <deque>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/cost.h"
#include "core/sim/collective_run.h"
#include "core/sim/fold.h"

namespace syncline::sim {
namespace {

// Above this, folding itself takes seconds, and two trees hardly fold.
constexpr int kManyRanks = 4096;

class MergedRun final : public CollectiveRun {
 public:
  MergedRun(const plan::Plan& plan, collective::CostCache& cache, FlowSet flows)
      : plan_(plan), overhead_(cache.cluster().collective_overhead), flows_(std::move(flows)) {
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      latencies_.push_back(collective == nullptr ? std::vector<Seconds>{}
                                                 : cache.latencies(*collective));
      scales_.push_back(collective == nullptr ? 1 : cache.cost(*collective).scale);
    }
  }

  // Returns the network. Latencies are timers here: one per stage, not per flow.
  FluidPlan fluid_plan() const override { return flows_; }

  bool start(Fluid& fluid, int instance, plan::OpId op) override {
    const auto& stages = stages_of(op);
    if (stages.empty()) return true;
    running_[instance] = {op, 0, 0};
    fluid.start_timer(overhead_ + latency_of(op, 0), {kWoke, instance, 0});
    return false;
  }

  int handle(Fluid& fluid, Fluid::Token token) override {
    Progress& progress = running_.at(token.a);
    if (token.kind == kFlowDone && --progress.outstanding > 0) return -1;
    const auto& stages = stages_of(progress.op);
    if (token.kind == kWoke && set_out(fluid, token.a, progress)) return -1;
    // The stage is over (or had no bytes): begin the next one.
    if (++progress.stage < stages.size()) {
      fluid.start_timer(latency_of(progress.op, progress.stage), {kWoke, token.a, 0});
      return -1;
    }
    running_.erase(token.a);
    return token.a;
  }

 private:
  struct Progress {
    plan::OpId op = 0;
    std::size_t stage = 0;
    int outstanding = 0;
  };

  const FlowPlan& stages_of(plan::OpId op) const {
    const int plan = flows_.plan_of_op[index(op)];
    return flows_.plans[index(plan)];
  }

  Seconds latency_of(plan::OpId op, std::size_t stage) const {
    return latencies_[index(op)][stage];
  }

  // Starts the stage's flows; false if it has no bytes.
  bool set_out(Fluid& fluid, int instance, Progress& progress) {
    const auto& work = plan_.ops[index(progress.op)].work;
    const auto bytes = static_cast<double>(std::get<collective::Collective>(work).bytes());
    const auto& flows = stages_of(progress.op)[progress.stage];
    progress.outstanding = bytes > 0 ? static_cast<int>(flows.size()) : 0;
    if (progress.outstanding == 0) return false;
    const double scale = scales_[index(progress.op)];
    for (const auto& flow : flows) {
      fluid.start_flow(flow.route, flow.fraction * bytes * scale, {kFlowDone, instance, 0});
    }
    return true;
  }

  const plan::Plan& plan_;
  Seconds overhead_;
  FlowSet flows_;
  std::vector<std::vector<Seconds>> latencies_;  // by operation and stage
  std::vector<double> scales_;  // by operation: transfer by a cost model / transfer by the links
  std::unordered_map<int, Progress> running_;
};

FlowSet flows_of(const std::vector<run::Beside>& jobs, std::deque<collective::CostCache>& caches,
                 bool fold) {
  const plan::Plan& first = jobs.front().plan;
  const bool folds = fold && jobs.size() == 1;
  if (folds && !plan::overlaps(first)) return busiest_flows(first, caches.front());
  if (folds && jobs.front().cluster.ranks() > kManyRanks)
    return heaviest_flows(first, caches.front());
  std::vector<collective::Network> networks;
  std::vector<Traffic> traffic;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    networks.emplace_back(jobs[job].cluster);
    traffic.push_back(traffic_of(jobs[job].plan, networks.back(), caches[job]));
  }
  const Traffic all = join_traffic(std::move(traffic), networks);
  return every_flow(fold ? fold_traffic(all) : all);
}

}  // namespace

std::vector<std::unique_ptr<CollectiveRun>> make_merged_runs(const std::vector<run::Beside>& jobs,
                                                             bool fold) {
  std::deque<collective::CostCache> caches;
  for (const run::Beside& job : jobs) caches.emplace_back(job.cluster);
  FlowSet flows = flows_of(jobs, caches, fold);
  const std::vector<int> plan_of_op = std::move(flows.plan_of_op);
  std::vector<std::unique_ptr<CollectiveRun>> runs;
  auto first = plan_of_op.begin();
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const auto last = first + static_cast<std::ptrdiff_t>(jobs[job].plan.ops.size());
    flows.plan_of_op.assign(first, last);
    first = last;
    runs.push_back(std::make_unique<MergedRun>(jobs[job].plan, caches[job], flows));
  }
  return runs;
}

}  // namespace syncline::sim
