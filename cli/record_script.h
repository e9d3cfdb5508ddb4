// The Python file that a training job imports to record itself (pytorch/syncline_record.py), as the
// build put it into the program.
#pragma once

#include <string_view>

namespace syncline::cli {

std::string_view record_script();

}  // namespace syncline::cli
