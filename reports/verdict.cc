#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "formats/text/digits.h"
#include "reports/format.h"
#include "reports/memory_text.h"
#include "reports/run_report.h"
#include "reports/run_rows.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

// A sentence names points one by one up to this number, and counts them beyond.
constexpr std::size_t kListedPoints = 4;
constexpr std::size_t kListedLongPoints = 2;  // with several axes: each name is long
constexpr std::size_t kListedGroups = 4;

using Names = std::vector<std::string>;
using Places = std::vector<std::size_t>;  // indices of sweep points, rising

// The rows of a sweep point.
struct Point {
  std::vector<const measure::Row*> rows;
  std::unordered_map<std::string_view, const measure::Row*> by_name;
  bool memory_decides = false;  // some of its strategies do not fit in memory
};

struct Study {
  std::vector<Axis> axes;
  std::string baseline;
  std::vector<Point> points;
};

const measure::Row* row_of(const Point& point, const std::string& strategy) {
  const auto found = point.by_name.find(strategy);
  return found == point.by_name.end() || !std::isfinite(found->second->speedup) ? nullptr
                                                                                : found->second;
}

bool fits(const measure::Row* row) { return row->memory.fits(); }

Study study_of(const measure::Report& report) {
  Study study{axes_of(report.rows), report.baseline, {}};
  for (const auto& row : report.rows) {
    if (row.executor != report.rows.front().executor) continue;
    // Rows come point by point: it is mostly the last one.
    const auto known =
        std::find_if(study.points.rbegin(), study.points.rend(),
                     [&](const auto& point) { return same_point(*point.rows.front(), row); });
    if (known == study.points.rend()) {
      study.points.push_back({{&row}, {}, false});
    } else {
      known->rows.push_back(&row);
    }
  }
  for (auto& [rows, by_name, memory_decides] : study.points) {
    for (const measure::Row* row : rows) by_name.emplace(row->strategy, row);
    memory_decides = !std::all_of(rows.begin(), rows.end(), fits);
  }
  // Without a baseline (an interrupted run), or with an infinite one, a point has no speedups.
  std::erase_if(study.points,
                [&](const auto& point) { return row_of(point, report.baseline) == nullptr; });
  return study;
}

// Returns the other strategies of the study in order of appearance.
Names challengers(const Study& study) {
  Names names;
  std::unordered_set<std::string_view> known{study.baseline};
  for (const auto& point : study.points) {
    for (const measure::Row* row : point.rows) {
      if (known.insert(row->strategy).second) names.push_back(row->strategy);
    }
  }
  return names;
}

// Memory ---------------------------------------------------------------------------------------

// Returns true if a user may choose the row.
bool eligible(const measure::Row* row) { return std::isfinite(row->speedup) && fits(row); }

bool nothing_fits(const Point& point) {
  return std::none_of(point.rows.begin(), point.rows.end(), fits);
}

// Returns a row that can be compared with its baseline, as both fit; else nullptr.
const measure::Row* compared(const Study& study, std::size_t place, const std::string& strategy) {
  const Point& point = study.points[place];
  const measure::Row* row = row_of(point, strategy);
  const bool both = row != nullptr && eligible(row) && eligible(row_of(point, study.baseline));
  return both ? row : nullptr;
}

// Words for places ---------------------------------------------------------------------------

std::string value_at(const Study& study, std::size_t place) {
  return value_text(*study.points[place].rows.front(), study.axes.front());
}

// Returns the ends of points that are neighbours on one numeric axis: "1 to 10"; empty if a point
// between them is missing.
std::string span_text(const Study& study, const Places& places) {
  const auto number = [&](std::size_t place) {
    return axis_value(*study.points[place].rows.front(), study.axes.front());
  };
  Places order(study.points.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Json* value = number(i);
    if (value == nullptr || !value->is_number()) return "";
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return number(a)->get<double>() < number(b)->get<double>();
  });
  const auto inside = [&](std::size_t place) {
    return std::binary_search(places.begin(), places.end(), place);
  };
  const auto first = std::find_if(order.begin(), order.end(), inside);
  const auto count = static_cast<std::ptrdiff_t>(places.size());
  if (order.end() - first < count || !std::all_of(first, first + count, inside)) return "";
  return value_at(study, *first) + " to " + value_at(study, *(first + count - 1));
}

