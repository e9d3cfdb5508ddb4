// The figures of a row under the names that machines read, once for JSON and CSV alike. All in SI
// units; the meaning of each stands in core/measure/metrics.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/json/json.h"
#include "core/measure/memory.h"
#include "core/measure/report.h"
#include "reports/table.h"

namespace syncline::reports {

struct Field {
  std::string_view name;
  std::optional<double> (*of)(const measure::Row&);  // nullopt where it does not apply
};

// step_time_s to lower_bound_s.
std::span<const Field> predicted_fields();
// The same of a strategy by itself, in JSON: all but its speedup.
void put_predicted(Json& object, const measure::Metrics& metrics);
// step_time_low_s, step_time_high_s, speedup_low, speedup_high: the ends of 80 % intervals.
std::span<const Field> interval_fields();
// step_time_s, throughput, speedup, collectives, accuracy, as somebody published them.
std::span<const Field> published_fields();
// error_percent, left_out_error_percent.
std::span<const Field> error_fields();

// "calibrated" or "predicted": what a published row was used for.
std::string_view use_of(const Published& published);

// What a rank holds in memory: "32.1 GB"; "129 of 16 GB" where that is more than the device has;
// empty where nothing was worked out.
std::string memory_cell(const measure::Memory& memory);

// The parts of it, and whether activations are counted: "weights 32.1 GB, ...".
std::string memory_sentence(const measure::Memory& memory);

// total, weights, gradients, optimizer, buffers; activations where they are counted, available
// where the device says, and whether it fits.
Json memory_json(const measure::Memory& memory);

}  // namespace syncline::reports
