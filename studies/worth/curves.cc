#include "studies/worth/curves.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "studies/rows/uncertainty.h"
#include "studies/tune/alternatives.h"

namespace syncline::worth {
namespace {

constexpr double kMax = 1e12;  // steps, or seconds

// Returns the cells of a line, by RFC 4180; a quoted cell must end in its line.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) cells.back() += line[++i];
      if (!doubled) quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

class CurveReader {
 public:
  CurveReader(const std::string& name, Quantity quantity, Over over)
      : name_(name), quantity_(quantity), across_(over == Over::kSteps ? "step" : "seconds") {}

  std::vector<Curve> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      const auto cells = cells_of(line);
      columns_.empty() ? name_columns(cells) : take_row(cells);
    }
    if (columns_.empty()) fail("found no line, expected the columns' names first");
    if (curves_.empty()) fail("found no row with a value in column " + quoted(word_of(quantity_)));
    for (Curve& curve : curves_) put_in_order(curve);
    return std::move(curves_);
  }

 private:
  static std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(name_ + ", line " + std::to_string(line_) + ": " + what);
  }

  void name_columns(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!columns_.emplace(cells[i], i).second) fail("column " + quoted(cells[i]) + " twice");
    }
    width_ = cells.size();
    for (const std::string_view wanted :
         {std::string_view("strategy"), across_, word_of(quantity_)}) {
      if (!columns_.contains(std::string(wanted))) {
        fail("found no column " + quoted(wanted) + ", expected strategy, " + std::string(across_) +
             ", " + std::string(word_of(quantity_)) + " and, of several trainings, seed");
      }
    }
  }

  void take_row(const std::vector<std::string>& cells) {
    if (cells.size() != width_) {
      fail("found " + std::to_string(cells.size()) + " cells, expected " + std::to_string(width_) +
           " as in the first line");
    }
    const auto cell = [&](std::string_view column) -> const std::string& {
      return cells[columns_.at(std::string(column))];
    };
    if (cell("strategy").empty()) fail("found no strategy's name");
    const double at = number<double>(cell(across_), across_);
    if (!(at >= 0 && at <= kMax)) {
      fail("found " + std::string(across_) + " " + cell(across_) + ", expected 0 to 1e12");
    }
    const auto seed =
        columns_.contains("seed") ? number<std::int64_t>(cell("seed"), "seed") : std::int64_t{0};
    const std::string& value = cell(word_of(quantity_));
    if (value.empty()) return;
    curve(cell("strategy"), seed).looks.push_back({at, number<double>(value, word_of(quantity_))});
  }

  template <typename Number>
  Number number(const std::string& text, std::string_view column) const {
    Number value{};
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) {
      fail("column " + std::string(column) + ": found " + quoted(text) + ", expected a number");
    }
    return value;
  }

  Curve& curve(const std::string& strategy, std::int64_t seed) {
    const auto [at, added] = places_.try_emplace({strategy, seed}, curves_.size());
    if (added) curves_.push_back({strategy, seed, {}});
    return curves_[at->second];
  }

  void put_in_order(Curve& curve) const {
    std::ranges::stable_sort(curve.looks, {}, &Look::at);
    for (std::size_t i = 1; i < curve.looks.size(); ++i) {
      if (curve.looks[i].at > curve.looks[i - 1].at) continue;
      throw InputError(name_ + ": strategy " + quoted(curve.strategy) + ", seed " +
                       std::to_string(curve.seed) + " has " + std::string(across_) + " " +
                       std::to_string(std::llround(curve.looks[i].at)) +
                       " twice: several trainings need a column seed");
    }
  }

  const std::string& name_;
  Quantity quantity_;
  std::string_view across_;
  int line_ = 0;
  std::size_t width_ = 0;
  std::map<std::string, std::size_t> columns_;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> places_;
  std::vector<Curve> curves_;
};

// Returns running means. The first value stays: its one neighbour would run ahead of the training.
std::vector<Look> smoothed(const std::vector<Look>& looks) {
  std::vector<Look> means;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const std::size_t first = i > 0 ? i - 1 : 0;
    const std::size_t last = i > 0 ? std::min(i + 1, looks.size() - 1) : 0;
    double sum = 0;
    for (std::size_t k = first; k <= last; ++k) sum += looks[k].value;
    means.push_back({looks[i].at, sum / static_cast<double>(last - first + 1)});
  }
  return means;
}

void add_end(Reach& reach, const std::vector<double>& ends) {
  reach.end = mean(ends);
  const auto count = static_cast<double>(ends.size());
  if (ends.size() < 2 || !std::isfinite(reach.end)) return;
  reach.end_half_width = sample_deviation(ends) / std::sqrt(count) * student_t(0.95, count - 1);
}

