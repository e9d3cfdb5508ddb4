#include "core/json/settings.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "core/error.h"
#include "core/visible.h"

namespace syncline {
namespace {

constexpr int kDeepest = 64;
constexpr std::ptrdiff_t kMostLines = 20000;
// Aliases say a value again and again.
constexpr std::size_t kMostValues = 100000;

// Of one file: what is wrong is told with its line.
class Converted {
 public:
  explicit Converted(const std::string& name) : name_(name) {}

  Json of(const YAML::Node& node, int depth) {
    const std::int64_t line = node.Mark().line + 1;
    count(line, depth);
    if (node.IsScalar()) return scalar(node);
    Json json = node.IsSequence() ? Json::array() : node.IsMap() ? Json::object() : Json();
    for (const auto& entry : node) {
      if (node.IsSequence()) {
        json.push_back(of(entry, depth + 1));
        continue;
      }
      const std::int64_t at = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) fail(at, "a key that is no word");
      const std::string& key = entry.first.Scalar();
      if (json.contains(key)) fail(at, "the key '" + key + "' stands twice");
      json[key] = of(entry.second, depth + 1);
    }
    return json;
  }

  Json of(const toml::node& node, int depth) {
    count(node.source().begin.line, depth);
    if (const toml::table* table = node.as_table()) {
      Json json = Json::object();
      for (const auto& [key, value] : *table) json[std::string(key.str())] = of(value, depth + 1);
      return json;
    }
    if (const toml::array* array = node.as_array()) {
      Json json = Json::array();
      for (const toml::node& value : *array) json.push_back(of(value, depth + 1));
      return json;
    }
    if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
    if (const auto real = node.value_exact<double>()) return *real;
    if (const auto yes = node.value_exact<bool>()) return *yes;
    if (const auto text = node.value_exact<std::string>()) return *text;
    std::ostringstream date;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_date<decltype(value)> || toml::is_time<decltype(value)> ||
                    toml::is_date_time<decltype(value)>) {
        date << value.get();
      }
    });
    return date.str();
  }

  [[noreturn]] void fail(std::int64_t line, const std::string& what) const {
    throw InputError(name_ + ": line " + std::to_string(std::max<std::int64_t>(1, line)) + ": " +
                     what);
  }

 private:
  void count(std::int64_t line, int depth) {
    if (depth > kDeepest) fail(line, "more than 64 levels");
    if (++values_ > kMostValues) fail(line, "more than 100000 values");
  }

  // A word without quotes may be more than a text: "!" is the tag of what has them.
  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;
    std::string low = text;
    std::ranges::transform(low, low.begin(), [](unsigned char c) { return std::tolower(c); });
    if (low.empty() || low == "null" || low == "~" || low == "none") return nullptr;
    if (low == "true" || low == "yes" || low == "on") return true;
    if (low == "false" || low == "no" || low == "off") return false;
    return number_or_text(text);
  }

  const std::string& name_;
  std::size_t values_ = 0;
};

void expect_text(const std::string& name, const std::string& text) {
  if (not_utf8(text)) throw InputError(name + ": not UTF-8 (Latin-1?)");
  if (std::ranges::count(text, '\n') > kMostLines) {
    throw InputError(name + ": more than 20000 lines");
  }
}

}  // namespace

Json number_or_text(std::string_view word) {
  std::string digits(word);
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  const char* end = digits.data() + digits.size();
  std::int64_t whole = 0;
  const auto [behind, error] = std::from_chars(digits.data(), end, whole);
  if (error == std::errc() && behind == end) return whole;
  const bool numeric = digits.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                       digits.find_first_of("0123456789") != std::string::npos;
  double real = 0;
  const auto [past, wrong] = std::from_chars(digits.data(), end, real);
  if (numeric && wrong == std::errc() && past == end) return real;
  return std::string(word);
}

Json parse_yaml(const std::string& name, const std::string& text) {
  expect_text(name, text);
  Converted converted(name);
  try {
    const Json json = converted.of(YAML::Load(text), 0);
    return json.is_null() ? Json::object() : json;
  } catch (const YAML::DeepRecursion& error) {
    converted.fail(error.mark.line + 1, "too many levels");
  } catch (const YAML::Exception& error) {
    converted.fail(error.mark.line + 1, error.msg);
  }
}

Json parse_toml(const std::string& name, const std::string& text) {
  expect_text(name, text);
  Converted converted(name);
  try {
    return converted.of(toml::parse(text), 0);
  } catch (const toml::parse_error& error) {
    converted.fail(error.source().begin.line, std::string(error.description()));
  }
}

}  // namespace syncline
