// Text of others, fit to be shown: names and keys may hold anything, and be of any length.
#pragma once

#include <string>
#include <string_view>

namespace syncline {

// With a blank for each control character (C0, DEL, and C1 as UTF-8 has it), which terminals obey
// instead of showing it. `keep`: those that stand.
std::string visible(std::string_view text, std::string_view keep = "");

// Its first `most` bytes and "...", cut between letters; the text itself where it is not longer.
std::string shortened(std::string_view text, std::size_t most = 200);

}  // namespace syncline
