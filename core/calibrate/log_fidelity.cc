#include "core/calibrate/log_fidelity.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/calibrate/calibration.h"
#include "core/calibrate/log_files.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/json/reader.h"

namespace syncline::calibrate {
namespace {

struct Comparison {
  std::string name;
  std::vector<std::string> calibrate, predict, alone;
};

struct List {
  Bytes from_bytes = 0;
  std::vector<Comparison> comparisons;
};

std::vector<std::string> files_at(Reader& reader, const char* key, const std::string& folder) {
  std::vector<std::string> files;
  if (!reader.has(key)) return files;
  for (const Json& name : reader.array(key)) {
    if (!name.is_string()) reader.fail(key, "found " + describe(name) + ", expected file names");
    files.push_back(folder + "/" + name.get<std::string>());
  }
  return files;
}

List read_list(const std::string& path) {
  const input::Document document = input::read_document(path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Reader reader(document.root, path, "");
  List list;
  list.from_bytes = reader.integer_or("from_bytes", 0, 0, Bytes{1} << 40);
  for (Reader& item : reader.objects("tables")) {
    Comparison comparison;
    comparison.name = item.text("name");
    comparison.calibrate = files_at(item, "calibrate", folder);
    comparison.predict = files_at(item, "predict", folder);
    comparison.alone = files_at(item, "each_alone", folder);
    item.finish();
    if (comparison.alone.empty() && comparison.calibrate.empty()) {
      item.fail("calibrate", "missing, as is each_alone");
    }
    list.comparisons.push_back(std::move(comparison));
  }
  reader.finish();
  return list;
}

std::vector<double> errors_in_percent(const ComparedTable& table, Bytes from_bytes) {
  std::vector<double> errors;
  for (const auto& row : table.rows) {
    if (row.bytes >= from_bytes) errors.push_back((row.predicted / row.measured - 1) * 100);
  }
  return errors;
}

// What the tool says against its own forecast of a table.
std::string doubts(const ComparedTable& table, Bytes from_bytes) {
  if (!table.clean) return "the log is not clean: its two columns differ too much";
  std::size_t out = 0, all = 0;
  for (const auto& row : table.rows) {
    if (row.bytes < from_bytes) continue;
    ++all;
    if (!row.in_range) ++out;
  }
  if (out == 0) return {};
  return std::to_string(out) + " of " + std::to_string(all) +
         " sizes lie outside the range of the calibrated logs";
}

std::string shape_of(const ComparedTable& table) {
  return table.test + " " + std::to_string(table.nodes) + "x" + std::to_string(table.gpus_per_node);
}

std::vector<measure::FidelityTable> compared(const Comparison& comparison, Bytes from_bytes) {
  const LogCalibration calibration =
      calibration_of(tables_in(comparison.calibrate), tables_in(comparison.predict), "fidelity");
  std::vector<measure::FidelityTable> tables;
  for (const auto& against : calibration.against) {
    measure::FidelityTable table;
    table.name = comparison.name + ", " + shape_of(against);
    table.file = against.file;
    table.predicted = errors_in_percent(against, from_bytes);
    table.out_of_range = doubts(against, from_bytes);
    tables.push_back(std::move(table));
  }
  if (tables.empty()) tables.push_back({"", comparison.name, "", {}, {}, ""});
  // The calibrated rows are listed once, with the first prediction made from them.
  for (const auto& fitted : calibration.fitted) {
    const auto errors = errors_in_percent(fitted, from_bytes);
    auto& rows = tables.front().calibrated;
    rows.insert(rows.end(), errors.begin(), errors.end());
  }
  return tables;
}

measure::FidelityTable each_alone(const Comparison& comparison, Bytes from_bytes) {
  measure::FidelityTable table;
  table.name = comparison.name;
  for (const auto& file : comparison.alone) {
    for (const auto& measured : tables_in({file})) {
      if (!cost::is_clean(measured)) continue;
      const LogCalibration calibration = calibration_of({measured}, {}, "fidelity");
      const auto errors = errors_in_percent(calibration.fitted.front(), from_bytes);
      table.calibrated.insert(table.calibrated.end(), errors.begin(), errors.end());
    }
  }
  return table;
}

}  // namespace

std::vector<measure::FidelityTable> log_fidelity(
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted) {
  const List list = read_list(path);
  std::vector<measure::FidelityTable> tables;
  for (const auto& comparison : list.comparisons) {
    if (interrupted()) break;
    if (!comparison.alone.empty()) tables.push_back(each_alone(comparison, list.from_bytes));
    if (!comparison.calibrate.empty()) {
      for (auto& table : compared(comparison, list.from_bytes)) tables.push_back(std::move(table));
    }
    progress(static_cast<std::size_t>(&comparison - list.comparisons.data()) + 1,
             list.comparisons.size());
  }
  return tables;
}

}  // namespace syncline::calibrate