Reach reach_of(const std::string& strategy, const std::vector<std::optional<double>>& at) {
  constexpr double kSoonest = 1e-3;  // for curves that begin at the target: step * at > 0
  Reach reach;
  reach.strategy = strategy;
  reach.seeds = at.size();
  std::vector<double> logs;
  for (const auto& one : at) {
    if (one) logs.push_back(std::log(std::max(*one, kSoonest)));
  }
  reach.reached = logs.size();
  if (logs.empty()) return reach;
  reach.at = std::exp(mean(logs));
  if (logs.size() < 2) return reach;
  const auto count = static_cast<double>(logs.size());
  reach.spread = sample_deviation(logs) * std::sqrt(1 + 1 / count) *
                 student_t(measure::kHeld, count - 1) / measure::kHeldDeviations;
  return reach;
}

const Reach* named(const std::vector<Reach>& reaches, const std::string& name) {
  const auto found = std::ranges::find(reaches, name, &Reach::strategy);
  return found == reaches.end() ? nullptr : &*found;
}

// Returns true if two strategies train alike: buckets, streams and levels do not change a training.
bool train_alike(const Strategy& a, const Strategy& b) {
  return measure::training_beside(a, b) == measure::TrainingChange::kSame &&
         measure::training_beside(b, a) == measure::TrainingChange::kSame;
}

const Reach* reach_of(const std::vector<Reach>& reaches, const tune::Alternative& row,
                      const Scenario& scenario) {
  const Reach* own = named(reaches, row.strategy.name);
  if (own == nullptr) own = named(reaches, row.plain);
  for (const Strategy& other : scenario.strategies) {
    if (own != nullptr) break;
    if (train_alike(row.strategy, other)) own = named(reaches, other.name);
  }
  return own;
}

std::string names_of(const std::vector<tune::Alternative>& rows) {
  std::string text;
  for (const tune::Alternative& row : rows) {
    text +=
        (text.empty() ? "'" : ", '") + (row.plain.empty() ? row.strategy.name : row.plain) + "'";
  }
  return text;
}

}  // namespace

std::string_view word_of(Quantity quantity) {
  return quantity == Quantity::kLoss ? "loss" : "accuracy";
}

std::vector<Curve> curves_of(std::string_view text, const std::string& name, Quantity quantity,
                             Over over) {
  return CurveReader(name, quantity, over).read(text);
}

std::optional<double> reach_target(const Curve& curve, Quantity quantity, double target) {
  const auto means = smoothed(curve.looks);
  // A value that is not a number reaches no target.
  const auto there = [&](double value) {
    return quantity == Quantity::kLoss ? value <= target : value >= target;
  };
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (!there(means[i].value)) continue;
    if (i == 0 || !std::isfinite(means[i - 1].value)) return means[i].at;
    const Look& before = means[i - 1];
    const double share = (target - before.value) / (means[i].value - before.value);
    return before.at + share * (means[i].at - before.at);
  }
  return std::nullopt;
}

Quantity find_quantity(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto cells = cells_of(line);
  return std::ranges::count(cells, word_of(Quantity::kAccuracy)) > 0 ? Quantity::kAccuracy
                                                                     : Quantity::kLoss;
}

std::vector<Reach> reaches_of(const std::vector<Curve>& curves, Quantity quantity, double target) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::optional<double>>> at;
  std::map<std::string, std::vector<double>> ends;
  for (const Curve& curve : curves) {
    auto& known = at[curve.strategy];
    if (known.empty()) names.push_back(curve.strategy);
    known.push_back(reach_target(curve, quantity, target));
    ends[curve.strategy].push_back(curve.looks.back().value);
  }
  std::vector<Reach> reaches;
  for (const auto& name : names) {
    reaches.push_back(reach_of(name, at.at(name)));
    add_end(reaches.back(), ends.at(name));
  }
  return reaches;
}

void add_outcomes(const std::vector<Curve>& curves, Quantity quantity, tune::Tuning& tuning) {
  const auto reaches = reaches_of(curves, quantity, 0);  // any target: only the final values count
  auto& rows = tuning.alternatives;
  const Reach* before = reach_of(reaches, rows.front(), tuning.scenario);
  bool any = false;
  for (tune::Alternative& row : rows) {
    const Reach* reach = reach_of(reaches, row, tuning.scenario);
    if (reach == nullptr) continue;
    any = true;
    row.outcome =
        tune::TrainingResult{std::string(word_of(quantity)), reach->end, reach->end_half_width, {}};
    if (before != nullptr) row.outcome->baseline = before->end;
  }
  if (any) return;
  throw InputError("no row has a curve: found curves of '" + curves.front().strategy +
                   "', expected names such as " + names_of(rows));
}

}  // namespace syncline::worth
