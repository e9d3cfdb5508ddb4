// Any page for a terminal: a title, aligned tables, and sentences.
#pragma once

#include <string>

#include "reports/page.h"

namespace syncline::reports {

// Control characters in the page are blanks; the screen's own are all that it has.
std::string text_page(const Page& page, const Screen& screen = {});

}  // namespace syncline::reports
