#include "reports/tune_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/input/scenario_json.h"
#include "reports/format.h"
#include "reports/table.h"
#include "reports/utilisation_report.h"

namespace syncline::reports {
namespace {

using tune::Utilisation;
using tune::Utilised;

std::string rate_text(BytesPerSecond rate) {
  constexpr double kMegabit = kGigabitPerSecond / 1000;
  const bool small = rate < kGigabitPerSecond;
  return small ? plain_number(rate / kMegabit) + " Mbit/s"
               : plain_number(rate / kGigabitPerSecond) + " Gbit/s";
}

BytesPerSecond rated(const Tier& link) { return link.bandwidth / link.efficiency; }

std::string period_of(const LocalSgd& local) {
  std::string text = " every " + std::to_string(local.period) + " steps";
  if (local.fragments > 1) text += " in " + std::to_string(local.fragments) + " fragments";
  return text;
}

// Returns the strategy's keys to paste into the scenario, with a name that is unique there.
Json keys_of(const Utilisation& utilisation, const Utilised& row) {
  Strategy strategy = row.strategy;
  const Strategy* own = find_strategy(utilisation.scenario, strategy.name);
  if (strategy.local_sgd.enabled && (own == nullptr || own->local_sgd != strategy.local_sgd)) {
    strategy.name += period_of(strategy.local_sgd);
  }
  return input::strategy_json(strategy);
}

std::vector<Field<Utilised>> fields_of(const Utilisation& utilisation) {
  using enum Kind;
  const auto averaging = [](std::int64_t LocalSgd::*key) {
    return [key](const Utilised& row) {
      const LocalSgd& local = row.strategy.local_sgd;
      return local.enabled ? Cell(local.*key) : Cell();
    };
  };
  return {
      {table_column("strategy", "strategy"), [](const Utilised& row) { return row.strategy.name; }},
      {table_column("period", "period", kInteger), averaging(&LocalSgd::period)},
      {table_column("frag-\nments", "fragments", kInteger),
       [](const Utilised& row) {
         const LocalSgd& local = row.strategy.local_sgd;
         return local.enabled ? Cell(local.fragments) : Cell();
       }},
      {table_column("delay", "delay", kInteger), averaging(&LocalSgd::delay)},
      {table_column("needed", "needed_gbps", kThroughput),
       [](const Utilised& row) {
         return row.needed ? show_as(*row.needed / kGigabitPerSecond, rate_text(*row.needed))
                           : Cell();
       }},
      {table_column("utilisation\nas given", "utilisation_percent", kShare),
       [](const Utilised& row) { return 100 * row.given; }},
      {data_column("keys", Column::kJson),
       [&utilisation](const Utilised& row) { return keys_of(utilisation, row); }}};
}

Table rows_of(const Utilisation& utilisation) {
  return table_of(fields_of(utilisation), utilisation.rows);
}

std::string setting_of(const Utilisation& utilisation) {
  const std::string each =
      utilisation.ranks == 1 ? "single ranks" : "groups of " + plural(utilisation.ranks, "rank");
  return plural(utilisation.groups, "group") + ", " + each + ", joined by '" +
         one_line(utilisation.link.name) + "': " + rate_text(rated(utilisation.link)) +
         " a port, " + seconds_text(utilisation.link.latency) + " a message";
}

std::string named(const Utilised& row) {
  const LocalSgd& local = row.strategy.local_sgd;
  return quoted_name(row.strategy.name) + (local.enabled ? period_of(local) : std::string());
}

// Returns the simplest row of those that reach the target at the given links and average most
// often; if none does, the row with the highest utilisation.
const Utilised& likeliest(const Utilisation& utilisation) {
  const Utilised* best = &utilisation.rows.front();
  const auto period = [](const Utilised& row) {
    return row.strategy.local_sgd.enabled ? row.strategy.local_sgd.period : 0;
  };
  for (const Utilised& row : utilisation.rows) {
    const bool enough = row.given >= utilisation.target;
    const bool was_enough = best->given >= utilisation.target;
    const bool better = enough == was_enough
                            ? enough ? period(row) < period(*best) : row.given > best->given
                            : enough;
    if (better) best = &row;
  }
  return *best;
}

// Returns sentences on plain training, on the best row for the given links, on the least need.
std::vector<std::string> verdicts_of(const Utilisation& utilisation) {
  const std::string target = share_text(100 * utilisation.target);
  const Utilised& plain = utilisation.rows.front();
  std::vector<std::string> verdicts;
  verdicts.push_back(
      "Plain training is busy " + share_text(100 * plain.given) + " of the time here" +
      (plain.needed ? "; " + target + " needs " + rate_text(*plain.needed) + " between the groups."
                    : "; no bandwidth makes it " + target + "."));
  const Utilised* least = nullptr;
  for (const Utilised& row : utilisation.rows) {
    if (row.needed && (least == nullptr || *row.needed < *least->needed)) least = &row;
  }
  const Utilised& here = likeliest(utilisation);
  if (&here != &plain) {
    verdicts.push_back(
        named(here) + " is busy " + share_text(100 * here.given) + " of the time here: " +
        (here.given >= utilisation.target ? "nothing that is busy enough averages more often."
                                          : "nothing is busier."));
  }
  if (least != nullptr && least != &plain) {
    verdicts.push_back(named(*least) + " needs least for " + target + ": " +
                       rate_text(*least->needed) + ".");
  }
  if (utilisation.rows.size() > 1) {
    verdicts.emplace_back(
        "All but plain change the training: what that does to accuracy is not predicted.");
  }
  return verdicts;
}

Page page_of(const Utilisation& utilisation) {
  Page page;
  page.title = "Utilisation: " + one_line(utilisation.scenario.name);
  page.add("Workload " + one_line(utilisation.scenario.workload.name) + ", cluster " +
           one_line(utilisation.scenario.cluster.name) + ": " + setting_of(utilisation) + ".");
  page.add(rows_of(utilisation));
  for (const std::string& verdict : verdicts_of(utilisation)) page.add(verdict);
  const Utilised& here = likeliest(utilisation);
  if (here.strategy.local_sgd.enabled) {
    page.add(named(here) + " as a strategy of a scenario:");
    page.add(Listing{"json", keys_of(utilisation, here).dump(2) + "\n"});
  }
  page.add(
      "Utilisation is a step of one group by itself over a step of all; needed is the rate of a "
      "group's port at which it is " +
      share_text(100 * utilisation.target) + ".");
  page.add(std::string("All figures are predicted by the model executor, none is measured."));
  return page;
}

Json json_of_utilisation(const Utilisation& utilisation) {
  Json json;
  json["target_percent"] = exact(100 * utilisation.target);
  json["groups"] = utilisation.groups;
  json["ranks"] = utilisation.ranks;
  json["link"] = {{"name", utilisation.link.name},
                  {"bandwidth_gbps", exact(rated(utilisation.link) / kGigabitPerSecond)},
                  {"latency_s", exact(utilisation.link.latency)}};
  json["rows"] = json_of(rows_of(utilisation));
  for (std::size_t r = 0; r < utilisation.rows.size(); ++r) {
    Json& curve = json["rows"][r]["curve"] = Json::array();
    for (std::size_t i = 0; i < utilisation.bandwidths.size(); ++i) {
      curve.push_back({{"bandwidth_gbps", exact(utilisation.bandwidths[i] / kGigabitPerSecond)},
                       {"utilisation_percent", exact(100 * utilisation.rows[r].curve[i])}});
    }
  }
  json["verdicts"] = verdicts_of(utilisation);
  json["provenance"] = {{"executor", "model"},
                        {"workload", utilisation.scenario.workload.name},
                        {"cluster", utilisation.scenario.cluster.name}};
  return json;
}

}  // namespace

chart::Figure utilisation_figure(const Utilisation& utilisation) {
  chart::Figure figure;
  figure.id = "s-utilisation";
  figure.title =
      "Utilisation over the bandwidth between groups: " + one_line(utilisation.scenario.name);
  figure.note = setting_of(utilisation) + ". A period of 100 steps, and the scenario's own.";
  figure.across = {"rate of a group's port", chart::Unit::kBytesPerSecond, true};
  figure.up = {"utilisation", chart::Unit::kPercent, false, true};
  int colour = 0;
  for (const Utilised& row : utilisation.rows) {
    const LocalSgd& local = row.strategy.local_sgd;
    constexpr std::int64_t kShown = 100;
    const bool own = find_strategy(utilisation.scenario, row.strategy.name) != nullptr;
    if (local.enabled && local.period != kShown && !own) continue;
    chart::Series series;
    series.name = one_line(row.strategy.name);
    if (local.fragments > 1) series.name += ", " + std::to_string(local.fragments) + " fragments";
    series.colour = colour++;
    for (std::size_t i = 0; i < utilisation.bandwidths.size(); ++i) {
      series.points.push_back({utilisation.bandwidths[i], 100 * row.curve[i]});
    }
    figure.series.push_back(std::move(series));
  }
  figure.rules = {{"as given", true, rated(utilisation.link), chart::kGrey},
                  {"asked", false, 100 * utilisation.target, chart::kGrey}};
  return figure;
}

Answer answer_of(const Utilisation& utilisation) {
  return make_answer("tune", utilisation.scenario.name, utilisation, page_of, rows_of,
                     json_of_utilisation, utilisation.warnings, [](const Utilisation& of) {
                       return std::vector<Illustration>{{utilisation_figure(of)}};
                     });
}

}  // namespace syncline::reports
