#include "formats/json/text.h"

#include <expat.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "core/base/error.h"
#include "formats/text/visible.h"

namespace syncline {
namespace {

// Converts the values of one file; errors name the line.
class Converted {
 public:
  explicit Converted(const std::string& name) : name_(name) {}

  Json of(const YAML::Node& node, std::size_t depth) {
    const std::int64_t line = node.Mark().line + 1;
    count(line, depth);
    if (node.IsScalar()) return scalar(node);
    Json json = node.IsSequence() ? Json::array() : node.IsMap() ? Json::object() : Json();
    if (node.IsSequence()) {
      for (const auto& entry : node) json.push_back(of(entry, depth + 1));
    }
    if (!node.IsMap()) return json;
    Keyed members(json);
    for (const auto& entry : node) {
      const std::int64_t at = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) fail(at, "a key that is no word");
      const std::string& key = entry.first.Scalar();
      if (members.find(key) != nullptr)
        fail(at, "the key '" + shorten_text(key) + "' stands twice");
      members.set(key, of(entry.second, depth + 1));
    }
    return json;
  }

  Json of(const toml::node& node, std::size_t depth) {
    count(node.source().begin.line, depth);
    if (const toml::table* table = node.as_table()) {
      Json json = Json::object();
      Keyed members(json);
      for (const auto& [key, value] : *table) {
        members.set(std::string(key.str()), of(value, depth + 1));
      }
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
    if (++values_ > kMaxValues) fail(line, "more than 100000 values");
  }

  // Converts a word without quotes, which may be another type than text; quoted words have tag "!".
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

// Stores the elements of an XML file, those that are still open last. expat calls its functions.
struct Elements {
  XML_Parser parser = nullptr;
  std::vector<Json> open = {{{"inside", Json::array()}}};
  std::size_t count = 0;
  std::string wrong;

  void begin(const char* tag, const char** attributes) {
    if (open.size() > kDeepest) stop("more than 64 levels");
    Json element{{"tag", tag}, {"attributes", Json::object()}, {"inside", Json::array()}};
    Keyed named(element["attributes"]);
    for (; *attributes != nullptr; attributes += 2, ++count)
      named.set(attributes[0], attributes[1]);
    if (++count > kMaxValues) stop("more than 100000 values");
    open.push_back(std::move(element));
  }

  void end() {
    Json element = std::move(open.back());
    open.pop_back();
    open.back()["inside"].push_back(std::move(element));
  }

  // Refuses a DOCTYPE with declarations: a short file could expand without limit, by entities that
  // refer to each other or by attributes that every element gets.
  void declare(bool something) {
    if (something)
      stop("a DOCTYPE that declares anything is not read: leave out what is in its []");
  }

  void stop(const char* why) {
    if (wrong.empty()) wrong = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

// Returns the line; expat 2.9 warns about the call that all versions have.
std::uint64_t line_of(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return XML_GetCurrentLineNumber64(parser);
#else
  return XML_GetCurrentLineNumber(parser);
#endif
}

void expect_text(const std::string& name, const std::string& text) {
  if (not_utf8(text)) throw InputError(name + ": not UTF-8 (Latin-1?)");
  if (std::cmp_greater(std::ranges::count(text, '\n'), kMaxLines)) {
    throw InputError(name + ": more than 20000 lines");
  }
}

bool is_one_of(char c, std::string_view letters) { return letters.find(c) != letters.npos; }

// Counts the levels of a TOML text before the parser, which recurses into each: open brackets, or
// parts of a dotted key. Ignores quoted text and comments.
class TomlLevels {
 public:
  explicit TomlLevels(std::string_view text) : text_(text) {}

  // Returns the first line with more than kDeepest levels, counted from 1; 0: none.
  std::int64_t too_deep() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_quoted(c);
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        count(c);
        ++at_;
      }
      if (open_ > kDeepest || dots_ > kDeepest) return line_;
    }
    return 0;
  }

 private:
  void count(char c) {
    if (c == '\n') ++line_;
    if (c == '[' || c == '{') ++open_;
    if ((c == ']' || c == '}') && open_ > 0) --open_;
    dots_ = c == '.' ? dots_ + 1 : is_one_of(c, "\n=,[]{}") ? 0 : dots_;
  }

  void skip_quoted(char quote) {
    const std::string three(3, quote);
    const bool long_one = text_.substr(at_).starts_with(three);
    at_ += long_one ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '\n' && !long_one) return;
      if (long_one ? text_.substr(at_).starts_with(three) : c == quote) {
        at_ += long_one ? 3 : 1;
        return;
      }
      at_ += c == '\\' && quote == '"' ? 2 : 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::size_t open_ = 0;
  std::size_t dots_ = 0;
};

}  // namespace

void expect_few_keys(const std::string& name, const Json& settings) {
  if (settings.is_object() && settings.size() > kMaxKeys) {
    throw InputError(name + ": an object of " + std::to_string(settings.size()) +
                     " keys, expected at most " + std::to_string(kMaxKeys));
  }
  if (!settings.is_structured()) return;
  for (const Json& inside : settings) expect_few_keys(name, inside);
}

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
    expect_few_keys(name, json);
    return json.is_null() ? Json::object() : json;
  } catch (const YAML::DeepRecursion& error) {
    converted.fail(error.mark.line + 1, "too many levels");
  } catch (const YAML::Exception& error) {
    const std::size_t open = text.find("{{"), close = text.find("}}", open);
    if (open == text.npos || close == text.npos) converted.fail(error.mark.line + 1, error.msg);
    const std::string place = text.substr(open, close + 2 - open);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), '\n');
    converted.fail(line, "a template: fill in " + shorten_text(visible(place), 60) + " first");
  }
}

Json parse_toml(const std::string& name, const std::string& text) {
  expect_text(name, text);
  Converted converted(name);
  try {
    const std::int64_t line = TomlLevels(text).too_deep();
    if (line > 0) converted.fail(line, "more than 64 levels");
    Json json = converted.of(toml::parse(text), 0);
    expect_few_keys(name, json);
    return json;
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
  XML_SetStartDoctypeDeclHandler(
      parser.get(), [](void* data, const char*, const char*, const char*, int declares) {
        static_cast<Elements*>(data)->declare(declares != 0);
      });
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) !=
      XML_STATUS_OK) {
    throw InputError(
        name + ": line " + std::to_string(line_of(parser.get())) + ": " +
        (read.wrong.empty() ? XML_ErrorString(XML_GetErrorCode(parser.get())) : read.wrong));
  }
  return std::move(read.open.front()["inside"].front());
}

}  // namespace syncline