struct Where {
  std::string text;   // " at bandwidth_gbps 10 and 1"
  bool each = false;  // every point is named, so each can have its figure
};

// Returns sweep points in words. `opening`: names the axis. `every`: the word for all points.
Where where(const Study& study, const Places& places, bool opening, std::string_view every) {
  if (study.axes.empty()) return {"", true};
  const std::size_t all = study.points.size();
  if (places.size() == all && all > 1) return {" at " + std::string(every) + " sweep point", false};

  if (study.axes.size() > 1) {
    if (places.size() > kListedLongPoints) {
      return {
          " at " + std::to_string(places.size()) + " of " + std::to_string(all) + " sweep points",
          false};
    }
    std::string text;
    for (const std::size_t place : places) {
      text += (text.empty() ? " at " : " and at ") +
              point_text(*study.points[place].rows.front(), study.axes);
    }
    return {text, true};
  }

  const std::string at = opening ? " at " + study.axes.front().name + " " : " at ";
  if (places.size() <= kListedPoints) {
    Names values;
    for (const std::size_t place : places) values.push_back(value_at(study, place));
    return {at + join_and(values), true};
  }
  const std::string span = span_text(study, places);
  if (!span.empty()) return {at + span, false};
  return {" at " + std::to_string(places.size()) + " of " + std::to_string(all) + " sweep points",
          false};
}

// Returns "1.47x and 6.55x" if each point is named, else "1.47x to 6.55x"; one if all are equal.
std::string times(const std::vector<double>& speedups, bool each) {
  const auto [low, high] = std::minmax_element(speedups.begin(), speedups.end());
  const std::string from = short_speedup_text(*low), to = short_speedup_text(*high);
  if (from == to) return from;
  if (!each) return from + " to " + to;
  Names texts;
  for (const double speedup : speedups) texts.push_back(short_speedup_text(speedup));
  return join_and(texts);
}

struct Tally {
  Places places;
  std::vector<double> speedups;

  void add(std::size_t place, double speedup) {
    places.push_back(place);
    speedups.push_back(speedup);
  }
};

// Returns ", 80 %: 1.42 to 1.61x" for a single row with an interval.
std::string range_of(const Study& study, const Tally& tally, const std::string& name) {
  if (tally.places.size() != 1) return "";
  const measure::Row* row = compared(study, tally.places.front(), name);
  if (row == nullptr || row->gain.low <= 0) return "";
  return ", 80 %: " + speedup_range(row->gain.low, row->gain.high);
}

// Joins clauses to one sentence.
std::string sentence(const Names& clauses) {
  return clauses.empty() ? "" : join(clauses, "; ") + ".";
}

// One strategy: no comparison --------------------------------------------------------------------

std::string alone(const Study& study) {
  if (study.points.size() == 1) {
    const measure::Row& row = *study.points.front().rows.front();
    const std::string at = study.axes.empty() ? "" : " at " + point_text(row, study.axes);
    return row.strategy + " takes " + seconds_text(row.metrics.step_time, kSaidDigits) +
           " per step" + at + ", " + seconds_text(row.metrics.exposed, kSaidDigits) +
           " of it exposed communication.";
  }
  std::vector<double> step_times;
  for (const auto& point : study.points) {
    step_times.push_back(point.rows.front()->metrics.step_time);
  }
  const auto [low, high] = std::minmax_element(step_times.begin(), step_times.end());
  const auto at = [&](auto found) {
    const auto place = static_cast<std::size_t>(found - step_times.begin());
    return seconds_text(*found, kSaidDigits) + " per step at " +
           point_text(*study.points[place].rows.front(), study.axes);
  };
  const std::string name = study.points.front().rows.front()->strategy;
  if (seconds_text(*low, kSaidDigits) == seconds_text(*high, kSaidDigits)) {
    return name + " takes " + seconds_text(*low, kSaidDigits) + " per step at every sweep point.";
  }
  return name + " takes from " + at(low) + " to " + at(high) + ".";
}

