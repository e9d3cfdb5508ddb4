#include "cli/fidelity_tables.h"

#include <algorithm>

#include "cli/exit.h"
#include "cli/progress.h"
#include "core/calibrate/log_fidelity.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/measure/study.h"
#include "core/measure/validation_file.h"
#include "core/run/model_executor.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogSet = "nccl-tests";
// What `syncline validate` measured, kept in measured/live.
constexpr const char* kLiveSet = "live";

}  // namespace

std::vector<TableFile> table_files(const std::string& folder) {
  const fs::path published = fs::path(folder) / "published";
  std::error_code error;
  fs::recursive_directory_iterator walk(published, error);
  if (error) {
    throw InputError(published.generic_string() +
                     ": no such folder; name with --from the scenarios folder of Syncline's "
                     "sources, which holds the published tables");
  }
  std::vector<TableFile> files;
  for (const auto& entry : walk) {
    if (!entry.is_regular_file() || entry.path().extension() != ".json") continue;
    const fs::path below = fs::relative(entry.path().parent_path(), published);
    files.push_back({below == "." ? "documents" : below.generic_string(), entry.path()});
  }
  const fs::path logs = fs::path(folder) / "measured" / "nccl_tests.json";
  if (fs::exists(logs)) files.push_back({kLogSet, logs, true});
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "measured" / "live", error)) {
    if (entry.path().extension() == ".json") files.push_back({kLiveSet, entry.path(), false, true});
  }
  std::sort(files.begin(), files.end(), [](const TableFile& a, const TableFile& b) {
    return std::tie(a.set, a.path) < std::tie(b.set, b.path);
  });
  return files;
}

std::vector<TableFile> chosen(std::vector<TableFile> files, const std::vector<std::string>& sets) {
  std::vector<std::string> known;
  for (const auto& file : files) {
    if (known.empty() || known.back() != file.set) known.push_back(file.set);
  }
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

std::vector<measure::FidelityTable> tables_of(const TableFile& file) {
  std::vector<measure::FidelityTable> tables;
  if (file.live) {
    tables.push_back(measure::table_of(measure::read_validation(file.path.string())));
  } else if (file.logs) {
    Progress progress("syncline fidelity: logs");
    tables = calibrate::log_fidelity(
        file.path.string(),
        [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); }, interrupted);
  } else {
    measure::StudyOptions study;
    study.make_executor = run::make_model_executor;
    study.interrupted = interrupted;
    tables.push_back(
        measure::table_of(measure::run_study(input::read_document(file.path.string()), study)));
    tables.back().file = file.path.generic_string();
    // A table that was cut short would show an error that is not its own.
    if (interrupted()) tables.clear();
  }
  for (auto& table : tables) table.set = file.set;
  std::erase_if(tables, [](const measure::FidelityTable& table) {
    return table.calibrated.empty() && table.predicted.empty();
  });
  return tables;
}

}  // namespace syncline::cli
