#include "studies/machines/live_space.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/plan.h"
#include "studies/tune/configuration.h"
#include "studies/tune/evaluator.h"
#include "studies/tune/search_space.h"

namespace syncline::tune {
namespace {

// Per model: the scenario as it would be if that model were right.
using Guides = std::deque<Evaluator>;

// Returns the buckets of a fusion that depends on more than sizes, by the first model.
std::vector<std::vector<int>> planned_groups(const Scenario& scenario, const Strategy& strategy) {
  std::vector<std::vector<int>> groups;
  for (const auto& bucket :
       plan::make_plan(scenario.workload, scenario.cluster, strategy).buckets) {
    groups.push_back(bucket.tensors);
  }
  return groups;
}

// One way to fuse, and the groups that it makes.
struct GroupedChoice {
  Fusion fusion;
  std::vector<std::vector<int>> groups;
};

// Returns the fusions of a configuration with different groups, explicit ones first.
std::vector<GroupedChoice> choices_of(const Search& search, const Strategy& strategy,
                                      Guides& guides, const LiveSpace& space) {
  std::vector<GroupedChoice> choices;
  std::set<std::vector<std::vector<int>>> seen;
  const auto add = [&](const Configuration& configuration, Fusion fusion) {
    auto groups = groups_of(configuration, fusion);
    if (groups.empty())
      groups = planned_groups(configuration.scenario(), apply_fusion(strategy, fusion));
    // If ticks close buckets, equal groups may wait for different moments.
    const bool fresh = seen.insert(groups).second;
    if (fresh || fusion.cycle > 0) choices.push_back({std::move(fusion), std::move(groups)});
  };
  for (Evaluator& guide : guides) {
    if (!search.optimum) break;
    const Configuration guided(guide.scenario(), strategy, guide.cache());
    if (auto choice = explicit_choice(guided)) add(guided, std::move(choice->fusion));
  }
  Evaluator& any = guides.front();  // rules depend only on sizes
  const Configuration configuration(any.scenario(), strategy, any.cache());
  auto rules = rule_choices(search, configuration);
  for (const std::size_t place : spread_indices(rules.size(), space.most_rules)) {
    add(configuration, std::move(rules[place].fusion));
  }
  return choices;
}

double last_bytes(const GroupedChoice& choice, const Workload& workload) {
  if (choice.groups.empty()) return 1;
  double bytes = 0;
  const auto tensors = workload.tensors.size();
  for (const int number : choice.groups.back()) {
    const std::size_t at = index(number);
    const Tensor& tensor = at < tensors ? workload.tensors[at] : workload.buffers[at - tensors];
    bytes += static_cast<double>(tensor.bytes());
  }
  return std::max(1.0, bytes);
}

// Numbers for words, in the order of first use.
class Labels {
 public:
  double of(const std::string& word) {
    return static_cast<double>(index_.emplace(word, index_.size()).first->second);
  }