// Returns true if the row counts as faster or slower, and its interval contains the baseline.
bool undecided(const measure::Row& row) {
  const bool differs = row.speedup > kTie || row.speedup < kPays;
  return differs && row.gain.low < 1 && row.gain.high > 1;
}

// Returns true if the row is slower, and its interval does not doubt it.
bool slower(const measure::Row& row) { return row.speedup < kPays && !undecided(row); }

// Two strategies: is the other one faster? -----------------------------------------------------

std::string duel(const Study& study, const std::string& name) {
  Tally pays, equal, loses, may_lose;
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const measure::Row* row = compared(study, i, name);
    if (row == nullptr) continue;
    Tally& lower = row->speedup >= kPays ? equal : slower(*row) ? loses : may_lose;
    (row->speedup > kTie ? pays : lower).add(i, row->speedup);
  }
  Names clauses;
  const auto tell = [&](const Tally& outcome, std::string_view verb, std::string_view every) {
    if (outcome.places.empty()) return;
    const bool opening = clauses.empty();
    const Where at = where(study, outcome.places, opening, every);
    const std::string figures = times(outcome.speedups, at.each);
    if (opening) {
      clauses.push_back(name + " " + std::string(verb) + at.text + " (" + figures + " over " +
                        study.baseline + range_of(study, outcome, name) + ")");
    } else {
      clauses.push_back(at.text.substr(1) + " it " + std::string(verb) + " (" + figures + ")");
    }
  };
  tell(pays, "is the fastest", "every");
  tell(equal, "makes no difference of more than 0.5 %", "any");
  tell(loses, "is slower", "any");
  tell(may_lose, "is likely slower", "any");
  return sentence(clauses);
}

// Several strategies: the leaders by sweep point, and the slower ones --------------------------

struct Lead {
  Names names;  // within a tie of the best; empty: all are at most as fast as the baseline
  Names large;  // faster than those, and do not fit
  bool baseline_fits = true;
  bool nothing = false;  // no strategy fits
  Tally outcome;
};

// Returns the best speedup of the rows that fit; 0: no row fits.
double best_of(const Point& point) {
  double best = 0;
  for (const measure::Row* row : point.rows) {
    if (eligible(row)) best = std::max(best, row->speedup);
  }
  return best;
}

// Returns a row's tone. If the baseline does not fit, the fastest that fits leads at any speedup.
Tone tone_at(const measure::Row* row, bool baseline_fits, double best) {
  if (!std::isfinite(row->speedup)) return Tone::kPlain;
  if (!eligible(row)) return Tone::kFaint;
  if (best > (baseline_fits ? kTie : 0) && row->speedup * kTie >= best) return Tone::kBest;
  return row->speedup < kPays ? Tone::kFaint : Tone::kPlain;
}

Lead lead_at(const Point& point, const std::string& baseline) {
  Lead lead;
  const double best = best_of(point);
  lead.baseline_fits = eligible(row_of(point, baseline));
  lead.nothing = nothing_fits(point);
  if (lead.nothing) return lead;
  for (const measure::Row* row : point.rows) {
    const bool leads = tone_at(row, lead.baseline_fits, best) == Tone::kBest;
    if (leads) lead.names.push_back(row->strategy);
    const bool large = std::isfinite(row->speedup) && !eligible(row);
    if (large && row->speedup > std::max(1.0, best) * kTie) lead.large.push_back(row->strategy);
  }
  return lead;
}

