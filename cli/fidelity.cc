#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/measure/fidelity.h"
#include "core/measure/study.h"
#include "reports/fidelity.h"
#include "reports/format.h"
#include "reports/markdown.h"
#include "reports/table.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t interrupts = 0;

void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts < 2) return;
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

struct FidelityOptions {
  std::string folder = "scenarios/published";
  std::vector<std::string> sets;
  std::string format = "table";
};

// A set is a folder of published tables, by its path below `folder`.
struct TableFile {
  std::string set;
  fs::path path;
};

// All tables, set by set, in alphabetical order.
std::vector<TableFile> table_files(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, error);
  if (error) {
    throw InputError(folder +
                     ": no such folder; name a folder of published tables with --from, such as "
                     "scenarios/published in Syncline's sources");
  }
  std::vector<TableFile> files;
  for (const auto& entry : walk) {
    if (!entry.is_regular_file() || entry.path().extension() != ".json") continue;
    const fs::path below = fs::relative(entry.path().parent_path(), folder);
    files.push_back({below == "." ? "documents" : below.generic_string(), entry.path()});
  }
  std::sort(files.begin(), files.end(), [](const TableFile& a, const TableFile& b) {
    return std::tie(a.set, a.path) < std::tie(b.set, b.path);
  });
  return files;
}

// Those of the sets asked for, or all.
std::vector<TableFile> chosen(std::vector<TableFile> files, const std::vector<std::string>& sets) {
  std::vector<std::string> known;
  for (const auto& file : files) {
    if (known.empty() || known.back() != file.set) known.push_back(file.set);
  }
  for (const auto& set : sets) {
    if (std::find(known.begin(), known.end(), set) == known.end()) {
      throw InputError("--set " + set + ": no such set, there are " + join_and(known));
    }
  }
  if (!sets.empty()) {
    std::erase_if(files, [&](const TableFile& file) {
      return std::find(sets.begin(), sets.end(), file.set) == sets.end();
    });
  }
  return files;
}

FidelityTable table_in(const TableFile& file) {
  StudyOptions study;
  study.make_executor = make_model_executor;
  study.interrupted = [] { return interrupts > 0; };
  FidelityTable table = table_of(run_study(read_document(file.path.string()), study));
  table.set = file.set;
  table.file = file.path.generic_string();
  return table;
}

int run(const FidelityOptions& options) {
  const auto files = chosen(table_files(options.folder), options.sets);
  Progress progress("syncline fidelity");
  std::signal(SIGINT, on_interrupt);
  std::vector<FidelityTable> tables;
  for (const auto& file : files) {
    FidelityTable table = table_in(file);
    // A table that was cut short would show an error that is not its own.
    if (interrupts > 0) break;
    if (!table.calibrated.empty() || !table.predicted.empty()) tables.push_back(std::move(table));
    progress.update(static_cast<std::size_t>(&file - files.data()) + 1, files.size());
  }
  if (interrupts > 0) {
    std::cerr << "syncline: interrupted: " << tables.size() << " of " << files.size()
              << " tables\n";
  }
  if (options.format == "json") {
    std::cout << fidelity_json(tables);
  } else {
    const Page page = fidelity_page(tables);
    std::cout << (options.format == "markdown" ? markdown_page(page) : text_page(page));
  }
  constexpr int kInterrupted = 130;
  return interrupts > 0 ? kInterrupted : 0;
}

}  // namespace

VerbAction add_fidelity(CLI::App& app) {
  auto options = std::make_shared<FidelityOptions>();
  auto* verb = app.add_subcommand(
      "fidelity", "Reproduce published measurements and print how wrong the predictions are");
  verb->add_option("--set", options->sets,
                   "only this set of tables (a folder below --from; \"documents\": the files "
                   "directly in it); may be repeated");
  verb->add_option("--from", options->folder, "folder of published tables")->capture_default_str();
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"table", "text", "markdown", "json"}))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace syncline
