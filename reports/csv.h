// A report for spreadsheets: RFC 4180, a header line, one line a row, one column a sweep path.
// Figures in SI units under the names of the JSON report; columns about published figures only
// where some row has them. Bucket lists and refits are in the JSON report alone.
#pragma once

#include <string>

#include "core/measure/report.h"

namespace syncline {

std::string csv_report(const Report& report);

}  // namespace syncline
