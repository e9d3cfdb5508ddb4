#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "core/executor.h"
#include "formats/input/document.h"
#include "formats/text/installed.h"
#include "reports/format.h"
#include "reports/validation_report.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/prior_fit.h"
#include "studies/fidelity/fidelity.h"
#include "studies/study/study.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;

struct FidelityOptions {
  std::string folder = scenarios_folder();
  std::vector<std::string> sets;
  Output output;
  std::vector<std::string> live;
};

// A published table. Most are scenarios in published/, one set per folder. Published logs of
// nccl-tests are compared according to a list in their folder.
struct TableFile {
  std::string set;
  fs::path path;
  enum Kind { kScenario, kLogs, kNetworks, kLive } kind = kScenario;
};

constexpr const char* kLogSet = "nccl-tests";
// The same logs, predicted from the data sheets of their machines.
constexpr const char* kNetworkSet = "networks";
// Which of two settings is faster, and the memory of a GPU: answers of their own.
constexpr const char* kPairSet = "pairs";
constexpr const char* kMemorySet = "memory";
// Results of `syncline validate`: on CPUs, and on GPUs next to the tables of published/gpu.
constexpr const char* kLiveSets[] = {"live", "gpu"};

// Returns the JSON files below a folder. Throws InputError for an unreadable file or a dead link:
// otherwise a table would be missing silently.
std::vector<fs::path> entries_below(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  const auto check = [&error](const fs::path& path) {
    if (error) throw InputError(path.generic_string() + ": " + error.message());
  };
  fs::recursive_directory_iterator entry(folder, error);
  check(folder);
  for (fs::path at = folder; entry != fs::recursive_directory_iterator();) {
    at = entry->path();
    if (at.extension() == ".json") {
      const bool file = entry->is_regular_file(error);
      check(at);
      if (file) paths.push_back(at);
    }
    entry.increment(error);
    check(at);
  }
  return paths;
}

// Returns all tables below the scenarios folder, set by set, in alphabetical order.
std::vector<TableFile> table_files(const std::string& folder) {
  const fs::path published = fs::path(folder) / "published";
  std::error_code error;
  if (!fs::is_directory(published, error)) {
    throw InputError(
        published.generic_string() +
        ": no such folder; give Syncline's scenarios folder, with the published tables, "
        "by --from");
  }
  std::vector<TableFile> files;
  for (const auto& path : entries_below(published)) {
    const fs::path below = path.parent_path().lexically_relative(published);
    files.push_back({below == "." ? "documents" : below.generic_string(), path});
  }
  const fs::path logs = fs::path(folder) / "measured" / "nccl_tests.json";
  if (fs::exists(logs, error)) files.push_back({kLogSet, logs, TableFile::kLogs});
  const fs::path networks = fs::path(folder) / "measured" / "networks.json";
  if (fs::exists(networks, error)) files.push_back({kNetworkSet, networks, TableFile::kNetworks});
  for (const char* set : kLiveSets) {
    const fs::path live = fs::path(folder) / "measured" / set;
    if (!fs::is_directory(live, error)) continue;
    for (const auto& path : entries_below(live)) files.push_back({set, path, TableFile::kLive});
  }
  std::sort(files.begin(), files.end(), [](const TableFile& a, const TableFile& b) {
    return std::tie(a.set, a.path) < std::tie(b.set, b.path);
  });
  return files;
}

// Returns the tables of the requested sets, or all.
std::vector<TableFile> chosen(std::vector<TableFile> files, const std::vector<std::string>& sets) {
  std::vector<std::string> known;
  for (const auto& file : files) {
    if (known.empty() || known.back() != file.set) known.push_back(file.set);
  }
  known.insert(known.end(), {kPairSet, kMemorySet});
  for (const auto& set : sets) {
    if (std::find(known.begin(), known.end(), set) == known.end()) {
      throw InputError("--set " + set + ": no such set, there are " + reports::join_and(known));
    }
  }
  if (!sets.empty()) {
    std::erase_if(files, [&](const TableFile& file) {
      return std::find(sets.begin(), sets.end(), file.set) == sets.end();
    });
  }
  return files;
}

measure::Report run_file(const fs::path& path) {
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  study.interrupted = is_interrupted;
  return measure::run_study(input::read_document(path.string()), study);
}

