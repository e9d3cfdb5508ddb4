#include "studies/fidelity/cases.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/memory.h"
#include "studies/rows/row_evaluator.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {
namespace {

constexpr double kEqual = 1.005;

// One entry of a list, whose mistakes name it.
class CaseEntry {
 public:
  CaseEntry(const std::string& file, const std::string& place, const Json& json)
      : file_(file), place_(place), json_(json) {
    if (!json.is_object()) refuse("an object");
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) refuse(std::string("a text at ") + key);
    return value.get<std::string>();
  }
  double positive(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number() || value.get<double>() <= 0) {
      refuse(std::string("a number above 0 at ") + key);
    }
    return value.get<double>();
  }
  bool has(const char* key) const { return json_.contains(key); }
  bool flag(const char* key) const { return json_.value(key, false); }
  const Json& at(const char* key) const {
    if (!json_.contains(key)) refuse(std::string("a key ") + key);
    return json_[key];
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    throw InputError(file_ + ": " + place_ + ": expected " + expected);
  }

  const std::string& file_;
  std::string place_;
  const Json& json_;
};

std::vector<CaseEntry> entries_of(const std::string& file, const Json& root, const char* key) {
  std::vector<CaseEntry> entries;
  if (!root.is_object() || !root.contains(key) || !root[key].is_array()) {
    throw InputError(file + ": " + key + ": expected a list");
  }
  for (const Json& item : root[key]) {
    entries.emplace_back(file, std::string(key) + "[" + std::to_string(entries.size()) + "]", item);
  }
  return entries;
}

// Returns a job of the list by its name.
const Json& job_of(const std::string& file, const Json& root, const std::string& name) {
  const Json& jobs = CaseEntry(file, "file", root).at("jobs");
  if (!jobs.contains(name)) throw InputError(file + ": jobs: has no " + name);
  return jobs.at(name);
}

Json patched(Json base, const Json& patch) {
  base.erase("about");
  base.merge_patch(patch);
  base["name"] = "case";
  return base;
}

// A setting of a job, evaluated by the model: its only strategy.
struct CaseSetting {
  Scenario scenario;
  double rate = 0;  // samples a second, of all ranks
  Sensitivity sensitivity;

  explicit CaseSetting(const std::string& file, const Json& root)
      : scenario(input::parse_scenario(input::document_of(file, root))) {
    const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
    collective::CostCache cache(scenario.cluster);
    rate = evaluate_strategy(scenario, strategy(), *executor, cache).metrics.throughput;
    sensitivity = Uncertainties(scenario).sensitivity(strategy());
  }
  const Strategy& strategy() const { return scenario.strategies.front(); }
};

// Returns the interval of a ratio. Two strategies of the same scenario share the draws of inputs.
Interval interval_of(const Json& a_root, const Json& b_root, const CaseSetting& a,
                     const CaseSetting& b, double ratio) {
  const auto without = [](Json root) {
    root.erase("strategies");
    return root;
  };
  if (without(a_root) != without(b_root))
    return ratio_interval(ratio, a.sensitivity, b.sensitivity);
  return Uncertainties(a.scenario)
      .ratio(ratio, {a.strategy(), a.sensitivity}, {b.strategy(), b.sensitivity});
}

// Returns the published time of a row; 0: none.
double time_of(const Row& row) {
  if (!row.published) return 0;
  if (row.published->step_time) return *row.published->step_time;
  return row.published->throughput ? 1 / *row.published->throughput : 0;
}

double published_ratio(const Row& baseline, const Row& row) {
  if (time_of(baseline) > 0 && time_of(row) > 0) return time_of(baseline) / time_of(row);
  return row.published && row.published->speedup ? *row.published->speedup : 0;
}

bool differ(double ratio) { return std::max(ratio, 1 / ratio) > kEqual; }

}  // namespace

std::string_view word_of(Decision decision) {
  constexpr std::array<std::string_view, 3> kWords{"right", "open", "wrong"};
  return kWords.at(static_cast<std::size_t>(decision));
}

