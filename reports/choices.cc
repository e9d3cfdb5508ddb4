#include "reports/choices.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/collective/algorithm.h"
#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/fabric/kinds.h"
#include "core/hardware/device.h"
#include "core/installed.h"
#include "core/job/format.h"
#include "core/json/text.h"
#include "core/operators/architecture.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string shortest(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// 6738415616 as 6,738,415,616.
std::string with_commas(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string kinds_of(const collective::Algorithm& algorithm) {
  constexpr int kRanks = 8;  // a power of two fits whatever can fit
  std::string kinds;
  for (const auto kind : collective::kAllCollectiveKinds) {
    if (!algorithm.fits(kind, kRanks)) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(collective::to_string(kind));
  }
  return kinds;
}

Choices algorithms_listed() {
  Choices choices{"algorithm", "what it does", {}};
  for (const auto& row : collective::algorithms()) {
    choices.rows.push_back({std::string(row.name), kinds_of(row), std::string(row.summary)});
  }
  choices.rows.push_back({std::string(collective::kNcclName),
                          kinds_of(*collective::find_algorithm("ring")),
                          std::string(collective::kNcclSummary)});
  const auto& direct = *collective::all_to_all();
  choices.rows.push_back({std::string(direct.name), kinds_of(direct), std::string(direct.summary)});
  return choices;
}

// With the parameters of those that have a size.
Choices architectures_listed() {
  Choices choices{"architecture", "operators generated", {}};
  for (const auto& row : operators::architectures()) {
    std::string summary(row.summary);
    if (!row.shaped) {
      summary += ": " + with_commas(operators::parameters_of(operators::generate(row, {}))) +
                 " parameters";
    }
    choices.rows.push_back({std::string(row.name), "", std::move(summary)});
  }
  return choices;
}

Choices devices_listed() {
  Choices choices{"device", "rated rates", {}};
  for (const auto& row : hardware::devices()) {
    choices.rows.push_back({std::string(row.name), "",
                            std::string(row.summary) + ": " + shortest(row.flops / 1e12) +
                                " TFLOP/s, " + shortest(row.half_flops / 1e12) +
                                " in half precision, " + shortest(row.memory / kGigabytePerSecond) +
                                " GB/s"});
  }
  return choices;
}

Choices nodes_listed() {
  Choices choices{"node", "a direction, as rated", {}};
  for (const auto& row : hardware::nodes()) {
    choices.rows.push_back(
        {std::string(row.name), "",
         std::string(row.summary) + ": " + shortest(row.inside.bandwidth / kGigabytePerSecond) +
             " GB/s a GPU, " + std::to_string(row.outside.count) + " x " +
             shortest(row.outside.bandwidth / kGigabitPerSecond) + " Gbit/s a node"});
  }
  return choices;
}

Choices fabrics_listed() {
  Choices choices{"fabric", "what joins the nodes", {}};
  for (const auto& row : fabric::known_fabrics()) {
    choices.rows.push_back({std::string(row.name), "", std::string(row.summary)});
  }
  return choices;
}

// The first clause of what a file says about itself.
std::string first_clause(const std::string& about) {
  constexpr std::size_t kLongest = 64;
  const std::string clause = about.substr(0, about.find_first_of(";:.("));
  return clause.size() <= kLongest ? clause
                                   : clause.substr(0, clause.rfind(' ', kLongest)) + " ...";
}

// The files of a folder that ships.
Choices files_listed(const std::string& kind, const std::string& folder) {
  Choices choices{kind, folder + "/NAME.json", {}};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    const Json json = read_json_file(entry->path().string());
    const bool says = json.is_object() && json.contains("about") && json["about"].is_string();
    choices.rows.push_back({entry->path().stem().string(), "",
                            says ? first_clause(json["about"].get<std::string>()) : ""});
  }
  std::sort(choices.rows.begin(), choices.rows.end(),
            [](const Choice& a, const Choice& b) { return a.name < b.name; });
  return choices;
}

// Kinds of which there is nothing, as of files that are not installed, are left out.
std::vector<Choices> everything(const Choices& executors, const Choices& backends) {
  std::vector<Choices> all{algorithms_listed(),
                           choices_of("codec", "what it does", compress::codecs()),
                           executors,
                           backends,
                           choices_of("dialect", "what it reads", dialect::dialects()),
                           architectures_listed(),
                           devices_listed(),
                           nodes_listed(),
                           fabrics_listed(),
                           choices_of("import", "what it reads", job::formats()),
                           files_listed("workload", scenarios_folder() + "/workloads"),
                           files_listed("cluster", scenarios_folder() + "/clusters")};
  std::erase_if(all, [](const Choices& choices) { return choices.rows.empty(); });
  return all;
}

Grid grid_of(const Choices& choices, const std::string& heading, std::string Choice::*said) {
  Grid grid{{{choices.kind, false}, {heading, false}}, {}};
  for (const auto& row : choices.rows) grid.lines.push_back({{row.name, row.*said}, false});
  return grid;
}

Page page_of(const std::vector<Choices>& all) {
  Page page{"What a scenario and the options can name", "", {}};
  for (const auto& choices : all) {
    page.blocks.emplace_back(grid_of(choices, choices.heading, &Choice::summary));
    // Beside each other the two would be wider than a terminal.
    if (!choices.rows.front().collectives.empty()) {
      page.blocks.emplace_back(grid_of(choices, "collectives", &Choice::collectives));
    }
  }
  return page;
}

Table rows_of(const std::vector<Choices>& all) {
  Table rows{columns(kept("kind"), kept("name"), kept("collectives"), kept("summary"))};
  for (const auto& choices : all) {
    for (const auto& row : choices.rows) {
      rows.add(choices.kind, row.name, row.collectives, row.summary);
    }
  }
  return rows;
}

Json json_of(const std::vector<Choices>& all) {
  Json json = Json::object();
  for (const auto& choices : all) {
    Json& list = json[choices.kind] = Json::array();
    for (const auto& row : choices.rows) {
      list.push_back({{"name", row.name}, {"summary", row.summary}});
      if (!row.collectives.empty()) list.back()["collectives"] = row.collectives;
    }
  }
  return json;
}

}  // namespace

Answer list_of_choices(const Choices& executors, const Choices& backends) {
  const auto all = std::make_shared<const std::vector<Choices>>(everything(executors, backends));
  return {"list", "", [all] { return page_of(*all); }, [all] { return rows_of(*all); },
          [all] { return json_of(*all); }};
}

}  // namespace syncline::reports