std::vector<Lead> leads_of(const Study& study) {
  std::vector<Lead> leads;
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const Lead here = lead_at(study.points[i], study.baseline);
    auto lead = std::find_if(leads.begin(), leads.end(), [&](const Lead& other) {
      return other.names == here.names && other.large == here.large &&
             other.baseline_fits == here.baseline_fits && other.nothing == here.nothing;
    });
    if (lead == leads.end()) lead = leads.insert(leads.end(), here);
    lead->outcome.add(i, best_of(study.points[i]));
  }
  // Leads that hold at most points come first.
  std::stable_sort(leads.begin(), leads.end(), [](const Lead& a, const Lead& b) {
    return a.names.empty() != b.names.empty() ? b.names.empty()
                                              : a.outcome.places.size() > b.outcome.places.size();
  });
  return leads;
}

// Returns "; ddp is faster (1.54x) and does not fit"; for several, the range of their speedups.
std::string large_clause(const Study& study, const Lead& lead) {
  if (lead.large.empty()) return "";
  std::vector<double> speedups;
  for (const std::size_t place : lead.outcome.places) {
    for (const auto& name : lead.large) {
      speedups.push_back(row_of(study.points[place], name)->speedup);
    }
  }
  const bool one = lead.large.size() == 1;
  return "; " + join_and(lead.large) + (one ? " is" : " are") + " faster (" +
         times(speedups, false) + ") and " + (one ? "does" : "do") + " not fit";
}

std::string lead_clause(const Study& study, const Lead& lead, bool opening) {
  const std::string large = large_clause(study, lead);
  if (lead.nothing) {
    return "nothing fits in memory" + where(study, lead.outcome.places, opening, "any").text;
  }
  if (lead.names.empty()) {
    const Where at = where(study, lead.outcome.places, opening, "any");
    return "no strategy " + std::string(large.empty() ? "" : "that fits ") +
           "is more than 0.5 % faster than " + study.baseline + at.text + large;
  }
  const Where at = where(study, lead.outcome.places, opening, "every");
  const std::string fastest = std::string(lead.names.size() == 1 ? " is" : " are") +
                              " the fastest" +
                              (large.empty() && lead.baseline_fits ? "" : " that fits in memory");
  const std::string range =
      lead.names.size() == 1 ? range_of(study, lead.outcome, lead.names.front()) : "";
  const std::string figures = " (" + times(lead.outcome.speedups, at.each) + " over " +
                              study.baseline + range +
                              (lead.baseline_fits ? ")" : ", which does not fit)") + large;
  if (lead.names.size() == 1) return lead.names.front() + fastest + at.text + figures;
  return join_and(lead.names) + fastest + ", within 0.5 % of each other" +
         (at.text.empty() ? "" : "," + at.text) + figures;
}

std::string leads_sentence(const Study& study) {
  const std::vector<Lead> leads = leads_of(study);
  const std::size_t shown = leads.size() > kListedGroups ? kListedGroups : leads.size();
  Names clauses;
  for (std::size_t i = 0; i < shown; ++i) {
    clauses.push_back(lead_clause(study, leads[i], clauses.empty()));
  }
  std::size_t rest = 0;
  for (std::size_t i = shown; i < leads.size(); ++i) rest += leads[i].outcome.places.size();
  if (rest > 0) {
    clauses.push_back("see the table for the other " + plural(rest, "sweep point"));
  }
  return sentence(clauses);
}

// Strategies with the same outcome at the same points: they are named together.
struct Group {
  Names names;
  Tally outcome;
};

std::vector<Group> grouped(const Study& study, const Names& names,
                           bool (*holds)(const measure::Row&)) {
  std::vector<Group> groups;
  for (const auto& name : names) {
    Tally outcome;
    for (std::size_t i = 0; i < study.points.size(); ++i) {
      const measure::Row* row = compared(study, i, name);
      if (row != nullptr && holds(*row)) outcome.add(i, row->speedup);
    }
    if (outcome.places.empty()) continue;
    auto group = std::ranges::find_if(
        groups, [&](const Group& other) { return other.outcome.places == outcome.places; });
    if (group == groups.end()) group = groups.insert(group, Group{{}, {outcome.places, {}}});
    group->names.push_back(name);
    auto& all = group->outcome.speedups;
    all.insert(all.end(), outcome.speedups.begin(), outcome.speedups.end());
  }
  return groups;
}

