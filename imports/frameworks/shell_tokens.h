// Words, operators and arithmetic of a shell's text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::job::frameworks {

struct ShellToken {
  std::string text;   // a word as it is written, quotes and all; or an operator, "\n" among them
  bool word = false;  // else an operator
  std::string here;   // of "<<": the lines that follow
};
std::vector<ShellToken> shell_tokens(const std::string& text);

// The place behind what opens at `at` ("(", "{"), quotes inside passed over; the end where nothing
// closes it.
std::size_t behind_nested(std::string_view text, std::size_t at, char open, char close);

bool of_shell_name(char c);

// "A * (B + 2)": nothing where a name has no whole number, or the result no place in 64 bits.
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value_of);

// Whether a pattern with * and ? is the whole word.
bool shell_pattern_fits(std::string_view pattern, std::string_view word);

}  // namespace syncline::job::frameworks
