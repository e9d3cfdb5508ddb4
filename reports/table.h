// A report for a terminal: a title, one aligned table, and sentences that say what it shows and
// where its figures come from.
#pragma once

#include <string>

#include "core/measure/report.h"

namespace syncline {

std::string text_table(const Report& report);

}  // namespace syncline
