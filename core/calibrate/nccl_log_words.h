// Words and numbers of a printed log.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::calibrate {

using Tokens = std::vector<std::string_view>;

// The words of a line, between blanks.
Tokens split_words(std::string_view line);

// The whole word as a number, or nothing.
template <typename Number>
std::optional<Number> number_of(std::string_view word) {
  Number value{};
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// A finite number that is not negative.
// Whether a time in microseconds or a bandwidth in GB/s can have been measured: 0, or from 1e-30 to
// 1e12.
bool is_amount(double value);
std::optional<double> amount_of(std::string_view word);

// What stands in place of an amount where a measurement went wrong: "nan", "-inf", "-3.5".
bool is_bad_amount(std::string_view word);

// Half a unit of the last digit of a printed number: 0.005 for "12.34".
double half_unit(std::string_view word);

// The line without colours and without what launchers put ahead of it: "[1,0]<stdout>:", "12: ".
std::string plain_line(std::string_view line);

// Whether NCCL itself wrote into the line.
bool is_nccl_line(std::string_view line);

// A label without its '#'.
std::string_view bare(std::string_view label);

}  // namespace syncline::calibrate
