// A list of comparisons is a JSON file:
//   {"from_bytes": 65536, "tables": [
//     {"name": "...", "calibrate": [FILE, ...], "predict": [FILE, ...]},
//     {"name": "...", "each_alone": [FILE, ...]},
//     {"name": "...", "each_row": [FILE, ...]},
//     {"name": "...", "each_count": [FILE, ...]}]}
// Paths are relative to the list's folder, with @NODESxGPUS if a log lacks the counts. `each_alone`
// fits every clean table by itself and has calibrated rows only. `each_row` leaves out up to twelve
// rows of each clean table in turn and predicts them from its others; `each_count` predicts each
// count of nodes and GPUs from the other tables. Predicted rows have 80 % intervals.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/scale_fit.h"
#include "studies/rows/uncertainty.h"

namespace syncline::calibrate {
namespace {

struct Comparison {
  std::string name;
  std::vector<std::string> calibrate, predict, alone, rows, counts;
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
    comparison.rows = files_at(item, "each_row", folder);
    comparison.counts = files_at(item, "each_count", folder);
    item.finish();
    if (comparison.alone.empty() && comparison.calibrate.empty() && comparison.rows.empty() &&
        comparison.counts.empty()) {
      item.fail("calibrate", "missing, as are each_alone, each_row and each_count");
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

// Adds the rows of a forecast: their errors, and their intervals.
void add_forecast(measure::FidelityTable& table, const ComparedTable& forecast, Bytes from_bytes) {
  for (const ComparedRow& row : forecast.rows) {
    if (row.bytes < from_bytes) continue;
    table.predicted.push_back((row.predicted / row.measured - 1) * 100);
    const double half = measure::kHeldDeviations * row.spread;
    table.intervals.push_back(
        {100 * std::expm1(half), std::abs(std::log(row.measured / row.predicted)) <= half});
  }
}

// Returns the tool's reservations about its own forecast of a table.
std::string uncertainties(const ComparedTable& table, Bytes from_bytes) {
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
  const LogCalibration calibration = calibration_of(read_tables(comparison.calibrate),
                                                    read_tables(comparison.predict), "fidelity");
  std::vector<measure::FidelityTable> tables;
  for (const auto& against : calibration.against) {
    measure::FidelityTable table;
    table.name = comparison.name + ", " + shape_of(against);
    table.file = against.file;
    add_forecast(table, against, from_bytes);
    table.out_of_range = uncertainties(against, from_bytes);
    tables.push_back(std::move(table));
  }
  if (tables.empty()) tables.emplace_back().name = comparison.name;
  // The calibrated rows are listed once, with the first prediction made from them.
  for (const auto& fitted : calibration.fitted) {
    const auto errors = errors_in_percent(fitted, from_bytes);
    auto& rows = tables.front().calibrated;
    rows.insert(rows.end(), errors.begin(), errors.end());
  }
  return tables;
}

void each_alone(const std::vector<std::string>& files, Bytes from_bytes,
                measure::FidelityTable& table) {
  for (const auto& file : files) {
    for (const auto& measured : read_tables({file})) {
      if (!cost::is_clean(measured)) continue;
      const LogCalibration calibration = calibration_of({measured}, {}, "fidelity");
      const auto errors = errors_in_percent(calibration.fitted.front(), from_bytes);
      table.calibrated.insert(table.calibrated.end(), errors.begin(), errors.end());
    }
  }
}

// Predicts sizes of each clean table, at most kMax of them evenly spread over its rows, each from
// the table's other rows.
void each_row(const std::vector<std::string>& files, Bytes from_bytes,
              measure::FidelityTable& table) {
  constexpr std::size_t kMax = 12;
  for (const cost::MeasuredTable& measured : read_tables(files)) {
    const auto points = points_of(measured).points;
    if (!cost::is_clean(measured) || points.size() < 4) continue;
    const std::size_t count = std::min(kMax, points.size());
    for (std::size_t k = 0; k < count; ++k) {
      const Bytes size = points[k * (points.size() - 1) / (count - 1)].size;
      if (size < from_bytes) continue;
      cost::MeasuredTable rest = measured;
      cost::MeasuredTable one = measured;
      std::erase_if(rest.rows, [size](const auto& row) { return row.size == size; });
      std::erase_if(one.rows, [size](const auto& row) { return row.size != size; });
      add_forecast(table, calibration_of({rest}, {one}, "fidelity").against.front(), from_bytes);
    }
  }
}

// Predicts each count of nodes and GPUs from the other tables, if these hold one on the same side:
// inside a node, or between nodes.
void each_count(const std::vector<std::string>& files, Bytes from_bytes,
                measure::FidelityTable& table) {
  const auto tables = read_tables(files);
  std::set<std::pair<int, int>> counts;
  for (const auto& one : tables) counts.emplace(one.nodes, one.gpus_per_node);
  for (const auto& [nodes, gpus] : counts) {
    std::vector<cost::MeasuredTable> rest;
    std::vector<cost::MeasuredTable> out;
    for (const auto& one : tables) {
      const bool here = one.nodes == nodes && one.gpus_per_node == gpus;
      (here ? out : rest).push_back(one);
    }
    const bool possible =
        std::any_of(rest.begin(), rest.end(),
                    [inside = nodes == 1](const auto& one) { return (one.nodes == 1) == inside; });
    if (!possible) continue;
    for (const auto& forecast : calibration_of(rest, out, "fidelity").against) {
      add_forecast(table, forecast, from_bytes);
      const std::string uncertainty = uncertainties(forecast, from_bytes);
      if (!uncertainty.empty())
        table.out_of_range = "some counts or sizes lie outside of what is left";
    }
  }
}

}  // namespace

std::vector<measure::FidelityTable> log_fidelity(
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted) {
  const List list = read_list(path);
  std::vector<measure::FidelityTable> tables;
  for (const auto& comparison : list.comparisons) {
    if (interrupted()) break;
    for (const auto& [files, each] :
         {std::pair{&comparison.alone, &each_alone}, std::pair{&comparison.rows, &each_row},
          std::pair{&comparison.counts, &each_count}}) {
      if (files->empty()) continue;
      tables.emplace_back().name = comparison.name;
      each(*files, list.from_bytes, tables.back());
    }
    if (!comparison.calibrate.empty()) {
      for (auto& table : compared(comparison, list.from_bytes)) tables.push_back(std::move(table));
    }
    progress(static_cast<std::size_t>(&comparison - list.comparisons.data()) + 1,
             list.comparisons.size());
  }
  return tables;
}

}  // namespace syncline::calibrate
