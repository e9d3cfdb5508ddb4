#include "tests/pairs/laws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/cost.h"
#include "core/metrics.h"
#include "core/metrics/phases.h"
#include "core/plan.h"
#include "core/run/interference.h"
#include "core/run/stragglers.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "studies/explain/explanation.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/rows/row_evaluator.h"
#include "studies/study/study.h"
#include "studies/tune/tuning.h"

namespace syncline::pairs {
namespace {

// What adds up in another order.
constexpr double kRounding = 1e-9;

// Queues have anomalies (Graham 1969). Nothing that is under way is interrupted: on links that are
// free a moment earlier, a bucket sets out that was ready first, and one that the forward pass
// waits for goes behind it; among streams, one that sets out later leaves the links to another. It
// costs a collective at most, of these small models up to 2.4 % of a step.
constexpr double kAnomaly = 0.025;

std::string seconds(Seconds value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g s", value);
  return text;
}

input::Document document_of(const Json& root) {
  return input::document_of(SYNCLINE_SOURCE_DIR "/tests/pairs/scenario.json", root);
}

measure::Row row_of(const Json& root, const measure::ExecutorFactory& executor,
                    measure::Traced* traced = nullptr) {
  return measure::RowEvaluator(document_of(root), {}, executor, std::nullopt)
      .cost({{}, "s"}, traced);
}

Seconds step_of(const Json& root) {
  return row_of(root, run::make_model_executor).metrics.step_time;
}

bool proper(double figure) { return std::isfinite(figure) && figure > 0; }

class Judge {
 public:
  Judge(const Json& root, const Asked& asked) : root_(root), asked_(asked) {}

  Verdict verdict() {
    try {
      scenario_ = input::parse_scenario(document_of(root_));
    } catch (const InputError& error) {
      verdict_.refusal = error.what();
      one_sentence();
      return verdict_;
    }
    const std::pair<const char*, void (Judge::*)()> laws[]{{"a row", &Judge::row},
                                                           {"work", &Judge::between_work},
                                                           {"one rank", &Judge::alone},
                                                           {"more bandwidth", &Judge::bandwidth},
                                                           {"less latency", &Judge::latency},
                                                           {"more bytes", &Judge::bytes},
                                                           {"simulation", &Judge::simulation},
                                                           {"one number", &Judge::one_number}};
    for (const auto& [name, law] : laws) {
      law_ = name;
      try {
        (this->*law)();
      } catch (const std::exception& error) {
        fault(std::string("fails: ") + error.what());
      }
      if (!proper(verdict_.step)) break;  // of garbage the other laws say nothing
    }
    return verdict_;
  }

 private:
  void fault(const std::string& what) {
    const bool told = std::ranges::any_of(verdict_.faults, [&](const Fault& known) {
      return known.law == law_ && known.what == what;
    });
    if (!told) verdict_.faults.push_back({law_, what});
  }

  void one_sentence() {
    law_ = "refused in one sentence";
    constexpr std::size_t kLongest = 400;
    const std::string& text = verdict_.refusal;
    if (text.size() > kLongest || text.find('\n') != text.npos) fault(text);
  }

  const Strategy& strategy() const { return scenario_.strategies.front(); }

  // Finite, positive, inside its interval, the same again.
  void row() {
    measure::StudyOptions options;
    options.make_executor = run::make_model_executor;
    const measure::Report report = measure::run_study(document_of(root_), options);
    row_ = report.rows.at(0);
    const measure::Metrics& metrics = row_.metrics;
    verdict_.step = metrics.step_time;
    if (!proper(metrics.step_time)) fault("a step of " + seconds(metrics.step_time));
    for (const Seconds part : {metrics.compute, metrics.communication, metrics.comm_overhead,
                               metrics.exposed, metrics.lower_bound, metrics.bytes_on_wire}) {
      if (!std::isfinite(part) || part < 0) fault("a part of the step of " + seconds(part));
    }
    if (!proper(row_.speedup) || !proper(metrics.throughput)) fault("its speed");
    const bool inside = row_.step.low <= metrics.step_time && metrics.step_time <= row_.step.high;
    if (!proper(row_.step.low) || !std::isfinite(row_.step.high) || !inside) {
      fault(seconds(metrics.step_time) + " outside of " + seconds(row_.step.low) + " to " +
            seconds(row_.step.high));
    }
    if (row_.memory.total() <= 0) fault("no memory");
    const Seconds again = step_of(root_);
    if (std::memcmp(&again, &metrics.step_time, sizeof again) != 0) {
      fault("again: " + seconds(metrics.step_time) + ", then " + seconds(again));
    }
  }

