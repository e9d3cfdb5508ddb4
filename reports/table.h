// A report for a terminal: a title, one aligned table, and sentences that say what it shows and
// where its figures come from.
#pragma once

#include <string>

#include "core/measure/report.h"
#include "reports/page.h"

namespace syncline {

std::string text_table(const Report& report);

// Any page for a terminal.
std::string text_page(const Page& page);

}  // namespace syncline
