// The 21 cases of scenarios/measured/tuning/oracle_traces.csv: three measured backward traces on
// seven networks, with what an independent program makes of them.
#pragma once

#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/input/document.h"

namespace syncline::test {

struct TraceCase {
  std::map<std::string, std::string> cells;  // by the CSV's heading
  const std::string& text(const std::string& column) const { return cells.at(column); }
  double number(const std::string& column) const { return std::stod(cells.at(column)); }
};

inline void PrintTo(const TraceCase& row, std::ostream* out) {
  *out << row.text("model") << ", " << row.text("network");
}

// One line of CSV; quoted cells may hold commas.
inline std::vector<std::string> csv_cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

inline std::vector<TraceCase> trace_cases(const std::string& file = "oracle_traces.csv") {
  std::ifstream in(SYNCLINE_SOURCE_DIR "/scenarios/measured/tuning/" + file);
  std::vector<TraceCase> cases;
  std::vector<std::string> heading;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto cells = csv_cells(line);
    if (heading.empty()) {
      heading = cells;
      continue;
    }
    if (cells.size() != heading.size()) throw std::runtime_error(file + ": " + line);
    TraceCase& row = cases.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row.cells[heading[i]] = cells[i];
  }
  return cases;
}

// The case as a scenario: two nodes, whose ring sends each byte once after two latencies, so that a
// collective takes alpha + beta * bytes. `more` holds further keys of the scenario.
inline input::Document trace_document(const TraceCase& row, const std::string& more = "") {
  std::ostringstream text;
  text.precision(17);
  text << R"({"name": "trace", "workload": ")" SYNCLINE_SOURCE_DIR "/scenarios/workloads/"
       << row.text("model") << R"(_v100.json", "cluster": {"name": "trace", "nodes": 2,
       "gpus_per_node": 1, "inter": {"latency_us": )"
       << row.number("alpha") / 2 / kMicrosecond << R"(, "bandwidth_gbps": )"
       << 1 / row.number("beta") / kGigabitPerSecond << R"(}}, "strategies": [{"name": "base"}])"
       << more << "}";
  return input::document_from_text("trace", text.str());
}

}  // namespace syncline::test
