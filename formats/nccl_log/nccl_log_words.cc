#include "formats/nccl_log/nccl_log_words.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes "[3]", which mpiexec -prepend-rank puts before each piece of a line.
void drop_ranks(std::string& text) {
  for (std::size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > at + 1 && end < text.size() && text[end] == ']') text.replace(at, end - at + 1, " ");
  }
}

}  // namespace

Tokens split_words(std::string_view line) {
  constexpr std::string_view kBlanks(" \t\r\0", 4);
  Tokens tokens;
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    tokens.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return tokens;
}

bool is_bad_amount(std::string_view word) { return number_of<double>(word) && !amount_of(word); }

double half_unit(std::string_view word) {
  double half = 0.5;
  const std::size_t exponent = word.find_first_of("eE");
  const std::string_view mantissa = word.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (point != std::string_view::npos) {
    half *= std::pow(10, -static_cast<double>(mantissa.size() - point - 1));
  }
  if (exponent != std::string_view::npos) {
    // from_chars takes no plus sign.
    std::string_view power = word.substr(exponent + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    half *= std::pow(10, number_of<int>(power).value_or(0));
  }
  return half;
}

std::string separate_cells(std::string text) {
  constexpr std::ptrdiff_t kFewest = 6;
  for (const char mark : {',', ';', '|'}) {
    if (std::ranges::count(text, mark) < kFewest) continue;
    std::string cells;
    bool empty = false;
    for (const char c : text) {
      if (c == mark && empty && mark == ',') cells += '-';
      cells += c == mark ? ' ' : c;
      empty = c == mark;
    }
    text = std::move(cells);
  }
  return text;
}

namespace {

// Drops reStructuredText's role around a line: ":mark:`...`". A wrapped line ends in the next.
void drop_role(std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  const std::size_t tick = text.find('`');
  if (tick == text.npos) return;
  if (text[begin] == ':' && tick > begin + 1 && text[tick - 1] == ':') text.erase(0, tick + 1);
  if (std::ranges::count(text, '`') == 1 && text.find_last_not_of(" \r") == text.find('`')) {
    text.erase(text.find('`'));
  }
}

}  // namespace

std::string plain_line(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
      continue;
    }
    text += line[i];
  }
  for (const std::string_view mark : {"<stdout>:", "<stderr>:"}) {
    const std::size_t at = text.find(mark);
    if (at != std::string::npos && at < 64) text.erase(0, at + mark.size());
  }
  drop_role(text);
  // srun -l pads numbers of 10 tasks or more: " 2: ".
  std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::size_t digits = begin;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits > begin && digits < text.size() && text[digits] == ':') text.erase(0, digits + 1);
  drop_ranks(text);
  return text;
}

std::string plain_name(std::string_view word) {
  std::string name;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) name += static_cast<char>(std::tolower(byte));
  }
  return name;
}

bool is_nccl_line(std::string_view line) {
  constexpr std::string_view kMarks[] = {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"};
  return std::ranges::any_of(kMarks, [&](auto mark) { return line.find(mark) != line.npos; });
}

std::string_view bare(std::string_view label) {
  while (!label.empty() && label.front() == '#') label.remove_prefix(1);
  return label;
}

std::vector<std::string> preceding_words(const Tokens& tokens, std::size_t end) {
  std::vector<std::string> words;
  for (std::size_t i = end; i-- > 0;) {
    if (!bare(tokens[i]).empty()) words.emplace_back(bare(tokens[i]));
  }
  return words;
}

}  // namespace syncline::calibrate
