#include "formats/json/text.h"

#include <expat.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <sstream>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "core/base/error.h"
#include "formats/text/visible.h"

namespace syncline {
namespace {

constexpr std::ptrdiff_t kMostLines = 20000;
// Aliases say a value again and again.
constexpr std::size_t kMostValues = 100000;

// Of one file: what is wrong is told with its line.
class Converted {
 public:
  explicit Converted(const std::string& name) : name_(name) {}

  Json of(const YAML::Node& node, std::size_t depth) {
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

  Json of(const toml::node& node, std::size_t depth) {
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
  void count(std::int64_t line, std::size_t depth) {
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

// The elements of an XML file, those that are still open last. expat calls these.
struct Elements {
  XML_Parser parser = nullptr;
  std::vector<Json> open = {{{"inside", Json::array()}}};
  std::size_t count = 0;
  std::string wrong;

  void begin(const char* tag, const char** attributes) {
    if (open.size() > kDeepest) stop("more than 64 levels");
    if (++count > kMostValues) stop("more than 100000 values");
    Json element{{"tag", tag}, {"attributes", Json::object()}, {"inside", Json::array()}};
    for (; *attributes != nullptr; attributes += 2) {
      element["attributes"][attributes[0]] = attributes[1];
    }
    open.push_back(std::move(element));
  }

  void end() {
    Json element = std::move(open.back());
    open.pop_back();
    open.back()["inside"].push_back(std::move(element));
  }

  void stop(const char* why) {
    wrong = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

// expat 2.9 warns of the call that all have.
std::uint64_t line_of(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

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

Json parse_xml(const std::string& name, const std::string& text) {
  expect_text(name, text);
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  Elements read;
  read.parser = parser.get();
  XML_SetUserData(parser.get(), &read);
  XML_SetElementHandler(
      parser.get(),
      [](void* data, const char* tag, const char** attributes) {
        static_cast<Elements*>(data)->begin(tag, attributes);
      },
      [](void* data, const char*) { static_cast<Elements*>(data)->end(); });
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) !=
      XML_STATUS_OK) {
    throw InputError(
        name + ": line " + std::to_string(line_of(parser.get())) + ": " +
        (read.wrong.empty() ? XML_ErrorString(XML_GetErrorCode(parser.get())) : read.wrong));
  }
  return std::move(read.open.front()["inside"].front());
}

}  // namespace syncline