// Returns the tables of one file, predicted again; none after an interrupt.
std::vector<measure::FidelityTable> tables_of(const TableFile& file) {
  std::vector<measure::FidelityTable> tables;
  if (file.kind == TableFile::kLive) {
    tables.push_back(measure::table_of(measure::read_validation(file.path.string())));
  } else if (file.kind == TableFile::kNetworks) {
    tables = calibrate::prior_fidelity(file.path.string());
  } else if (file.kind == TableFile::kLogs) {
    Progress progress("syncline fidelity: logs");
    tables = calibrate::log_fidelity(
        file.path.string(),
        [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); },
        is_interrupted);
  } else {
    tables.push_back(measure::table_of(run_file(file.path)));
    tables.back().file = file.path.generic_string();
    // A table that was cut short would show an error that is not its own.
    if (is_interrupted()) tables.clear();
  }
  for (auto& table : tables) table.set = file.set;
  std::erase_if(tables, [](const measure::FidelityTable& table) {
    return table.calibrated.empty() && table.predicted.empty();
  });
  return tables;
}

int run_live(const FidelityOptions& options) {
  std::vector<measure::LiveFile> files;
  for (const auto& name : options.live) files.push_back(measure::read_validation(name));
  write_answer({}, reports::answer_of(files), options.output);
  return 0;
}

// The list that ships, and the rows of the published tables.
int run_pairs(const FidelityOptions& options, const std::vector<TableFile>& files) {
  const fs::path list = fs::path(options.folder) / "measured" / "pairs.json";
  std::vector<measure::PairCase> pairs = measure::published_pairs(list.string());
  {
    Progress progress("syncline fidelity");
    std::size_t done = 0;
    for (const TableFile& file : files) {
      progress.update(++done, files.size());
      if (file.kind != TableFile::kScenario) continue;
      for (auto& pair : measure::pairs_of(run_file(file.path), file.set)) {
        pairs.push_back(std::move(pair));
      }
      if (is_interrupted()) return kInterruptedExit;
    }
  }
  write_answer({}, reports::answer_of(pairs), options.output);
  return 0;
}

int run_memory(const FidelityOptions& options) {
  const fs::path list = fs::path(options.folder) / "measured" / "memory.json";
  const auto cases = measure::published_memory(list.string());
  write_answer({}, reports::answer_of(cases), options.output);
  return 0;
}

int run(const FidelityOptions& options) {
  expect_writable({options.output.html});
  if (!options.live.empty()) return run_live(options);
  for (const char* own : {kPairSet, kMemorySet}) {
    if (std::ranges::find(options.sets, own) == options.sets.end()) continue;
    if (options.sets.size() > 1) {
      throw InputError("--set " + std::string(own) + ": is an answer of its own: ask for it alone");
    }
    catch_interrupts(kInterruptWait);
    return own == std::string_view(kPairSet) ? run_pairs(options, table_files(options.folder))
                                             : run_memory(options);
  }
  const auto files = chosen(table_files(options.folder), options.sets);
  catch_interrupts(kInterruptWait);
  std::vector<measure::FidelityTable> tables;
  std::size_t done = 0;
  {
    Progress progress("syncline fidelity");
    for (const auto& file : files) {
      for (auto& table : tables_of(file)) tables.push_back(std::move(table));
      if (is_interrupted()) break;
      progress.update(++done, files.size());
    }
  }
  if (is_interrupted()) {
    std::cerr << "syncline: interrupted: " << done << " of " << files.size()
              << " files were read\n";
  }
  write_answer({}, reports::answer_of(tables), options.output);
  return is_interrupted() ? kInterruptedExit : 0;
}

}  // namespace

VerbAction add_fidelity(CLI::App& verb) {
  auto options = std::make_shared<FidelityOptions>();
  verb.add_option("--set", options->sets,
                  "predict this set of tables only, such as papers (default: all)");
  verb.add_option("--from", options->folder,
                  "scenarios folder (default: ./scenarios, else the installed one)")
      ->type_name("FOLDER");
  add_file(verb, "--live", options->live,
           "print reports of syncline validate (-o) as one table, instead");
  add_format(verb, options->output);
  add_html(verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