 private:
  std::map<std::string, std::size_t> index_;
};

// Returns a configuration's differences from the base, except streams and algorithm.
std::string rest_of(Strategy strategy, const Strategy& base) {
  strategy.streams = base.streams;
  strategy.algorithm = base.algorithm;
  return input::configuration_words(strategy, base);
}

std::string name_of(const Strategy& strategy, double bytes, const Strategy& base) {
  char last[64];
  std::snprintf(last, sizeof last, ", the last of %.4g MiB", bytes / static_cast<double>(kMiB));
  const std::string configuration = input::configuration_words(strategy, base);
  return fusion_words(strategy.fusion) + last + (configuration.empty() ? "" : ", " + configuration);
}

// Returns the problem with only the candidates near some model's best.
SearchProblem promising(SearchProblem problem, double margin) {
  const Eigen::VectorXd best = problem.ensemble.means.rowwise().minCoeff();
  const double reach = std::log1p(margin);
  std::vector<Eigen::Index> kept;
  std::vector<Candidate> candidates;
  for (Eigen::Index c = 0; c < problem.ensemble.means.cols(); ++c) {
    if ((problem.ensemble.means.col(c) - best).minCoeff() > reach) continue;
    kept.push_back(c);
    candidates.push_back(std::move(problem.candidates[index(c)]));
  }
  problem.ensemble.means = Eigen::MatrixXd(problem.ensemble.means(Eigen::all, kept));
  problem.candidates = std::move(candidates);
  return problem;
}

}  // namespace

Scenario scaled_scenario(Scenario scenario, const MemberFactors& factors) {
  for (auto& tier : scenario.cluster.tiers) {
    tier.latency *= factors.latency;
    tier.bandwidth /= factors.transfer;
    tier.flow_cap /= factors.transfer;
  }
  scenario.cluster.collective_overhead *= factors.latency;
  return scenario;
}

SearchProblem live_problem(const Scenario& scenario, const Search& search, const LiveSpace& space) {
  const Strategy* found = find_strategy(scenario, search.base);
  if (found == nullptr) {
    throw InputError("search.base: no strategy is named '" + search.base + "'");
  }
  const Strategy& base = *found;
  const auto factors = member_factors(space.steps);
  std::deque<Scenario> scaled;
  Guides guides;
  for (const auto& member : factors) {
    guides.emplace_back(scaled.emplace_back(scaled_scenario(scenario, member)));
  }

  SearchProblem problem;
  // Logarithms of the buckets and of the last one's bytes, streams, algorithm, other knobs.
  problem.categorical = {false, false, false, true, true};
  Labels algorithms;
  Labels others;
  // Rules and costs of buckets do not depend on streams: configurations that differ only in them
  // share choices.
  std::map<std::pair<std::string, std::string>, std::vector<GroupedChoice>> choices;
  for (const auto& strategy : strategies_of_configurations(search, base, scenario)) {
    const std::string rest = rest_of(strategy, base);
    auto& shared = choices[{strategy.algorithm, rest}];
    if (shared.empty()) shared = choices_of(search, strategy, guides, space);
    for (const auto& choice : shared) {
      const double last = last_bytes(choice, scenario.workload);
      Candidate candidate;
      candidate.strategy = apply_fusion(strategy, choice.fusion);
      candidate.name = candidate.strategy.name = name_of(candidate.strategy, last, base);
      const auto buckets = static_cast<double>(std::max<std::size_t>(1, choice.groups.size()));
      candidate.at = {std::log(buckets), std::log(last), static_cast<double>(strategy.streams),
                      algorithms.of(strategy.algorithm), others.of(rest)};
      problem.candidates.push_back(std::move(candidate));
    }
  }
  if (problem.candidates.empty()) {
    throw InputError("search: none of its combinations fits the cluster");
  }
  problem.ensemble = evaluate_ensemble(
      factors, problem.candidates.size(), [&](std::size_t candidate, std::size_t member) {
        return guides[member].step_time(problem.candidates[candidate].strategy);
      });
  return promising(std::move(problem), space.margin);
}

std::vector<MemberFactors> member_factors(int steps) {
  assert(steps >= 1 && "an uncertain model may be off");
  constexpr double kFactor = 2;
  constexpr int kDeviations = 2;
  std::vector<MemberFactors> list;
  const int reach = kDeviations * steps;
  for (int l = -reach; l <= reach; ++l) {
    for (int t = -reach; t <= reach; ++t) {
      const double latency = static_cast<double>(l) / steps;
      const double transfer = static_cast<double>(t) / steps;
      list.push_back({std::pow(kFactor, latency), std::pow(kFactor, transfer),
                      -0.5 * (latency * latency + transfer * transfer)});
    }
  }
  return list;
}

Ensemble evaluate_ensemble(const std::vector<MemberFactors>& factors, std::size_t candidates,
                           const std::function<Seconds(std::size_t, std::size_t)>& cost) {
  Ensemble ensemble;
  ensemble.log_weights.resize(static_cast<Eigen::Index>(factors.size()));
  ensemble.means.resize(ensemble.log_weights.size(), static_cast<Eigen::Index>(candidates));
  for (std::size_t g = 0; g < factors.size(); ++g) {
    const auto row = static_cast<Eigen::Index>(g);
    ensemble.log_weights(row) = factors[g].log_weight;
    for (std::size_t c = 0; c < candidates; ++c) {
      ensemble.means(row, static_cast<Eigen::Index>(c)) = std::log(cost(c, g));
    }
  }
  return ensemble;
}

}  // namespace syncline::tune
