// What gives the figures of a page hover and zoom: reports/page.js, as the build put it into the
// program.
#pragma once

#include <string_view>

namespace syncline::reports {

std::string_view page_script();

}  // namespace syncline::reports
