#include "studies/tune/certainty.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numbers>

#include "core/base/index.h"
#include "core/base/statistics.h"
#include "core/cluster.h"
#include "studies/tune/evaluator.h"

namespace syncline::tune {
namespace {

constexpr std::size_t kSizesAsked = 24;  // sizes of the curve, per input and end

// Returns the indices of the curve to evaluate again, including the best.
std::vector<std::size_t> places_asked(std::size_t count, std::size_t best) {
  std::vector<std::size_t> places = spread_indices(count, kSizesAsked);
  places.push_back(best);
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Returns every range of consecutive sizes that count as equally good.
std::vector<SizeRange> as_good_on(const std::vector<CurvePoint>& curve, Seconds least) {
  std::vector<SizeRange> ranges;
  bool open = false;
  for (const CurvePoint& point : curve) {
    const bool good = point.step_time <= least * (1 + kAsGood);
    if (good && open) ranges.back().high = point.size;
    if (good && !open) ranges.push_back({point.size, point.size});
    open = good;
  }
  return ranges;
}

// One input at one end of its interval, and the steps of the tested sizes then.
struct Case {
  measure::Uncertainty uncertainty;
  bool slower;
  std::vector<Seconds> steps;

  double lost(std::size_t i) const { return percent_above(steps[i], std::ranges::min(steps)); }
};

// Returns the steps of these sizes with each input at either end of its interval.
std::vector<Case> cases_of(const Scenario& scenario, measure::Uncertainties& uncertainties,
                           const Tuned& tuned, const std::vector<Bytes>& sizes) {
  std::vector<Case> cases;
  std::vector<measure::InputEnd> ends;
  for (const auto uncertainty : measure::kAllUncertainties) {
    if (uncertainty == measure::Uncertainty::kFramework) continue;  // it moves all sizes alike
    for (const bool slower : {true, false}) {
      ends.push_back({uncertainty, slower});
      cases.push_back({uncertainty, slower, {}});
    }
  }
  const SeparateUnits units(scenario.workload);
  std::map<GroupEnds, std::vector<Seconds>> known;  // by what the plan has in groups
  for (const Bytes size : sizes) {
    const Strategy strategy = tuned.curve_strategy(size);
    const auto groups = units.ends(strategy);
    const auto found = groups ? known.find(*groups) : known.end();
    const auto steps =
        found != known.end() ? found->second : uncertainties.shifted_steps(strategy, ends);
    if (groups) known.emplace(*groups, steps);
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].steps.push_back(steps[i]);
  }
  return cases;
}

// Adds the sizes that do as well, and the loss of the chosen size if an input is at an end of its
// interval.
void add_sizes(const Scenario& scenario, measure::Uncertainties& uncertainties, const Tuned& tuned,
               Certainty& certainty) {
  const auto& curve = tuned.curve;
  certainty.as_good =
      as_good_on(curve, std::ranges::min(curve, {}, &CurvePoint::step_time).step_time);
  // Index of the best, if it is on the curve.
  const Fusion& fusion = tuned.winner().strategy.fusion;
  const auto own = std::ranges::find(curve, fusion.size, &CurvePoint::size);
  if (fusion.rule != Fusion::Rule::kSize || own == curve.end()) return;
  certainty.size = own->size;
  std::vector<Bytes> sizes;
  for (const std::size_t place : places_asked(curve.size(), index(own - curve.begin()))) {
    sizes.push_back(curve[place].size);
  }
  const std::size_t at = index(std::ranges::find(sizes, own->size) - sizes.begin());
  for (const Case& each : cases_of(scenario, uncertainties, tuned, sizes)) {
    const auto then = std::ranges::min_element(each.steps);
    certainty.size_sensitivities.push_back(
        {each.uncertainty, each.slower, sizes[index(then - each.steps.begin())], each.lost(at)});
  }
  std::ranges::stable_sort(certainty.size_sensitivities, std::ranges::greater(),
                           &SizeSensitivity::lost_percent);
}

using measure::FitErrors;
using measure::Sensitivity;

// log(rival / best) as a normal distribution: its mean, at least 0, and its deviation on the side
// on which the order changes.
struct Race {
  double lead = 0;
  double deviation = 0;
};

Race race_of(Seconds best, const Sensitivity& best_sensitivity, Seconds rival,
             const Sensitivity& rival_sensitivity) {
  const double ratio = rival / best;
  const measure::Interval interval =
      measure::ratio_interval(ratio, rival_sensitivity, best_sensitivity);
  return {std::log(ratio), std::log(ratio / interval.low) / measure::kHeldDeviations};
}

// Returns the deviation of the lead's mean after a measurement: the uncertainty that it removes.
double removed_deviation(const Race& now, const Race& after) {
  return std::sqrt(
      std::max(0.0, now.deviation * now.deviation - after.deviation * after.deviation));
}

// Returns the expected saving of that measurement.
double saved_by(const Race& now, const Race& after) {
  const double removed = removed_deviation(now, after);
  if (removed <= 0) return 0;
  const double z = now.lead / removed;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return removed * density - now.lead * normal_distribution(-z);
}

// Returns the chance that the leader after the measurement is faster, over all its outcomes.
double chance_after(const Race& now, const Race& after) {
  const double removed = removed_deviation(now, after);
  constexpr int kPlaces = 41;
  constexpr double kReach = 4;
  double sum = 0, weight = 0;
  for (int i = 0; i < kPlaces; ++i) {
    const double z = kReach * (2.0 * i / (kPlaces - 1) - 1);
    const double density = std::exp(-z * z / 2);
    const double lead = std::fabs(now.lead + z * removed);
    sum += density * (after.deviation > 0 ? normal_distribution(lead / after.deviation) : 1);
    weight += density;
  }
  return sum / weight;
}

// Collectives of both plans of one kind in one set of groups: total time, range of payloads.
struct CollectiveGroup {
  collective::Collective first;
  Seconds time = 0;
  Bytes least = 0, most = 0;
};

// Adds the collectives of a strategy's plan.
void add_exchanges(const Strategy& strategy, Evaluator& model, std::vector<CollectiveGroup>& all) {
  const measure::Evaluated evaluated = model.evaluate(strategy);
  for (const plan::Op& op : evaluated.plan.ops) {
    const auto* asked = std::get_if<collective::Collective>(&op.work);
    if (asked == nullptr || asked->bucket < 0 || asked->groups.size < 2) continue;
    auto known = std::ranges::find_if(all, [&](const CollectiveGroup& other) {
      return other.first.kind == asked->kind && other.first.groups == asked->groups;
    });
    if (known == all.end()) {
      known = all.insert(all.end(), {*asked, 0, asked->bytes(), asked->bytes()});
    }
    known->time += model.cache().time(*asked);
    known->least = std::min(known->least, asked->bytes());
    known->most = std::max(known->most, asked->bytes());
  }
}

std::string size_word(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"", "K", "M", "G"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes % 1024 == 0 && bytes > 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

// Returns true if nccl-tests has a program for this kind, with its name.
bool has_test(collective::CollectiveKind kind) {
  using Kind = collective::CollectiveKind;
  return kind == Kind::kAllReduce || kind == Kind::kAllGather || kind == Kind::kReduceScatter;
}

// A measurement, the rival for which it saves most, and the race of the best with it.
struct Option {
  Probe what = Probe::kLogs;
  const Ranked* rival = nullptr;
  Race now, after;    // before and after the measurement
  double saved = 0;   // expected saving, by saved_by()
  Sensitivity best;   // of the best, after the measurement
  Sensitivity other;  // of the rival, after the measurement
};

bool possible(Probe what, const Scenario& scenario, const FitErrors& fit_errors) {
  const bool nccl = scenario.cluster.library == Library::kNccl && scenario.cluster.ranks() > 1;
  if (what == Probe::kLogs) return nccl && !scenario.cluster.cost_model && !fit_errors.network;
  if (what == Probe::kRecord) return !fit_errors.computation;
  return scenario.cluster.ranks() > 1;
}

}  // namespace

Certainty certainty_of(const Scenario& scenario, const measure::FitErrors& fit_errors, Tuned& tuned,
                       std::vector<FrameworkDefault>& defaults) {
  measure::Uncertainties uncertainties(scenario, fit_errors);
  Certainty certainty;
  const Seconds best = tuned.winner().metrics.step_time;
  const Seconds baseline = tuned.baseline.metrics.step_time;
  certainty.choice = uncertainties.sensitivity(tuned.winner().strategy);
  certainty.baseline = uncertainties.sensitivity(tuned.baseline.strategy);
  tuned.baseline.sensitivity = certainty.baseline;
  for (Ranked& ranked : tuned.ranking) {
    const Seconds step = ranked.metrics.step_time;
    ranked.sensitivity =
        &ranked == &tuned.winner() ? certainty.choice : uncertainties.sensitivity(ranked.strategy);
    ranked.step = measure::interval_of(step, ranked.sensitivity);
    ranked.speedup = baseline / step;
    ranked.gain = uncertainties.ratio(ranked.speedup, {tuned.baseline.strategy, certainty.baseline},
                                      {ranked.strategy, ranked.sensitivity});
  }
  certainty.step = tuned.winner().step;
  certainty.gain = tuned.winner().gain;
  certainty.chance = measure::chance_shorter(best, baseline, certainty.gain);
  for (FrameworkDefault& own : defaults) {
    const double ratio = own.metrics.step_time / best;
    const auto interval =
        measure::ratio_interval(ratio, uncertainties.sensitivity(own.strategy), certainty.choice);
    own.loss_percent = 100 * (ratio - 1);
    own.loss_interval = {100 * (interval.low - 1), 100 * (interval.high - 1)};
  }
  if (tuned.curve.size() > 1) add_sizes(scenario, uncertainties, tuned, certainty);
  return certainty;
}

std::vector<measure::Uncertainty> told_inputs(Probe probe) {
  using enum measure::Uncertainty;
  if (probe == Probe::kLogs) return {kLatency, kBandwidth};
  if (probe == Probe::kSteps) return {kOverlap, kFramework};
  return {kOverlap, kComputation, kFramework};
}

FitErrors remaining_fit_errors(Probe probe, const FitErrors& before) {
  // Logs: error of a log's cost model at its own count, and the difference between two runs. Steps
  // and recordings: docs/calibrate.md, docs/record.md.
  constexpr double kLogs = 0.10, kTimed = 0.03, kFramework = 0.01;
  FitErrors fit_errors = before;
  if (probe == Probe::kLogs) {
    fit_errors.network = kLogs;
    return fit_errors;
  }
  fit_errors.framework = kFramework;
  if (probe == Probe::kRecord) fit_errors.computation = kTimed;
  return fit_errors;
}

Scenario measured_scenario(Probe probe, const Scenario& scenario) {
  Scenario measured = scenario;
  if (probe == Probe::kLogs) return measured;
  constexpr double kFitted = 0.1;
  Overlap& overlap = measured.cluster.device.overlap;
  overlap.spread = std::min(overlap.given ? overlap.spread : 1,
                            probe == Probe::kSteps ? kFitted : Overlap::kMeasuredSpread);
  overlap.given = true;
  return measured;
}

std::string log_command(const Scenario& scenario, const Strategy& one, const Strategy& other) {
  std::vector<CollectiveGroup> all;
  Evaluator model(scenario);
  for (const Strategy* strategy : {&one, &other}) add_exchanges(*strategy, model, all);
  std::erase_if(all, [](const CollectiveGroup& each) { return !has_test(each.first.kind); });
  if (all.empty()) return {};
  const CollectiveGroup& most = *std::ranges::max_element(all, {}, &CollectiveGroup::time);
  const collective::Groups& groups = most.first.groups;
  const Cluster& cluster = scenario.cluster;
  const bool inside = groups.member_step == 1 && groups.size <= cluster.gpus_per_node;
  const int nodes = inside ? 1 : cluster.nodes;
  const int each = inside ? groups.size : cluster.gpus_per_node;
  // Parallel groups across the nodes share their ports: all of them count together.
  const Bytes beside = inside ? 1 : groups.count;
  const auto whole = [&](Bytes bytes) {
    return static_cast<std::uint64_t>(std::max<Bytes>(bytes, 4) * beside);
  };
  const std::string sizes = " -b " + size_word(std::bit_floor(whole(most.least))) + " -e " +
                            size_word(std::bit_ceil(whole(most.most))) + " -f 2";
  const std::string test = std::string(to_string(most.first.kind)) + "_perf" + sizes;
  if (nodes == 1) return test + " -g " + std::to_string(each);
  return "mpirun -np " + std::to_string(nodes * each) + " -N " + std::to_string(each) + " " + test +
         " -g 1";
}

std::optional<NextMeasurement> next_measurement(const Scenario& scenario,
                                                const FitErrors& fit_errors, const Tuned& tuned) {
  constexpr double kClear = 0.95, kWorth = 0.005, kNearlyAll = 0.8;
  const Ranked& best = tuned.winner();
  const Seconds step = best.metrics.step_time;
  // Rivals are the slower strategies: the baseline and the others of the ranking, if a job can be
  // told to run them. The rest saves too little even if a measurement told everything.
  std::vector<std::pair<const Ranked*, Race>> rivals;
  bool open = false;
  const auto add = [&](const Ranked& ranked) {
    const Seconds other = ranked.metrics.step_time;
    if (other <= step) return;
    const Race race = race_of(step, best.sensitivity, other, ranked.sensitivity);
    if (saved_by(race, {race.lead, 0}) < kNearlyAll * kWorth) return;
    rivals.emplace_back(&ranked, race);
    open |= measure::chance_shorter(step, best.sensitivity, other, ranked.sensitivity) < kClear;
  };
  add(tuned.baseline);
  for (const Ranked& ranked : tuned.ranking) {
    if (!tuned.in_framework) add(ranked);
  }
  if (!open) return std::nullopt;

  std::vector<Option> options;  // for each possible measurement, the one of its best rival
  for (const Probe what : {Probe::kLogs, Probe::kSteps, Probe::kRecord}) {
    if (!possible(what, scenario, fit_errors)) continue;
    const Scenario measured = measured_scenario(what, scenario);
    measure::Uncertainties after(measured, remaining_fit_errors(what, fit_errors));
    const auto after_of = [&](const Ranked& ranked) {
      return after.sensitivity(ranked.strategy, ranked.sensitivity, told_inputs(what));
    };
    const Sensitivity best_after = after_of(best);
    Option most;
    for (const auto& [rival, race] : rivals) {
      Option option{what, rival, race, {}, 0, best_after, after_of(*rival)};
      option.after = race_of(step, best_after, rival->metrics.step_time, option.other);
      option.saved = saved_by(option.now, option.after);
      if (option.saved > most.saved) most = option;
    }
    if (most.rival != nullptr) options.push_back(most);
  }
  if (options.empty()) return std::nullopt;
  const double worth = std::ranges::max_element(options, {}, &Option::saved)->saved;
  // Options are ordered by cost.
  const Option& chosen = *std::ranges::find_if(
      options, [&](const Option& option) { return option.saved >= kNearlyAll * worth; });
  const Seconds other = chosen.rival->metrics.step_time;
  const Sensitivity& best_now = best.sensitivity;
  const Sensitivity& rival_now = chosen.rival->sensitivity;
  NextMeasurement next;
  next.what = chosen.what;
  next.choice = best.strategy.name;
  next.rival = chosen.rival->strategy.name;
  next.saved = chosen.saved;
  next.chance = measure::chance_shorter(step, best_now, other, rival_now);
  if (next.chance >= kClear || worth < kWorth) return std::nullopt;
  next.chance_after = chance_after(chosen.now, chosen.after);
  next.step_now = measure::interval_of(step, best_now);
  next.step_after = measure::interval_of(step, chosen.best);
  next.gain_now = measure::ratio_interval(other / step, rival_now, best_now);
  next.gain_after = measure::ratio_interval(other / step, chosen.other, chosen.best);
  if (next.what == Probe::kLogs) {
    next.command = log_command(scenario, best.strategy, chosen.rival->strategy);
  }
  return next;
}

}  // namespace syncline::tune
