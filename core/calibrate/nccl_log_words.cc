#include "core/calibrate/nccl_log_words.h"

#include <cmath>

namespace syncline::calibrate {

Tokens split_words(std::string_view line) {
  Tokens tokens;
  std::size_t at = 0;
  while (at < line.size()) {
    const auto blank = [&](std::size_t i) {
      return line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\0';
    };
    while (at < line.size() && blank(at)) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !blank(at)) ++at;
    if (at > begin) tokens.push_back(line.substr(begin, at - begin));
  }
  return tokens;
}

bool is_amount(double value) {
  // Of microseconds 11 days; what is nearer to nothing than the other is no measurement.
  constexpr double kLargest = 1e12;
  constexpr double kSmallest = 1e-30;
  return value == 0 || (value >= kSmallest && value <= kLargest);
}

std::optional<double> amount_of(std::string_view word) {
  const auto value = number_of<double>(word);
  return value && is_amount(*value) ? value : std::nullopt;
}

bool is_bad_amount(std::string_view word) {
  return number_of<double>(word).has_value() && !amount_of(word).has_value();
}

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
  // srun -l: "12: ".
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits > 0 && digits < text.size() && text[digits] == ':') text.erase(0, digits + 1);
  return text;
}

bool is_nccl_line(std::string_view line) {
  for (const std::string_view mark : {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"}) {
    if (line.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

std::string_view bare(std::string_view label) {
  while (!label.empty() && label.front() == '#') label.remove_prefix(1);
  return label;
}

}  // namespace syncline::calibrate
