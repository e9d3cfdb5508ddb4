// Lines of a log as words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::calibrate {

using Tokens = std::vector<std::string_view>;

// Removes colours and launchers' prefixes of a line: "[1,0]<stdout>:", " 2: ".
std::string plain_line(std::string_view line);
// Returns the cells of CSV and Markdown as words; an empty cell becomes "-".
std::string separate_cells(std::string text);
// Divides a line at its blanks.
Tokens split_words(std::string_view line);
// Returns the words before `end`, the nearest first.
std::vector<std::string> preceding_words(const Tokens& tokens, std::size_t end);
// Removes the '#' of a label.
std::string_view bare(std::string_view label);
// Returns a column's name in small letters and digits: "algbwgbs" for "algBW (GB/s)".
std::string plain_name(std::string_view word);
// True if NCCL itself wrote into the line.
bool is_nccl_line(std::string_view line);

// Returns true for words in place of a failed measurement's amount: "nan", "-inf", "-3.5".
bool is_bad_amount(std::string_view word);
// Returns half a unit of the last digit of a printed number: 0.005 for "12.34".
double half_unit(std::string_view word);

}  // namespace syncline::calibrate