  // Of ranks that there are, each in one group, by an algorithm that does it among so many.
  void judge_groups(const collective::Collective& collective, int ranks) {
    const collective::Groups& groups = collective.groups;
    std::set<int> members;
    for (int group = 0; group < groups.count; ++group) {
      for (int member = 0; member < groups.size; ++member) {
        members.insert(groups.rank(group, member));
      }
    }
    const bool all = members.size() == index(groups.count) * index(groups.size);
    const bool known = !members.empty() && *members.begin() >= 0 && *members.rbegin() < ranks;
    const bool fits =
        collective.algorithm != nullptr && collective.algorithm->fits(collective.kind, groups.size);
    if (all && known && fits && groups.size > 1 && collective.elements >= 0) return;
    const std::string law = std::exchange(law_, "groups");
    fault("a collective in " + std::to_string(groups.count) + " groups of " +
          std::to_string(groups.size) + " among " + std::to_string(ranks) + " ranks");
    law_ = law;
  }

  // Each stage walks each micro-batch, forward and backward.
  void judge_passes(Seconds planned, const Workload& workload) {
    const Seconds all =
        static_cast<double>(workload.micro_batches) * (workload.forward + backward_time(workload));
    if (std::fabs(planned - all) <= 1e-6 * all) return;
    fault("passes of " + seconds(planned) + " are planned of " + seconds(all));
  }

  // No less than the computation, which is the plan's and, but for what a plan adds, the
  // workload's; no more than all operations one after the other.
  void between_work() {
    const bool alone = scenario_.others.empty();
    measure::Together with;
    if (!alone) with = measure::together(scenario_, strategy());
    Scenario here = scenario_;
    if (!alone) here.cluster = with.cluster;
    const auto cache =
        alone ? std::make_shared<collective::CostCache>(scenario_.cluster) : with.cache;
    Seconds least = 0;
    const Seconds most = measure::mean_over_phases(
        here, strategy(), run::make_model_executor({here.cluster, {}, 1})->traits(),
        [&](measure::TrainingStretch& phase) {
          const plan::Plan plan =
              run::with_interference(std::move(phase.plan), here.cluster.device, *cache);
          const double slowest = run::expected_slowest(here.cluster.jitter, plan);
          std::vector<Seconds> computes(index(plan.roles), 0);
          Seconds all = 0, passes = 0;
          for (const auto& op : plan.ops) {
            const auto* compute = std::get_if<plan::Compute>(&op.work);
            const auto* collective = std::get_if<collective::Collective>(&op.work);
            Seconds own = plan::seconds_of(op.work);
            if (compute != nullptr) {
              const bool pass = compute->phase == plan::Phase::kForward ||
                                compute->phase == plan::Phase::kBackward;
              passes += pass ? own : 0;
              computes[index(plan.role_of(op.stream))] += own *= slowest;
            }
            if (collective != nullptr) {
              judge_groups(*collective, plan.ranks);
              own = cache->time(*collective);
              longest_ = std::max(longest_, own);
            }
            all += own;
          }
          queues_ = queues_ || plan::overlaps(plan) || plan.roles > 1;
          judge_passes(passes / plan.steps / plan.compute_slowdown, phase.workload);
          least = std::max(least, std::ranges::max(computes) / plan.steps);
          return all / plan.steps;
        });
    const bool phases = plan::training_phases(strategy(), scenario_.training).size() > 1;
    if (!phases && verdict_.step < least * (1 - kRounding)) {
      fault(seconds(verdict_.step) + " is less than the plan's computation, " + seconds(least));
    }
    if (verdict_.step > most * (1 + kRounding)) {
      fault(seconds(verdict_.step) + " is more than all one after the other, " + seconds(most));
    }
    const Workload& workload = scenario_.workload;
    const auto& speeds = scenario_.cluster.speeds;
    const double fastest = speeds.empty() ? 1 : std::ranges::max(speeds);
    const Seconds passes = static_cast<double>(workload.micro_batches) *
                           (workload.forward + backward_time(workload)) / fastest /
                           workload.parallel.pipeline;
    const bool fused = strategy().compute_fusion != ComputeFusion{};
    if (!fused && verdict_.step < passes * (1 - kRounding)) {
      fault(seconds(verdict_.step) + " is less than the passes, " + seconds(passes));
    }
  }

  void alone() {
    if (scenario_.cluster.ranks() > 1) return;
    const measure::Metrics& metrics = row_.metrics;
    if (metrics.communication > 0 || metrics.exposed > 0 || metrics.collectives > 0 ||
        metrics.bytes_on_wire > 0) {
      fault("communication " + seconds(metrics.communication) + ", exposed " +
            seconds(metrics.exposed));
    }
  }

