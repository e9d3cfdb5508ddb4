// The Python files that a training job imports, as the build put them into the program.
#pragma once

#include <string_view>

namespace syncline::cli {

std::string_view record_script();  // pytorch/syncline_record.py: the job records itself
std::string_view apply_script();   // pytorch/syncline_apply.py: without a strategy

}  // namespace syncline::cli
