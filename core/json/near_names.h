// Which names fit a word that is none of them: the suggestion of every message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncline {

// The name that the word means for certain: the only one that differs from it in case and
// punctuation alone ("llama-3-8b" is llama3_8b), or that other programs spell so ("bfloat16" is
// bf16, "ddp" is pytorch). Nothing where there is none.
std::optional<std::string> same_name(std::string_view word, const std::vector<std::string>& names);

// The names that fit best, by the first of these rules under which any does: the same name; what
// other programs call something near it; a family, whose names have all parts of the word ("a100":
// a100-sxm-40gb and its kin), begin with it, are it without a letter, or have no part that the word
// has not; the fewest letters apart, while most letters stand. What is mostly a number ("a30") has
// no other number near it.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names);

// "did you mean 'x'?", or one of several that are near; with the factor between two units where the
// names differ in that ("1 ms is 1000 us"). Empty where none is.
std::string question_of(std::string_view word, const std::vector<std::string>& near);
// That of the names that fit best, in brackets, after a blank.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace syncline