std::string losers_sentence(const Study& study, const Names& names) {
  const auto groups = grouped(study, names, slower);
  Names clauses;
  for (const auto& group : groups) {
    const Where at = where(study, group.outcome.places, clauses.empty(), "any");
    // One figure per name, or one per point, can be listed in order; otherwise their range.
    const bool one_point = group.outcome.places.size() == 1 && group.names.size() <= 4;
    const bool each = at.each && (group.names.size() == 1 || one_point);
    clauses.push_back(join_and(group.names) +
                      (group.names.size() == 1 ? " is slower" : " are slower") + at.text + " (" +
                      times(group.outcome.speedups, each) + ")");
  }
  return sentence(clauses);
}

// Returns the comparisons that the intervals do not decide.
std::string open_sentence(const Study& study, const Names& names) {
  Names clauses;
  bool several = false;
  for (const auto& [together, outcome] : grouped(study, names, undecided)) {
    const bool opening = clauses.empty();
    several = several || !opening || together.size() > 1;
    const Where at = where(study, outcome.places, opening, "every");
    clauses.push_back(join_and(together) +
                      (opening ? " may be faster or slower than " + study.baseline : "") + at.text);
  }
  if (clauses.empty()) return {};
  return join(clauses, "; ") +
         (several ? ": their 80 % intervals contain 1." : ": its 80 % interval contains 1.");
}

// Returns a sentence per strategy that is the fastest of a sweep point and may not fit in memory.
std::string room_sentences(const Study& study) {
  std::vector<std::pair<const measure::Row*, Places>> tight;
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const measure::Row* fastest = nullptr;
    for (const measure::Row* row : study.points[i].rows) {
      const bool faster = fastest == nullptr || row->speedup > fastest->speedup * kTie;
      if (eligible(row) && faster) fastest = row;
    }
    if (fastest == nullptr || !fastest->memory.may_not_fit()) continue;
    auto known = std::ranges::find(tight, fastest->strategy,
                                   [](const auto& entry) { return entry.first->strategy; });
    if (known == tight.end()) known = tight.insert(known, {fastest, {}});
    known->second.push_back(i);
  }
  std::string text;
  for (const auto& [row, places] : tight) {
    const std::string at = where(study, places, true, "every").text;
    text += room_sentence(row->memory, quoted_name(row->strategy) + at);
  }
  return text;
}

std::string upper_first(std::string text) {
  // Only our own words: a strategy keeps the case that its author gave it.
  for (const std::string_view own : {"no strategy ", "see the table ", "nothing fits "}) {
    if (text.starts_with(own)) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

// Returns the effect of more ranks on the baseline, if only their number is swept.
std::string scaling_sentence(const Study& study) {
  if (study.axes.size() != 1 || study.points.size() < 2) return {};
  std::vector<const measure::Row*> rows;
  for (const Point& point : study.points) {
    const measure::Row* row = row_of(point, study.baseline);
    if (row == nullptr || !(row->rate.efficiency > 0) || row->rate.ranks < 1) return {};
    rows.push_back(row);
  }
  std::ranges::sort(rows, {}, [](const measure::Row* row) { return row->rate.ranks; });
  const measure::Row& few = *rows.front();
  const measure::Row& many = *rows.back();
  if (few.rate.ranks == many.rate.ranks) return {};
  const auto ranks = [](const measure::Row& row) { return std::to_string(row.rate.ranks); };
  std::string text = quoted_name(study.baseline) + " keeps " +
                     share_text(100 * many.rate.efficiency) + " of its samples per rank from " +
                     ranks(few) + " to " + ranks(many) + " ranks";
  const double waits = many.metrics.exposed / many.metrics.step_time;
  constexpr double kWorthSaying = 0.05;
  if (waits > kWorthSaying) {
    text += ", where " + share_text(100 * waits) + " of the step waits for communication";
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i]->metrics.throughput >= rows[i - 1]->metrics.throughput) continue;
    return text + "; " + ranks(*rows[i]) + " ranks are slower than " + ranks(*rows[i - 1]) + ", " +
           throughput_text(rows[i]->metrics.throughput) + " samples/s instead of " +
           throughput_text(rows[i - 1]->metrics.throughput) + ".";
  }
  return text + ".";
}

