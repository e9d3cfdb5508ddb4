// Any page as GitHub Markdown, for a README or an issue: the content of the terminal's table.
#pragma once

#include <string>

#include "reports/page.h"

namespace syncline::reports {

std::string markdown_page(const Page& page);

}  // namespace syncline::reports
