#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json/settings.h"
#include "core/visible.h"

namespace syncline {
namespace {

constexpr int kDeepest = 64;
constexpr std::ptrdiff_t kMostLines = 20000;

class Toml {
 public:
  Toml(const std::string& name, const std::string& text) : name_(name), text_(text) {}

  Json read() {
    if (std::ranges::count(text_, '\n') > kMostLines) fail("more than 20000 lines");
    Json root = Json::object();
    Json* table = &root;
    for (skip_lines(); at_ < text_.size(); skip_lines()) {
      if (text_[at_] == '[') {
        table = header(root);
      } else {
        const std::vector<std::string> keys = path('=');
        set(*table, keys, value(0));
      }
      skip_blanks();
      if (at_ < text_.size() && text_[at_] != '\n') fail("something stands behind the value");
    }
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    throw InputError(name_ + ": line " + std::to_string(1 + std::count(text_.begin(), end, '\n')) +
                     ": " + what);
  }
  bool next_is(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }
  void expect(char c) {
    if (at_ >= text_.size() || text_[at_] != c) fail(std::string("expected '") + c + "'");
    ++at_;
  }
  // Blanks, and a comment behind them.
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_lines() {
    for (skip_blanks(); at_ < text_.size() && text_[at_] == '\n'; skip_blanks()) ++at_;
  }

  // "a.b" or "a"."b", up to `end`, which is passed.
  std::vector<std::string> path(char end) {
    std::vector<std::string> keys;
    do {
      skip_blanks();
      const std::size_t first = at_;
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
        keys.push_back(quoted());
      } else {
        const auto bare = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
        };
        while (at_ < text_.size() && bare(text_[at_])) ++at_;
        keys.push_back(text_.substr(first, at_ - first));
        if (at_ == first) fail("expected a key");
      }
      skip_blanks();
    } while (at_ < text_.size() && text_[at_] == '.' && ++at_ > 0);
    if (keys.size() > kDeepest) fail("more than 64 levels");
    expect(end);
    return keys;
  }

  Json& inner(Json& table, const std::string& key) {
    Json& found = table[key];
    if (found.is_null()) found = Json::object();
    Json& last = found.is_array() && !found.empty() ? found.back() : found;
    if (!last.is_object()) fail("'" + key + "' is no table");
    return last;
  }

  void set(Json& table, const std::vector<std::string>& keys, Json value) {
    Json* at = &table;
    for (std::size_t k = 0; k + 1 < keys.size(); ++k) at = &inner(*at, keys[k]);
    if (at->contains(keys.back())) fail("the key '" + keys.back() + "' stands twice");
    (*at)[keys.back()] = std::move(value);
  }

  Json* header(Json& root) {
    const bool list = next_is("[[");
    at_ += list ? 2 : 1;
    const std::vector<std::string> keys = path(']');
    if (list) expect(']');
    Json* at = &root;
    for (std::size_t k = 0; k + 1 < keys.size(); ++k) at = &inner(*at, keys[k]);
    if (!list) return &inner(*at, keys.back());
    Json& tables = (*at)[keys.back()];
    if (tables.is_null()) tables = Json::array();
    if (!tables.is_array()) fail("'" + keys.back() + "' is no list of tables");
    tables.push_back(Json::object());
    return &tables.back();
  }

  std::string quoted() {
    const char quote = text_[at_];
    const std::string three(3, quote);
    const bool several = next_is(three);
    const std::string end = several ? three : std::string(1, quote);
    std::string text;
    for (at_ += end.size(); !next_is(end); ++at_) {
      if (at_ >= text_.size() || (!several && text_[at_] == '\n')) fail("a text without an end");
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        text += text_[at_] == 'n' ? '\n' : text_[at_] == 't' ? '\t' : text_[at_];
      } else {
        text += text_[at_];
      }
    }
    at_ += end.size();
    return text;
  }

  Json value(int depth) {
    if (depth > kDeepest) fail("more than 64 levels");
    skip_blanks();
    const char first = at_ < text_.size() ? text_[at_] : '\n';
    if (first == '"' || first == '\'') return quoted();
    if (first == '[') return list(depth);
    if (first == '{') return table(depth);
    const std::size_t end = std::min(text_.find_first_of(" \t\r,]}\n#", at_), text_.size());
    const std::string word = text_.substr(at_, end - at_);
    const bool known = word == "true" || word == "false";
    // Dates begin with a digit too.
    if (!known && word.find_first_of("+-0123456789") != 0) fail("expected a value");
    at_ = end;
    return known ? Json(word == "true") : number_or_text(word);
  }

  Json list(int depth) {
    Json values = Json::array();
    for (++at_, skip_lines(); !next_is("]"); skip_lines()) {
      values.push_back(value(depth + 1));
      skip_lines();
      if (!next_is("]")) expect(',');
    }
    ++at_;
    return values;
  }

  Json table(int depth) {
    Json values = Json::object();
    for (++at_, skip_blanks(); !next_is("}"); skip_blanks()) {
      const std::vector<std::string> keys = path('=');
      set(values, keys, value(depth + 1));
      skip_blanks();
      if (!next_is("}")) expect(',');
    }
    ++at_;
    return values;
  }

  const std::string& name_;
  const std::string& text_;
  std::size_t at_ = 0;
};

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

Json parse_toml(const std::string& name, const std::string& text) {
  if (not_utf8(text)) throw InputError(name + ": not UTF-8 (Latin-1?)");
  return Toml(name, text).read();
}

}  // namespace syncline