// Returns the share of a step that waits for the network with the strategy that fits and waits
// least; 0: one does not wait for most of its step.
double least_wait(const Point& point) {
  double least = 1;
  for (const measure::Row* row : point.rows) {
    const measure::Metrics& metrics = row->metrics;
    if (!eligible(row)) continue;
    if (!measure::waits_for_network(metrics)) return 0;
    least = std::min(least, metrics.exposed / metrics.step_time);
  }
  return least;
}

// Returns the network's part in measured steps, or says that it cannot carry the training.
std::string network_opening(const Study& study, const measure::Report& report) {
  const auto several = [](const Point& point) { return point.rows.front()->rate.ranks > 1; };
  if (study.points.empty()) return "";
  if (report.network) {
    const measure::Row* baseline = row_of(study.points.back(), study.baseline);
    return network_sentence(*report.network, baseline->metrics) + " ";
  }
  Places places;
  double least = 1;
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const double wait = least_wait(study.points[i]);
    if (!several(study.points[i]) || nothing_fits(study.points[i]) || wait == 0) continue;
    places.push_back(i);
    least = std::min(least, wait);
  }
  if (places.empty()) return "";
  return "The network cannot carry this training" + where(study, places, true, "any").text + ": " +
         share_text(100 * least) +
         " of each step waits for it with every strategy; syncline tune names remedies. ";
}

// Returns the lack of memory, or the strategy that needs least.
std::string needs_of(const measure::Report& report, const Study& study) {
  if (!report.shortage.empty()) return report.shortage;
  const auto& rows = study.points.front().rows;
  const measure::Row* least = *std::ranges::min_element(
      rows, {}, [](const measure::Row* row) { return row->memory.total(); });
  return quoted_name(least->strategy) + " needs least, " + memory_cell(least->memory);
}

}  // namespace

std::vector<Tone> tones_of(const measure::Report& report) {
  std::vector<Tone> tones(report.rows.size(), Tone::kPlain);
  for (const auto& point : study_of(report).points) {
    const double best = best_of(point);
    const bool baseline_fits = eligible(row_of(point, report.baseline));
    for (const measure::Row* row : point.rows) {
      tones[static_cast<std::size_t>(row - report.rows.data())] = tone_at(row, baseline_fits, best);
    }
    // If no strategy is faster, the baseline is the best.
    const measure::Row* baseline = row_of(point, report.baseline);
    const bool leads = best <= kTie && baseline_fits && point.rows.size() > 1;
    if (leads) tones[static_cast<std::size_t>(baseline - report.rows.data())] = Tone::kBest;
  }
  return tones;
}

std::string fit_failure(const measure::Report& report) {
  constexpr double kNear = 6;  // per cent, in the mean
  double sum = 0;
  int rows = 0;
  const measure::Row* worst = nullptr;
  for (const measure::Row& row : report.rows) {
    if (!row.published || !row.published->calibrated || !row.error_percent) continue;
    const double error = std::fabs(*row.error_percent);
    if (worst == nullptr || error > std::fabs(*worst->error_percent)) worst = &row;
    sum += error;
    ++rows;
  }
  if (rows == 0 || sum / rows <= kNear || !worst->published->step_time) return "";
  const Seconds measured = *worst->published->step_time;
  return "The fit failed: " + quoted_name(worst->strategy) + " was measured at " +
         seconds_text(measured, kSaidDigits) +
         " per step, and the nearest that fitted values give is " +
         seconds_text(worst->metrics.step_time, kSaidDigits) +
         ". Check the seconds, the GPUs and the settings before you use what follows.";
}

