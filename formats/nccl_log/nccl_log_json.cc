// The report that nccl-tests writes with -J: one table per file. A run that died leaves its
// brackets open; its complete results still count.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

using Report = nlohmann::json;

Report parse(std::string_view text) { return Report::parse(text, nullptr, false); }

// Returns the text up to the last complete result, with its brackets closed.
std::string mended(std::string_view text) {
  std::string open;
  bool quoted = false;
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') open += c;
    if (c != '}' && c != ']') continue;
    if (open.empty()) return {};
    open.pop_back();
    if (c == '}' && open == "{[") end = i + 1;
  }
  return end == 0 ? std::string() : std::string(text.substr(0, end)) + "]}";
}

std::int64_t integer(const Report& object, const char* key, std::int64_t fallback) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return fallback;
  if (found->is_number_float()) {
    const double value = found->get<double>();
    return std::abs(value) < 9e18 ? static_cast<std::int64_t>(value) : fallback;
  }
  return found->get<std::int64_t>();
}

std::string text_of(const Report& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> amount(const Report& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return is_amount(value) ? std::optional(value) : std::nullopt;
}

// Reads one measurement of a result: time, bandwidths and check. Bandwidths have six decimals.
void read_place(const Report& result, bool out, LogRow& of) {
  cost::MeasuredRow& row = of.row;
  const auto found = result.find(out ? "out_of_place" : "in_place");
  if (found == result.end() || !found->is_object()) return;
  const auto time = amount(*found, "time");
  if (time) (out ? row.out_of_place : row.in_place) = *time * kMicrosecond;
  if (row.size > 0 && found->contains("time") && time.value_or(0) <= 0) {
    of.leave_out(out, "time " + found->at("time").dump());
  }
  constexpr double kHalf = 0.5e-6;
  const auto alg = amount(*found, "alg_bw");
  if (out) row.out_of_place_alg = alg.value_or(0) * kGigabytePerSecond;
  of.places[out ? 0 : 1] = {kHalf, alg.value_or(0), alg ? kHalf : 0,
                            amount(*found, "bus_bw").value_or(-1), kHalf};
  (out ? row.out_of_place_wrong : row.in_place_wrong) = amount(*found, "nwrong");
  if (row.size > 0 && amount(*found, "nwrong").value_or(0) > 0) {
    of.leave_out(out, "nwrong is " + found->at("nwrong").dump());
  }
}

void read_devices(const Report& config, LogContext& context) {
  const auto found = config.find("devices");
  if (found == config.end() || !found->is_array()) return;
  for (const Report& entry : *found) {
    if (!entry.is_object()) continue;
    const std::int64_t rank = integer(entry, "rank", -1);
    if (rank < 0 || rank >= (1 << 20)) continue;
    context.devices.push_back({static_cast<int>(rank),
                               static_cast<int>(integer(entry, "group", 0) & 0xffff),
                               text_of(entry, "hostname"), text_of(entry, "device_name"), ""});
  }
  // Only the first device of each process is listed.
  const std::int64_t threads = integer(config, "nthreads", 1);
  const std::int64_t gpus = integer(config, "ngpus", 1);
  if (threads >= 1 && threads <= 1024 && gpus >= 1 && gpus <= 1024) {
    context.ranks_per_device = static_cast<int>(threads * gpus);
  }
}

// Reads the report's head: the devices, and the program.
void read_head(const Report& report, LogContext& context) {
  context.nccl_version =
      version_of_code(static_cast<int>(integer(report, "nccl_version", 0) & 0xffffff));
  if (const auto config = report.find("config"); config != report.end() && config->is_object()) {
    read_devices(*config, context);
  }
  for (const char* key : {"env", "args"}) {
    const auto words = report.find(key);
    if (words == report.end() || !words->is_array()) continue;
    for (const Report& word : *words) {
      if (!word.is_string()) continue;
      context.settings.merge(find_settings(word.get_ref<const std::string&>()).values);
    }
  }
  if (const auto args = report.find("args"); args != report.end() && args->is_array()) {
    for (const Report& word : *args) {
      if (context.test.empty() && word.is_string()) {
        context.test = find_test_program(word.get_ref<const std::string&>());
      }
    }
  }
}

// Reads one size's result. Returns true if its times were taken on the host.
bool read_result(const Report& result, RawTable& raw) {
  LogRow of;
  of.line = 1;
  cost::MeasuredRow& row = of.row;
  row.size = integer(result, "size", -1);
  row.count = integer(result, "count", -1);
  if (row.size < 0 || row.count < 0) return false;
  row.type = text_of(result, "type");
  row.redop = text_of(result, "redop");
  of.root = std::atoi(text_of(result, "root").c_str());  // written as text: "    -1"
  if (raw.context.test.empty()) {
    raw.context.test = find_test_program(text_of(result, "experiment_name"));
  }
  read_place(result, true, of);
  read_place(result, false, of);
  raw.rows.push_back(std::move(of));
  const auto out = result.find("out_of_place");
  return out != result.end() && out->is_object() && out->contains("cpu_time");
}

}  // namespace

// Returns a report's one table; facts about the report become notes.
std::vector<RawTable> nccl_json_tables(std::string_view text, std::string& problem) {
  Report report = parse(text);
  bool cut = false;
  if (report.is_discarded()) {
    report = parse(mended(text));
    cut = true;
  }
  if (report.is_discarded() || !report.is_object()) {
    problem = "cannot be read as JSON";
    return {};
  }
  const auto results = report.find("results");
  if (results == report.end() || !results->is_array()) {
    problem = "is JSON without the array 'results' that nccl-tests writes (-J)";
    return {};
  }
  RawTable raw;
  raw.table.line = 1;
  if (cut) raw.table.notes.emplace_back("the report is cut off: its complete results are read");
  read_head(report, raw.context);
  bool host_time = false;
  for (const Report& result : *results) {
    if (result.is_object() && read_result(result, raw)) host_time = true;
  }
  if (host_time) {
    raw.table.notes.emplace_back(
        "the times are the host's (-C), not the collectives': they are left out");
  }
  const auto bounds = report.find("out_of_bounds");
  if (bounds != report.end() && bounds->is_object() && integer(*bounds, "count", 0) > 0) {
    raw.table.failed |= std::ranges::none_of(raw.rows, wrong_somewhere);
    raw.table.notes.push_back(
        "the test failed its own check: " + std::to_string(integer(*bounds, "count", 0)) +
        " values out of bounds");
  }
  const auto errors = report.find("errors");
  if (errors != report.end() && errors->is_array() && !errors->empty()) {
    raw.table.failed = true;
    raw.table.notes.push_back("the test failed: " + errors->front().dump());
  }
  std::vector<RawTable> tables;
  if (!raw.rows.empty()) tables.push_back(std::move(raw));
  if (tables.empty()) problem = "is a report of nccl-tests without a result";
  return tables;
}

}  // namespace syncline::calibrate
