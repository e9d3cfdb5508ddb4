#include "formats/json/reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "formats/text/visible.h"

namespace syncline {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Returns a number as people write it: "25", "0.5", "1e11".
std::string number_text(double value) {
  std::ostringstream text;
  // Six digits if they are exact: 1e11 is short then.
  text << value;
  if (std::strtod(text.str().c_str(), nullptr) != value) {
    text.str("");
    text << std::setprecision(15) << value;
  }
  const std::string written = text.str();
  const std::size_t exponent = written.find("e+");
  if (exponent == std::string::npos) return written;
  return written.substr(0, exponent + 1) +
         written.substr(written.find_first_not_of("+0", exponent + 1));
}

// Smaller positive numbers are refused as mistakes, in any unit: bytes, seconds, FLOPs, shares.
constexpr double kSmallest = 1e-30;

// Returns true if checked_number() takes this value as it is.
bool is_allowed(const Json& value, const Reader::Limits& limits) {
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  const bool low = limits.min_excluded ? number <= limits.min : number < limits.min;
  return std::isfinite(number) && !low && number <= limits.max &&
         (number == 0 || std::fabs(number) >= kSmallest);
}

// Returns true if checked_integer() takes this value as it is: 32.0 for 32, neither 2.5 nor 1e30.
bool is_allowed_integer(const Json& value, std::int64_t min, std::int64_t max) {
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  return number == std::floor(number) && number >= static_cast<double>(min) &&
         number <= static_cast<double>(max);
}

std::string limits_text(const Reader::Limits& limits) {
  const std::string max = number_text(limits.max);
  return limits.min_excluded ? "above " + number_text(limits.min) + ", at most " + max
                             : "from " + number_text(limits.min) + " to " + max;
}

std::string whole_text(std::int64_t min, std::int64_t max) {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

// Returns the value at a required key. If it is missing, the message tells what `expected` returns.
// A pointer: GCC 14 takes a reference for one into an argument.
template <typename Expected>
const Json* required(Reader& reader, std::string_view key, const Expected& expected) {
  try {
    return &reader.require(key);
  } catch (const InputError& error) {
    throw InputError(error.what() + (", expected " + expected()));
  }
}

[[noreturn]] void fail_at(const std::string& file, const std::string& place,
                          const std::string& what) {
  std::string whole = file + ": " + (place.empty() ? "" : shorten_text(place) + ": ") + what;
  std::ranges::replace(whole, '\0', ' ');  // a NUL would end the message
  throw InputError(whole);
}

// Returns a hint for "25Gbps": the number is right, and the key already contains the unit.
std::string unit_hint(const Json& value) {
  if (!value.is_string()) return "";
  const auto text = value.get<std::string>();
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  const bool with_unit =
      end != text.c_str() &&
      std::isalpha(static_cast<unsigned char>(*(*end == ' ' ? end + 1 : end))) != 0;
  return with_unit ? ", without a unit: the key says which it is read in" : "";
}

constexpr std::size_t kTold = 10;  // printed mistakes of a file

// A value's beginning is enough to find it in the file.
constexpr std::size_t kLongestValue = 60;

}  // namespace

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "'" + shorten_text(value.get<std::string>(), kLongestValue) + "'";
  if (value.is_number_float()) {
    // 64.0 keeps its form: some frameworks accept 64 and refuse 64.0.
    const std::string text = number_text(value.get<double>());
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  return shorten_text(value.dump(), kLongestValue);
}

double checked_number(const Json& value, const Reader::Limits& limits, const std::string& file,
                      const std::string& place) {
  if (is_allowed(value, limits)) return value.get<double>();
  if (!value.is_number()) {
    fail_at(file, place,
            "found " + describe(value) + ", expected a number " + limits_text(limits) +
                unit_hint(value));
  }
  const double number = value.get<double>();
  // A number nearer to 0 is a mistake, and its reciprocal may overflow.
  if (number != 0 && std::fabs(number) < kSmallest) {
    fail_at(file, place,
            "found " + describe(value) + ", expected " + (limits.min_excluded ? "" : "0 or ") +
                "a number from " + number_text(kSmallest) + " to " + number_text(limits.max));
  }
  fail_at(file, place, "found " + describe(value) + ", expected a number " + limits_text(limits));
}

std::int64_t checked_integer(const Json& value, std::int64_t min, std::int64_t max,
                             const std::string& file, const std::string& place) {
  if (is_allowed_integer(value, min, max)) return static_cast<std::int64_t>(value.get<double>());
  fail_at(file, place, "found " + describe(value) + ", expected " + whole_text(min, max));
}

std::string checked_word(const Json& value, const std::vector<std::string>& words,
                         const std::string& file, const std::string& place) {
  std::string hint;
  if (value.is_string()) {
    const auto word = value.get<std::string>();
    if (std::find(words.begin(), words.end(), word) != words.end()) return word;
    hint = did_you_mean(word, words);
  }
  fail_at(file, place, "found " + describe(value) + ", expected one of " + join(words) + hint);
}

Reader::Reader(const Json& object, std::string file, std::string place, Mistakes* mistakes)
    : object_(object), file_(std::move(file)), place_(std::move(place)), mistakes_(mistakes) {
  if (!object_.is_object()) {
    fail_at(file_, place_, "found " + describe(object_) + ", expected an object");
  }
}

std::string Reader::place_of(std::string_view key) const {
  return place_.empty() ? std::string(key) : place_ + "." + std::string(key);
}

void Reader::fail(std::string_view key, const std::string& what) const {
  fail_at(file_, place_of(key), what);
}

// Returns `allowed` instead of a wrong value, if mistakes are collected.
template <typename Value, typename Read>
Value Reader::or_instead(const Value& allowed, Read read) const {
  if (mistakes_ == nullptr) return read();
  try {
    return read();
  } catch (const InputError& error) {
    mistakes_->add(error.what());
    return allowed;
  }
}

const Json* Reader::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  const auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

bool Reader::has(std::string_view key) { return find(key) != nullptr; }

const Json& Reader::require(std::string_view key) {
  const Json* value = find(key);
  if (value != nullptr) return *value;
  // A misspelt key is the likeliest reason: the message names it.
  for (const auto& [present, unused] : object_.items()) {
    const bool asked = std::find(asked_.begin(), asked_.end(), present) != asked_.end();
    const std::string question =
        asked ? "" : question_of(present, near_names(present, {std::string(key)}));
    if (!question.empty()) {
      asked_.push_back(present);  // one mistake, not also an unknown key
      fail(key, "missing (found '" + shorten_text(present) + "': " + question + ")");
    }
  }
  fail(key, "missing");
}

std::string Reader::text(std::string_view key) {
  return or_instead(std::string(), [&] {
    const Json& value = *required(*this, key, [] { return std::string("text"); });
    if (!value.is_string()) fail(key, "found " + describe(value) + ", expected text");
    return value.get<std::string>();
  });
}

std::string Reader::text_or(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : std::move(fallback);
}

bool Reader::boolean_or(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  return or_instead(fallback, [&] {
    if (!value->is_boolean()) fail(key, "found " + describe(*value) + ", expected true or false");
    return value->get<bool>();
  });
}

double Reader::number(std::string_view key, Limits limits) {
  return or_instead(limits.min_excluded ? limits.max : limits.min, [&] {
    const Json& value = *required(*this, key, [&] { return "a number " + limits_text(limits); });
    // A place costs more than reading a number: messages alone need it.
    if (is_allowed(value, limits)) return value.get<double>();
    return checked_number(value, limits, file_, place_of(key));
  });
}

double Reader::number_or(std::string_view key, double fallback, Limits limits) {
  return has(key) ? number(key, limits) : fallback;
}

std::int64_t Reader::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  return or_instead(min, [&] {
    const Json& value = *required(*this, key, [&] { return whole_text(min, max); });
    if (is_allowed_integer(value, min, max)) return static_cast<std::int64_t>(value.get<double>());
    return checked_integer(value, min, max, file_, place_of(key));
  });
}