std::string network_sentence(const measure::NetworkFit& fit, const measure::Metrics& baseline) {
  const double share = fit.carried / fit.given;
  const double waits = baseline.exposed / baseline.step_time;
  constexpr double kPoor = 0.6, kLittle = 0.1, kMax = 0.5;
  std::string text = waits < kLittle ? "It is not the network"
                     : waits < kMax  ? "It is the network in part"
                                     : "It is the network";
  text += ": of the baseline's " + seconds_text(baseline.step_time, kSaidDigits) + " per step " +
          seconds_text(baseline.exposed, kSaidDigits) + " wait for it";
  // Steps that hardly wait do not show the network's bandwidth.
  if (waits < kLittle) return text + ".";
  constexpr double kRounding = 1.05;
  if (share > kRounding) {
    return text + ". The steps are shorter than ports of " + plain_number(fit.given) +
           " Gbit/s are expected to allow; " + plain_number(significant(fit.carried, 3)) +
           " Gbit/s would explain them: check the ports and the seconds.";
  }
  text += ". As measured, a port between nodes carries " +
          plain_number(significant(fit.carried, 3)) + " Gbit/s, " + share_text(100 * share) +
          " of the " + plain_number(fit.given) + " that it is given";
  if (share < kPoor) text += ". Look for " + slow_network_causes(fit.fabric, fit.nics);
  return text + ".";
}

std::string verdict(const measure::Report& report) {
  std::string failure = fit_failure(report);
  if (!failure.empty()) failure += " ";
  const Study study = study_of(report);
  if (failure.empty()) failure = network_opening(study, report);
  if (study.points.empty()) return "There is no complete sweep point to compare yet.";
  if (std::ranges::all_of(study.points, nothing_fits)) {
    return one_line(failure + "Nothing here fits in memory: " + needs_of(report, study) + ".");
  }
  const Names names = challengers(study);
  if (names.empty()) {
    const std::string more = scaling_sentence(study);
    return one_line(failure + alone(study) + (more.empty() ? "" : " " + more) +
                    room_sentences(study));
  }
  const bool two =
      names.size() == 1 && std::none_of(study.points.begin(), study.points.end(),
                                        [](const Point& point) { return point.memory_decides; });
  std::string text = two ? duel(study, names.front()) : upper_first(leads_sentence(study));
  const std::string losers = two ? "" : losers_sentence(study, names);
  for (const std::string& more : {losers, open_sentence(study, names), scaling_sentence(study)}) {
    if (!more.empty()) text += " " + more;
  }
  return one_line(failure + text + room_sentences(study));
}

std::string slow_network_causes(Fabric fabric, int nics) {
  struct Causes {
    Fabric of;
    const char* all;
    const char* one_port;  // one of several
  };
  static constexpr Causes kCauses[] = {
      {Fabric::kTcp,
       "too few sockets (NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4), the wrong interface "
       "(NCCL_SOCKET_IFNAME) and other traffic on the uplinks",
       "NCCL_SOCKET_IFNAME lists them all"},
      {Fabric::kEfa,
       "NCCL without aws-ofi-nccl (its log names the network plugin) and EFA without GPUDirect "
       "(FI_EFA_USE_DEVICE_RDMA=1)",
       "its log lists those in use"},
      {Fabric::kSlingshot,
       "NCCL without aws-ofi-nccl (its log names the network plugin) and no GPUDirect "
       "(NCCL_NET_GDR_LEVEL=PHB)",
       "NCCL_CROSS_NIC=1"},
      {Fabric::kTcpx, "NCCL without the provider's plugin, which its log names",
       "its log lists those in use"}};
  static constexpr Causes kOther{
      Fabric::kUnknown,
      "sockets in place of RDMA (NCCL_DEBUG=INFO says NET/Socket), no GPUDirect "
      "(NCCL_NET_GDR_LEVEL) and oversubscribed uplinks",
      "NCCL_IB_HCA"};
  const auto known = std::ranges::find(kCauses, fabric, &Causes::of);
  const Causes& causes = known == std::end(kCauses) ? kOther : *known;
  const std::string ports = ", and one port of several (" + std::string(causes.one_port) + ")";
  return causes.all + (nics > 1 ? ports : "");
}

}  // namespace syncline::reports
