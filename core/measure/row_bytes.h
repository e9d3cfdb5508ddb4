// What evaluation found out about a row, as bytes that another process can take up to the last bit.
#pragma once

#include <string>
#include <vector>

#include "core/measure/report.h"

namespace syncline::measure {

// Executor, metrics, speedup and buckets. What the scenario says of the row (its strategy, sweep
// values, published figure) is not among them.
std::string row_bytes(const Row& row);
// Throws MachineError where the bytes are cut short.
Row row_from_bytes(const std::string& bytes);

// Metrics alone; those of several rows may stand one behind the other.
std::string metrics_bytes(const Metrics& metrics);
// Throws MachineError where the bytes are cut short.
std::vector<Metrics> metrics_from_bytes(const std::string& bytes);

}  // namespace syncline::measure
