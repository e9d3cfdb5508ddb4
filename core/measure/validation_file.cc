#include "core/measure/validation_file.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input/document.h"
#include "core/json/text.h"

namespace syncline::measure {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& place,
                         const std::string& expected) {
  throw InputError(file + ": " + place + ": expected " + expected +
                   ", as syncline validate -o writes it");
}

std::string text_in(const Json& json, const std::string& file, const char* key) {
  if (!json.contains(key) || !json[key].is_string()) refuse(file, key, "a text");
  return json[key].get<std::string>();
}

Seconds seconds_in(const Json& json, const std::string& file, const std::string& place,
                   const char* key) {
  if (!json.contains(key) || !json[key].is_number() || json[key].get<double>() <= 0) {
    refuse(file, place + "." + key, "a number above 0");
  }
  return json[key].get<double>();
}

}  // namespace

LiveFile read_validation(const std::string& file) {
  const Json json = read_json_file(file);
  if (!json.is_object()) refuse(file, "file", "an object");
  LiveFile live;
  live.file = file;
  live.scenario = text_in(json, file, "scenario");
  live.cluster = text_in(json, file, "cluster");
  live.backend = text_in(json, file, "backend");
  live.hardware = text_in(json, file, "hardware");
  if (!json.contains("ranks") || !json["ranks"].is_number_integer()) {
    refuse(file, "ranks", "a whole number");
  }
  live.ranks = json["ranks"].get<int>();
  if (!json.contains("rows") || !json["rows"].is_array()) refuse(file, "rows", "a list");
  for (const auto& line : json["rows"]) {
    const std::string place = "rows[" + std::to_string(live.rows.size()) + "]";
    if (!line.is_object()) refuse(file, place, "an object");
    LiveRow row;
    row.strategy = text_in(line, file, "strategy");
    row.predicted = seconds_in(line, file, place, "predicted_s");
    row.median = seconds_in(line, file, place, "measured_median_s");
    row.p95 = seconds_in(line, file, place, "measured_p95_s");
    if (line.contains("values_match") && line["values_match"].is_boolean()) {
      row.values_match = line["values_match"].get<bool>();
    }
    live.rows.push_back(std::move(row));
  }
  return live;
}

FidelityTable table_of(const LiveFile& live) {
  FidelityTable table;
  table.name = live.scenario + ", " + live.backend;
  table.file = live.file;
  for (const auto& row : live.rows) table.predicted.push_back(row.error_percent());
  return table;
}

}  // namespace syncline::measure