  // Each tier changed, in turn; `worse` says which step is wrong beside the one as it stands.
  void each_tier(const std::function<void(Json&)>& change,
                 const std::function<bool(Seconds)>& worse) {
    for (const char* place : {"/cluster/intra", "/cluster/inter", "/cluster/upper/0"}) {
      const Json::json_pointer tier(place);
      // Measured rounds speak of one link alone: another is refused beside them.
      if (!root_.contains(tier) || root_[tier].contains("measured_steps_us")) continue;
      Json changed = fixed_;
      change(changed[tier]);
      const Seconds step = step_of(changed);
      const bool unlike = scenario_.cluster.ranks() == 1 && step != verdict_.step;
      if (unlike || worse(step)) {
        fault(std::string(place) + ": from " + seconds(verdict_.step) + " to " + seconds(step));
      }
    }
  }

  // With the buckets that the rule chose where it looks at the network's costs: for others it
  // chooses others, greedily, which may be better ones. Fetches have buckets of their own, after
  // those of the gradients.
  Json with_fixed_buckets() const {
    Json fixed = root_;
    const Strategy& own = strategy();
    if (own.fusion.rule != Fusion::Rule::kMgWfbp || own.local_sgd.enabled) return fixed;
    Json groups = Json::array();
    std::set<int> grouped;
    const plan::Plan plan =
        plan::make_plan(scenario_.workload, measure::cluster_left(scenario_, own), own);
    for (const plan::Bucket& bucket : plan.buckets) {
      const auto seen = [&](int tensor) { return grouped.contains(tensor); };
      if (bucket.sparse || std::ranges::any_of(bucket.tensors, seen)) continue;
      grouped.insert(bucket.tensors.begin(), bucket.tensors.end());
      groups.push_back(bucket.tensors);
    }
    fixed["strategies"][0]["fusion"] = {{"rule", "groups"}, {"groups", groups}};
    return fixed;
  }

  static void scale(Json& object, const char* key, double factor) {
    if (object.contains(key)) object[key] = object[key].get<double>() * factor;
  }

  // By how much a step may move the wrong way.
  Seconds anomaly() const {
    const bool queues = queues_ || strategy().priority != Strategy::Priority::kReady;
    // What other jobs leave is found in rounds, until little changes.
    const double settled = scenario_.others.empty() ? kRounding : 1e-4;
    const Seconds queued = queues ? std::min(longest_, kAnomaly * verdict_.step) : 0;
    // An exchange that begins beside computation waits for a processor first; a moment later, when
    // that is over, it begins at once.
    const Seconds waits = scenario_.cluster.device.overlap.delay;
    return std::max({settled * verdict_.step, queued, waits});
  }

  void bandwidth() {
    fixed_ = with_fixed_buckets();
    each_tier(
        [](Json& tier) {
          for (const char* key : {"bandwidth_gbps", "upload_gbps"}) scale(tier, key, 1.5);
        },
        [&](Seconds step) { return step > verdict_.step + anomaly(); });
  }

  void latency() {
    each_tier([](Json& tier) { tier["latency_us"] = tier["latency_us"].get<double>() * 1.5 + 3; },
              [&](Seconds step) { return step < verdict_.step - anomaly(); });
  }

  // Twice the bytes in the same buckets: sizes that are said anywhere grow with the gradients.
  static void grow(Json& value) {
    static constexpr std::array<std::string_view, 19> kSizes{"size_mb",
                                                             "first_size_mb",
                                                             "partition_mb",
                                                             "credit_mb",
                                                             "bucket_cap_mb",
                                                             "min_elements",
                                                             "live_elements",
                                                             "ahead_elements",
                                                             "reuse_elements",
                                                             "HOROVOD_FUSION_THRESHOLD",
                                                             "fuse_grad_size_in_MB",
                                                             "ddp-bucket-size",
                                                             "reduce_bucket_size",
                                                             "stage3_prefetch_bucket_size",
                                                             "stage3_param_persistence_threshold",
                                                             "stage3_max_reuse_distance",
                                                             "stage3_max_live_parameters",
                                                             "activation_bytes",
                                                             "sparse_rows"};
    if (!value.is_structured()) return;
    for (auto& [key, member] : value.items()) {
      const bool size = std::ranges::find(kSizes, key) != kSizes.end();
      if (size && member.is_number_integer()) {
        member = member.get<std::int64_t>() * 2;
      } else if (size && member.is_number()) {
        member = member.get<double>() * 2;
      } else {
        grow(member);
      }
    }
  }

  void bytes() {
    if (!root_["workload"].contains("tensors")) return;
    // How many of a matrix's numbers travel as factors depends on what that saves.
    if (strategy().compression.codec == "powersgd") return;
    Json larger = fixed_;
    for (Json& tensor : larger["workload"]["tensors"]) {
      tensor["shape"][0] = tensor["shape"][0].get<std::int64_t>() * 2;
    }
    grow(larger["strategies"]);
    grow(larger["workload"]);
    const Seconds step = step_of(larger);
    if (step < verdict_.step - anomaly()) {
      fault("twice the bytes: from " + seconds(verdict_.step) + " to " + seconds(step));
    }
  }

