#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "cli/backends.h"
#include "cli/modules.h"
#include "cli/output.h"
#include "cli/predictors.h"
#include "cli/verbs.h"
#include "core/algorithm.h"
#include "core/base/error.h"
#include "core/codec.h"
#include "core/collective/nccl.h"
#include "core/fabric/kinds.h"
#include "formats/dialect/dialect.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/installed.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::cli {
namespace {

using reports::copied_number;

struct Choice {
  std::string name;
  std::string summary;
  std::string collectives = {};  // an algorithm's; otherwise empty
};

// The words allowed in one place of a scenario or after one option.
struct Choices {
  std::string kind;     // "algorithm"
  std::string heading;  // heading of the summaries
  std::vector<Choice> rows = {};
};

// Returns the rows of a table by their names and summaries, each with the text of `more`.
template <typename Rows, typename More>
Choices named_choices(const char* kind, const char* heading, const Rows& rows, More more) {
  Choices choices{kind, heading};
  for (const auto& row : rows) {
    choices.rows.push_back({std::string(row.name), std::string(row.summary) + more(row)});
  }
  return choices;
}

template <typename Rows>
Choices named_choices(const char* kind, const char* heading, const Rows& rows) {
  return named_choices(kind, heading, rows, [](const auto&) { return ""; });
}

std::string kinds_of(const collective::Algorithm& algorithm) {
  constexpr int kRanks = 8;  // a power of two fits all that can fit
  std::vector<std::string> kinds;
  for (const auto kind : collective::kAllCollectiveKinds) {
    if (algorithm.fits(kind, kRanks)) kinds.emplace_back(collective::to_string(kind));
  }
  return reports::join(kinds);
}

Choices algorithms_listed() {
  Choices choices{"algorithm", "what it does"};
  const auto add = [&](std::string_view name, std::string_view summary,
                       const collective::Algorithm& kinds) {
    choices.rows.push_back({std::string(name), std::string(summary), kinds_of(kinds)});
  };
  for (const auto& row : collective::algorithms()) add(row.name, row.summary, row);
  add(collective::kNcclName, collective::kNcclSummary, *collective::find_algorithm("ring"));
  const auto& direct = *collective::all_to_all();
  add(direct.name, direct.summary, direct);
  return choices;
}

Choices executors_listed() {
  Choices executors = named_choices("executor", "what it does", predictors());
  executors.rows.push_back(
      {"host", "moves real floats in memory: the reference for values and bytes, in tests"});
  return executors;
}

// Returns the number of parameters, for architectures with a fixed size.
std::string parameters_of(const operators::Architecture& row) {
  if (row.shaped) return "";
  const auto count = operators::parameters_of(operators::generate(row, {}));
  return ": " + reports::count_text(count) + " parameters";
}

std::string rates_of(const hardware::KnownDevice& row) {
  return ": " + copied_number(row.flops / 1e12) + " TFLOP/s, " +
         copied_number(row.half_flops / 1e12) + " in half precision, " +
         copied_number(row.memory / kGigabytePerSecond) + " GB/s";
}

std::string links_of(const hardware::KnownNode& row) {
  return ": " + copied_number(row.inside.bandwidth / kGigabytePerSecond) + " GB/s per GPU, " +
         std::to_string(row.outside.count) + " x " +
         copied_number(row.outside.bandwidth / kGigabitPerSecond) + " Gbit/s";
}

// Returns the first clause of a file's description.
std::string first_clause(const std::string& about) {
  constexpr std::size_t kLongest = 64;
  const std::string clause = about.substr(0, about.find_first_of(";:.("));
  return clause.size() <= kLongest ? clause
                                   : clause.substr(0, clause.rfind(' ', kLongest)) + " ...";
}

// Returns the files of an installed folder.
Choices files_listed(const std::string& kind) {
  const std::string folder = scenarios_folder() + "/" + kind + "s";
  Choices choices{kind, folder + "/NAME.json"};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    const Json json = read_json_file(entry->path().string());
    const bool says = json.is_object() && json.contains("about") && json["about"].is_string();
    choices.rows.push_back({entry->path().stem().string(),
                            says ? first_clause(json["about"].get<std::string>()) : ""});
  }
  std::ranges::sort(choices.rows, {}, &Choice::name);
  return choices;
}

// Returns all kinds except empty ones, such as files that are not installed.
std::vector<Choices> everything() {
  std::vector<Choices> all{
      algorithms_listed(),
      named_choices("codec", "what it does", compress::codecs()),
      executors_listed(),
      named_choices("backend", "what it does", backends()),
      named_choices("dialect", "what it reads", dialect::dialects()),
      named_choices("architecture", "operators generated", operators::architectures(),
                    parameters_of),
      named_choices("model", "sizes known by name, of type", module_rows("imports").models),
      named_choices("device", "rated rates", hardware::devices(), rates_of),
      named_choices("node", "a direction, as rated", hardware::nodes(), links_of),
      named_choices("fabric", "what joins the nodes", fabric::known_fabrics()),
      named_choices("import", "what it reads", module_rows("imports").formats),
      files_listed("workload"),
      files_listed("cluster")};
  std::erase_if(all, [](const Choices& choices) { return choices.rows.empty(); });
  return all;
}

// Keeps only one kind, given by its name or a common word for it, perhaps in the plural.
void keep_kind(const std::string& given, std::vector<Choices>& all) {
  std::string word = given.ends_with('s') ? given.substr(0, given.size() - 1) : given;
  if (word == "gpu") word = "device";
  std::vector<std::string> kinds;
  for (const Choices& choices : all) kinds.push_back(choices.kind);
  if (std::ranges::find(kinds, word) == kinds.end()) {
    std::vector<std::string> known = kinds;
    known.emplace_back("gpu");
    throw InputError("list: found '" + given + "', the kinds are " + reports::join(kinds) +
                     did_you_mean(word, known));
  }
  std::erase_if(all, [&](const Choices& choices) { return choices.kind != word; });
}

reports::Grid grid_of(const Choices& choices, const std::string& heading,
                      std::string Choice::*column) {
  reports::Grid grid{{{choices.kind, false}, {heading, false}}, {}};
  for (const auto& row : choices.rows) grid.lines.push_back({{row.name, row.*column}, false});
  return grid;
}

reports::Page page_of(const std::vector<Choices>& all) {
  reports::Page page{"What a scenario and the options can name", "", {}};
  for (const auto& choices : all) {
    page.add(grid_of(choices, choices.heading, &Choice::summary));
    // Next to each other the two would be wider than a terminal.
    if (!choices.rows.front().collectives.empty()) {
      page.add(grid_of(choices, "collectives", &Choice::collectives));
    }
  }
  return page;
}

reports::Table rows_of(const std::vector<Choices>& all) {
  using reports::data_column;
  reports::Table rows{reports::columns(data_column("kind"), data_column("name"),
                                       data_column("collectives"), data_column("summary"))};
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

VerbAction add_list(CLI::App& verb) {
  auto output = std::make_shared<Output>();
  auto kind = std::make_shared<std::string>();
  verb.add_option("kind", *kind, "one kind, such as node, device or architecture (default: all)");
  add_format(verb, *output);
  return [output, kind] {
    std::vector<Choices> all = everything();
    if (!kind->empty()) keep_kind(*kind, all);
    print(reports::make_answer("list", "", all, page_of, rows_of, json_of), *output);
    return 0;
  };
}

}  // namespace syncline::cli
