#include "cli/run_choice.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/options.h"
#include "core/error.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "core/measure/row_evaluator.h"
#include "core/scenario/scenario.h"
#include "core/visible.h"
#include "live/rank_environment.h"
#include "reports/trace.h"

namespace syncline::cli {
namespace {

// No number: 0.
std::size_t number_of(const std::string& text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? value : 0;
}

measure::Part checked(measure::Part part, const std::string& from) {
  if (part.number >= 1 && part.number <= part.count) return part;
  throw InputError("--part: found '" + shortened(visible(from), 60) +
                   "', expected I/N with I from 1 to N, or auto");
}

// Open MPI counts ranks from 0, a Slurm array from wherever it begins.
measure::Part part_of_launcher() {
  const auto variable = [environment = live::process_environment()](const char* name) {
    return environment(name).value_or("");
  };
  std::string place = variable("OMPI_COMM_WORLD_RANK");
  std::string count = variable("OMPI_COMM_WORLD_SIZE");
  std::string first = "0";
  if (place.empty()) {
    place = variable("SLURM_ARRAY_TASK_ID");
    count = variable("SLURM_ARRAY_TASK_COUNT");
    first = variable("SLURM_ARRAY_TASK_MIN");
  }
  if (place.empty()) {
    throw InputError(
        "--part auto: neither Open MPI (OMPI_COMM_WORLD_RANK) nor a Slurm array "
        "(SLURM_ARRAY_TASK_ID) started this process: use --part I/N");
  }
  const std::size_t number = number_of(place) + 1 - number_of(first);
  return checked({number, number_of(count)}, place + " of " + count + " from " + first);
}

constexpr const char* kStrategy = "strategy";
constexpr const char* kRank = "rank";

[[noreturn]] void refuse(const std::string& word, const std::string& expected) {
  throw InputError("--trace-of: found '" + shortened(word) + "', expected " + expected);
}

// The swept key that is meant: all of it, or its end ("nodes" of "cluster.nodes").
std::size_t swept_key(const Scenario& scenario, const std::string& key, const std::string& word) {
  std::vector<std::string> known{kStrategy, kRank};
  std::vector<std::size_t> meant;
  for (std::size_t i = 0; i < scenario.sweep.size(); ++i) {
    const std::string& path = scenario.sweep[i].first;
    if (path == key) return i;
    if (path.ends_with("." + key)) meant.push_back(i);
    known.push_back(path);
  }
  if (meant.size() == 1) return meant.front();
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  refuse(word, "KEY=VALUE with a key of: " + list + did_you_mean(key, known));
}

void put_swept(const Scenario& scenario, const std::string& key, const std::string& value,
               const std::string& word, SweepPoint& point) {
  const std::size_t at = swept_key(scenario, key, word);
  std::string list;
  for (const Json& known : scenario.sweep[at].second) {
    if (plain_text(known) == value || json_in(value) == known) {
      point[at].second = known;
      return;
    }
    list += (list.empty() ? "" : ", ") + plain_text(known);
  }
  refuse(word, scenario.sweep[at].first + " at a point of the sweep: " + list);
}

int rank_in(const std::string& value, const std::string& word) {
  int rank = -1;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), rank);
  if (read.ec != std::errc() || read.ptr != value.data() + value.size() || rank < 0) {
    refuse(word, "the number of a rank, from 0");
  }
  return rank;
}

void require_chosen_ranks(const std::vector<int>& ranks, const SweepPoint& point,
                          const input::Document& document) {
  if (ranks.empty()) return;
  if (ranks.size() > reports::kTracedRanks) {
    throw InputError("--trace-of: found " + std::to_string(ranks.size()) +
                     " ranks, a trace shows at most " + std::to_string(reports::kTracedRanks));
  }
  const int all = measure::at_point(measure::without_sweep(document), point).cluster.ranks();
  const int last = *std::max_element(ranks.begin(), ranks.end());
  if (last < all) return;
  refuse("rank=" + std::to_string(last),
         measure::name_of({point, "a rank of 0 to " + std::to_string(all - 1)}));
}

}  // namespace

measure::Part part_of(const std::string& text) {
  if (text == "auto") return part_of_launcher();
  const auto slash = text.find('/');
  if (slash == std::string::npos) return checked({0, 0}, text);
  return checked({number_of(text.substr(0, slash)), number_of(text.substr(slash + 1))}, text);
}

void add_trace_of(CLI::App& verb, std::vector<std::string>& words) {
  verb.add_option("--trace-of", words, "limit the trace: strategy=NAME, rank=N, sweep KEY=VALUE")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

std::optional<measure::TraceChoice> trace_choice(const std::vector<std::string>& words,
                                                 const input::Document& document,
                                                 const Scenario& scenario,
                                                 const std::vector<std::string>& strategies) {
  if (words.empty()) return std::nullopt;
  measure::TraceChoice choice{Sweep(scenario).point(0), {}, {}};
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || key.empty()) refuse(word, "KEY=VALUE");
    const std::string value = word.substr(equals + 1);
    if (key == kStrategy) {
      choice.strategies.push_back(chosen_strategy(scenario, value, document.file).name);
    } else if (key == kRank) {
      choice.ranks.push_back(rank_in(value, word));
    } else {
      put_swept(scenario, key, value, word, choice.point);
    }
  }
  require_chosen_ranks(choice.ranks, choice.point, document);
  if (choice.strategies.empty()) {
    for (const auto& strategy : chosen_strategies(scenario, strategies, document.file)) {
      choice.strategies.push_back(strategy.name);
    }
  }
  return choice;
}

}  // namespace syncline::cli