  double simulated(const char* granularity, double most) {
    Json root = root_;
    root["simulation"]["grain"] = granularity;
    // The mean of so many drawn steps is known well enough, and every rank is simulated.
    constexpr int kDrawn = 24, kDropped = 2;
    const Jitter& jitter = scenario_.cluster.jitter;
    if (jitter.kind != Jitter::Kind::kNone && !jitter.guessed) {
      root["simulation"]["periods"] = kDrawn;
      root["simulation"]["warmup"] = kDropped;
    }
    const Seconds step = row_of(root, sim::make_sim_executor).metrics.step_time;
    const double apart = std::fabs(step / verdict_.step - 1);
    if (!proper(step) || apart > most) {
      fault(std::string(granularity) + ": the model " + seconds(verdict_.step) +
            ", the simulation " + seconds(step));
    }
    return apart;
  }

  // What docs/accuracy.md promises.
  void simulation() {
    const bool trees = queues_ && strategy().algorithm == "double_binary_tree";
    const double others = scenario_.others.empty() ? 0 : 0.1;
    const double merged = trees ? 0.11 + others : std::max(0.04, others);
    constexpr double kInSteps = 0.126;
    if (asked_.simulated) verdict_.merged = simulated("merged", merged);
    if (asked_.in_steps && scenario_.others.empty())
      verdict_.in_steps = simulated("step", kInSteps);
  }

  void same(const char* verb, double said, double row) {
    if (std::memcmp(&said, &row, sizeof said) == 0) return;
    char text[80];
    std::snprintf(text, sizeof text, "%s says %.12g, run %.12g", verb, said, row);
    fault(text);
  }

  void one_number() {
    const auto document = document_of(root_);
    const auto explanation = measure::explain_strategies(document, scenario_, {"s"}, {});
    const measure::Metrics& said = explanation.strategies.at(0).evaluated.metrics;
    same("explain's step", said.step_time, row_.metrics.step_time);
    same("explain's collectives", said.collectives, row_.metrics.collectives);
    if (const auto& bottleneck = explanation.strategies.at(0).bottleneck) {
      Seconds parts = bottleneck->compute + bottleneck->stragglers + bottleneck->overhead +
                      bottleneck->comm_overhead + bottleneck->communication();
      for (const auto& [name, part] : bottleneck->cuts()) parts += part;
      if (std::fabs(parts / said.step_time - 1) > 1e-6) {
        fault("explain's parts are " + seconds(parts) + " of " + seconds(said.step_time));
      }
    }
    for (const auto& advice : explanation.strategies.at(0).advice) {
      if (!proper(advice.metrics.step_time))
        fault("explain advises " + seconds(advice.metrics.step_time));
    }
    // On what other jobs leave of the links.
    const Cluster cluster = measure::cluster_left(scenario_, strategy());
    double planned = 0, steps = 0;
    for (const auto& phase : plan::training_phases(strategy(), scenario_.training)) {
      const plan::Plan plan = plan::make_plan(scenario_.workload, cluster, strategy(), phase.point);
      const auto own = static_cast<double>(phase.steps);
      planned += measure::collectives_per_step(plan) * own;
      steps += own;
    }
    if (std::fabs(planned / steps - row_.metrics.collectives) > 1e-9 * (planned / steps) &&
        scenario_.cluster.ranks() > 1) {
      fault("plan lists " + std::to_string(planned / steps) + " collectives, run " +
            std::to_string(row_.metrics.collectives));
    }
    if (!asked_.tuned) return;
    tune::TuneOptions options;
    options.budget = 12;
    const tune::Tuning tuning = tune::tune_document(document, options, "", nullptr);
    same("tune's baseline", tuning.tuned.baseline.metrics.step_time, row_.metrics.step_time);
    if (!proper(tuning.tuned.winner().metrics.step_time)) fault("tune's winner");
    if (tuning.tuned.winner().metrics.step_time > row_.metrics.step_time * (1 + kRounding)) {
      fault("tune's winner takes " + seconds(tuning.tuned.winner().metrics.step_time));
    }
  }

  const Json& root_;
  const Asked& asked_;
  Json fixed_;           // with_fixed_buckets
  bool queues_ = false;  // whether collectives of the plan may be under way together
  Seconds longest_ = 0;  // of the plan's collectives
  Scenario scenario_;
  measure::Row row_;
  Verdict verdict_;
  std::string law_;
};

}  // namespace

Verdict judge(const Json& scenario, const Asked& asked) { return Judge(scenario, asked).verdict(); }

}  // namespace syncline::pairs