Decision PairCase::decision() const {
  if (interval.low <= 1 && 1 <= interval.high) return Decision::kOpen;
  return (interval.low > 1) == (measured > 1) ? Decision::kRight : Decision::kWrong;
}

PairSummary pair_summary(const std::vector<PairCase>& pairs) {
  PairSummary summary;
  std::vector<IntervalRow> rows;
  for (const PairCase& pair : pairs) {
    const Decision decision = pair.decision();
    summary.right += decision == Decision::kRight ? 1 : 0;
    summary.open += decision == Decision::kOpen ? 1 : 0;
    summary.wrong += decision == Decision::kWrong ? 1 : 0;
    rows.push_back({100 * (pair.interval.high / pair.said - 1), pair.contains_measured()});
  }
  summary.intervals = interval_summary(rows);
  return summary;
}

std::vector<PairCase> published_pairs(const std::string& file) {
  const Json root = read_json_file(file);
  std::vector<PairCase> pairs;
  for (const CaseEntry& entry : entries_of(file, root, "pairs")) {
    const std::string name = entry.text("job");
    const Json& own = job_of(file, root, name);
    const CaseEntry job(file, "jobs." + name, own);
    const Json a_root = patched(own, entry.at("a"));
    const Json b_root = patched(own, entry.at("b"));
    const CaseSetting a(file, a_root), b(file, b_root);
    PairCase& pair = pairs.emplace_back();
    pair.kind = entry.text("kind");
    pair.job = job.text("about");
    pair.a = a.strategy().name;
    // If both have the same strategy, the kind names the difference.
    pair.b = b.strategy().name == pair.a ? pair.kind : b.strategy().name;
    pair.said = b.rate / a.rate;
    pair.interval = interval_of(a_root, b_root, a, b, pair.said);
    pair.measured = entry.positive("ratio");
    pair.fitted = entry.flag("fitted");
    pair.source = entry.text("source");
  }
  return pairs;
}

std::vector<PairCase> pairs_of(const Report& report, const std::string& set) {
  std::vector<PairCase> pairs;
  for (const Row& row : report.rows) {
    if (row.strategy == report.baseline || row.gain.high <= 0) continue;
    const auto baseline = std::ranges::find_if(report.rows, [&](const Row& other) {
      return other.strategy == report.baseline && other.sweep == row.sweep;
    });
    if (baseline == report.rows.end()) continue;
    const double measured = published_ratio(*baseline, row);
    if (measured <= 0 || !differ(measured) || !differ(row.speedup)) continue;
    const std::string point = point_text(row.sweep);
    pairs.push_back({.kind = set,
                     .job = report.scenario + (point.empty() ? "" : ", " + point),
                     .a = report.baseline,
                     .b = row.strategy,
                     .said = row.speedup,
                     .interval = row.gain,
                     .measured = measured,
                     .fitted = row.published->calibrated,
                     .source = row.published->source});
    if (pairs.back().source.empty() && !report.sources.empty()) {
      pairs.back().source = report.sources.front();
    }
  }
  return pairs;
}

std::vector<MemoryCase> published_memory(const std::string& file) {
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  const Json root = read_json_file(file);
  std::vector<MemoryCase> cases;
  for (const CaseEntry& entry : entries_of(file, root, "rows")) {
    MemoryCase& one = cases.emplace_back();
    one.job = entry.text("name");
    one.measured = entry.positive("peak_gib") * kGibibyte;
    one.fitted = entry.flag("fitted");
    one.source = entry.text("source");
    if (entry.has("left_out")) {
      one.left_out = entry.text("left_out");
      continue;
    }
    const Json job = patched(job_of(file, root, entry.text("job")), entry.at("with"));
    const Scenario scenario = input::parse_scenario(input::document_of(file, job));
    one.said = memory_of(scenario, scenario.strategies.front()).total();
  }
  return cases;
}

}  // namespace syncline::measure
