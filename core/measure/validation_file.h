// The reports that `syncline validate -o` left: predictions and measurements of live runs, as rows
// of one table and as tables of the fidelity page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/measure/fidelity.h"
#include "core/units.h"

namespace syncline::measure {

struct LiveRow {
  std::string strategy;
  Seconds predicted = 0;
  Seconds median = 0;
  Seconds p95 = 0;
  std::optional<bool> values_match;

  double error_percent() const { return (predicted / median - 1) * 100; }
};

struct LiveFile {
  std::string file;
  std::string scenario;
  std::string cluster;
  std::string backend;
  std::string hardware;
  int ranks = 0;
  std::vector<LiveRow> rows;
};

// Throws InputError for a file that is not such a report.
LiveFile read_validation(const std::string& file);

// Every row was predicted before it was measured.
FidelityTable table_of(const LiveFile& live);

}  // namespace syncline::measure