std::int64_t Reader::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                std::int64_t max) {
  return has(key) ? integer(key, min, max) : fallback;
}

std::string Reader::word_or(std::string_view key, std::string fallback,
                            const std::vector<std::string>& words) {
  const Json* value = find(key);
  return value == nullptr ? std::move(fallback) : checked_word(*value, words, file_, place_of(key));
}

Reader Reader::object(std::string_view key) {
  return Reader(require(key), file_, place_of(key), mistakes_);
}

const Json& Reader::array(std::string_view key) {
  const Json& value = require(key);
  if (!value.is_array()) fail(key, "found " + describe(value) + ", expected a list");
  return value;
}

std::vector<Reader> Reader::objects(std::string_view key) {
  std::vector<Reader> readers;
  if (!has(key)) return readers;
  const Json& list = array(key);
  readers.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    readers.emplace_back(list[i], file_, place_of(key) + "[" + std::to_string(i) + "]", mistakes_);
  }
  return readers;
}

void Reader::finish(const std::vector<std::string>& elsewhere) {
  for (auto item = object_.begin(); item != object_.end(); ++item) {
    const std::string& key = item.key();
    if (std::ranges::find(asked_, key) != asked_.end()) continue;
    // Only mistakes that are printed need a suggestion.
    if (mistakes_ != nullptr && mistakes_->count() >= kTold) {
      mistakes_->add({});
      continue;
    }
    const auto path =
        std::find_if(elsewhere.begin(), elsewhere.end(),
                     [ending = "." + key](const auto& known) { return known.ends_with(ending); });
    const std::string hint =
        path == elsewhere.end() ? did_you_mean(key, asked_) : " (did you mean '" + *path + "'?)";
    attempt([&, unknown = key] {
      fail(unknown, "unknown key" + (hint.empty() ? ", known here: " + join(asked_) : hint));
    });
  }
}

void Mistakes::add(const std::string& mistake) {
  if (told_.size() < kTold) told_.push_back(mistake);
  ++count_;
}

void Mistakes::raise() const {
  if (count_ == 0) return;
  if (count_ == 1) throw InputError(told_.front());
  std::vector<std::string> below(told_.begin() + 1, told_.end());
  if (count_ > told_.size()) {
    below.push_back("and " + std::to_string(count_ - told_.size()) + " more");
  }
  throw InputMistakes(told_.front(), std::move(below));
}

}  // namespace syncline
