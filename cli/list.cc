#include <memory>
#include <nlohmann/json.hpp>

#include "cli/executors.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/operators/architecture.h"

namespace syncline::cli {
namespace {

// What can be written in one place of a scenario or behind one option.
struct Choice {
  std::string name;
  std::string collectives;  // of an algorithm; otherwise empty
  std::string summary;
};

struct Choices {
  std::string kind;     // "algorithm"
  std::string heading;  // of what the summaries say
  std::vector<Choice> rows;
};

std::string kinds_of(const collective::Algorithm& algorithm) {
  constexpr int kRanks = 8;  // a power of two fits whatever can fit
  std::string kinds;
  for (const auto kind : collective::kAllCollectiveKinds) {
    if (!algorithm.fits(kind, kRanks)) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(collective::to_string(kind));
  }
  return kinds;
}

Choices algorithm_choices_listed() {
  Choices choices{"algorithm", "what it does", {}};
  for (const auto& row : collective::algorithms()) {
    choices.rows.push_back({std::string(row.name), kinds_of(row), std::string(row.summary)});
  }
  choices.rows.push_back({std::string(collective::kNcclName),
                          kinds_of(*collective::find_algorithm("ring")),
                          std::string(collective::kNcclSummary)});
  return choices;
}

// The rows of a table by their names and summaries.
template <typename Rows>
Choices choices_of(const char* kind, const char* heading, const Rows& rows) {
  Choices choices{kind, heading, {}};
  for (const auto& row : rows) {
    choices.rows.push_back({std::string(row.name), "", std::string(row.summary)});
  }
  return choices;
}

std::vector<Choices> everything() {
  auto executors = choices_of("executor", "what it does", predictors());
  executors.rows.push_back(
      {"host", "", "moves real floats in memory: the truth for values and bytes, in tests"});
  return {algorithm_choices_listed(),
          choices_of("codec", "what it does", compress::codecs()),
          std::move(executors),
          choices_of("backend", "what it does", backends()),
          choices_of("dialect", "what it reads", dialect::dialects()),
          choices_of("architecture", "operators generated", operators::architectures())};
}

reports::Grid grid_of(const Choices& choices) {
  reports::Grid grid{{{choices.kind, false}}, {}};
  const bool collectives = !choices.rows.front().collectives.empty();
  if (collectives) grid.columns.push_back({"collectives", false});
  grid.columns.push_back({choices.heading, false});
  for (const auto& row : choices.rows) {
    std::vector<std::string> cells{row.name};
    if (collectives) cells.push_back(row.collectives);
    cells.push_back(row.summary);
    grid.lines.push_back({std::move(cells), false});
  }
  return grid;
}

reports::Page list_page() {
  reports::Page page{"What a scenario and the options can name", "", {}};
  for (const auto& choices : everything()) page.blocks.emplace_back(grid_of(choices));
  return page;
}

reports::CsvTable list_csv() {
  reports::CsvTable table{{"kind", "name", "collectives", "summary"}, {}};
  for (const auto& choices : everything()) {
    for (const auto& row : choices.rows) {
      table.lines.push_back({choices.kind, row.name, row.collectives, row.summary});
    }
  }
  return table;
}

Json list_json() {
  Json json = Json::object();
  for (const auto& choices : everything()) {
    Json& list = json[choices.kind] = Json::array();
    for (const auto& row : choices.rows) {
      list.push_back({{"name", row.name}, {"summary", row.summary}});
      if (!row.collectives.empty()) list.back()["collectives"] = row.collectives;
    }
  }
  return json;
}

}  // namespace

VerbAction add_list(CLI::App& app) {
  auto format = std::make_shared<reports::Format>(reports::Format::kTable);
  auto* verb = app.add_subcommand(
      "list", "List algorithms, codecs, executors, backends, dialects and architectures");
  add_format(*verb, *format);
  return [format] {
    print({"list", "", list_page, list_csv, list_json}, *format);
    return 0;
  };
}

}  // namespace syncline::cli
