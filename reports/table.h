// Any page for a terminal: a title, aligned tables, and sentences.
#pragma once

#include <string>

#include "reports/page.h"

namespace syncline::reports {

std::string text_page(const Page& page);

}  // namespace syncline::reports
