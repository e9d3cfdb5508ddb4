#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json/settings.h"
#include "core/visible.h"

namespace syncline {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostLines = 20000;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Where a comment begins ('#' behind a blank) or a key ends (':' ahead of one), outside quotes.
std::size_t outside_quotes(std::string_view text, char wanted) {
  // What lies beyond either end is one too.
  const auto blank = [&](std::size_t at) {
    return at >= text.size() || text[at] == ' ' || text[at] == '\t';
  };
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool word_begins = i == 0 || std::string_view(" \t[{,:").find(text[i - 1]) != text.npos;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && word_begins) {
      quote = c;
    } else if (c == wanted && blank(wanted == '#' ? i - 1 : i + 1)) {
      return i;
    }
  }
  return std::string_view::npos;
}

// Brackets that are not closed.
int open_brackets(std::string_view text) {
  int open = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      open += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    }
  }
  return open;
}

class Yaml {
 public:
  Yaml(const std::string& name, const std::string& text) : name_(name) { cut(text); }

  Json read() {
    if (lines_.empty()) return Json::object();
    Json root = block(lines_.front().indent, 0);
    if (at_ < lines_.size()) fail("its indent fits nothing above it");
    return root;
  }

 private:
  struct Line {
    std::size_t number;
    std::size_t indent;
    std::string text;
  };

  [[noreturn]] void fail(const std::string& what) const {
    const std::size_t at = std::min(at_, lines_.size() - 1);
    throw InputError(name_ + ": line " + std::to_string(lines_.empty() ? 1 : lines_[at].number) +
                     ": " + what);
  }

  // Lines that say something. Block texts ("key: |") are left out, their keys stay.
  void cut(const std::string& text) {
    std::size_t number = 0;
    std::size_t block = std::string::npos;  // indent of the key whose block text this is
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line(text.data() + begin, end - begin);
      begin = end + 1;
      if (++number > kMostLines) throw InputError(name_ + ": more than 20000 lines");
      const std::size_t indent = line.find_first_not_of(' ');
      if (indent == std::string_view::npos || trimmed(line).empty()) continue;
      if (block != std::string::npos && indent > block) continue;
      block = std::string::npos;
      line = trimmed(line.substr(0, outside_quotes(line, '#')));
      if (line.empty() || line == "---" || line == "...") continue;
      const bool goes_on = !lines_.empty() && open_brackets(lines_.back().text) > 0;
      if (goes_on) {
        lines_.back().text += " " + std::string(line);
        continue;
      }
      const std::size_t bar = line.find_last_of("|>");
      const bool block_text = bar != std::string_view::npos && bar >= 2 && line[bar - 1] == ' ' &&
                              line[bar - 2] == ':' && line.size() - bar <= 3;
      if (block_text) block = indent;
      lines_.push_back({number, indent, std::string(block_text ? line.substr(0, bar - 1) : line)});
    }
  }

  bool in_list(std::size_t indent) const {
    return at_ < lines_.size() && lines_[at_].indent == indent &&
           (lines_[at_].text == "-" || lines_[at_].text.starts_with("- "));
  }

  Json block(std::size_t indent, int depth) {
    if (depth > kDeepest) fail("more than 64 levels");
    if (in_list(indent)) return list(indent, depth);
    Json map = Json::object();
    if (outside_quotes(lines_[at_].text, ':') == std::string::npos) {
      return scalar(lines_[at_++].text);
    }
    while (at_ < lines_.size() && lines_[at_].indent == indent && !in_list(indent)) {
      const std::string text = lines_[at_].text;
      const std::size_t colon = outside_quotes(text, ':');
      if (colon == std::string::npos) fail("expected 'key: value'");
      const std::string key(unquoted(trimmed(std::string_view(text).substr(0, colon))));
      if (map.contains(key)) fail("the key '" + key + "' stands twice");
      const std::string value(trimmed(std::string_view(text).substr(colon + 1)));
      map[key] = value.empty() ? below(indent, depth) : in_line(value);
    }
    return map;
  }

  // What stands under a key or a dash, which this passes.
  Json below(std::size_t indent, int depth) {
    ++at_;
    if (at_ < lines_.size() && lines_[at_].indent > indent) {
      return block(lines_[at_].indent, depth + 1);
    }
    return in_list(indent) ? list(indent, depth + 1) : Json();
  }

  Json list(std::size_t indent, int depth) {
    if (depth > kDeepest) fail("more than 64 levels");
    Json items = Json::array();
    while (in_list(indent)) {
      Line& line = lines_[at_];
      const std::string rest(trimmed(std::string_view(line.text).substr(1)));
      if (rest.empty()) {
        items.push_back(below(indent, depth));
      } else if (rest.front() != '[' && rest.front() != '{' &&
                 outside_quotes(rest, ':') != std::string::npos) {
        line.indent = indent + line.text.size() - rest.size();
        line.text = rest;
        items.push_back(block(line.indent, depth + 1));
      } else {
        items.push_back(in_line(rest));
      }
    }
    return items;
  }

  // The rest of this line, which it passes.
  Json in_line(const std::string& text) {
    if (text.front() != '[' && text.front() != '{') {
      ++at_;
      return scalar(text);
    }
    std::size_t at = 0;
    Json value = flow(text, at, 0);
    if (!trimmed(std::string_view(text).substr(at)).empty()) {
      fail("something stands behind the value");
    }
    ++at_;
    return value;
  }

  Json flow(const std::string& text, std::size_t& at, int depth) {
    if (depth > kDeepest) fail("more than 64 levels");
    const auto skip = [&] { at = std::min(text.find_first_not_of(' ', at), text.size()); };
    skip();
    const bool list = at < text.size() && text[at] == '[';
    if (!list && (at >= text.size() || text[at] != '{')) return word(text, at);
    const char end = list ? ']' : '}';
    Json values = list ? Json::array() : Json::object();
    for (++at, skip(); at < text.size() && text[at] != end; skip()) {
      Json value = flow(text, at, depth + 1);
      skip();
      if (list) {
        values.push_back(std::move(value));
      } else {
        const std::string key = value.is_string() ? value.get<std::string>() : value.dump();
        if (at >= text.size() || text[at] != ':') fail("expected ':'");
        values[key] = flow(text, ++at, depth + 1);
        skip();
      }
      if (at < text.size() && text[at] == ',') {
        ++at;
      } else if (at < text.size() && text[at] != end) {
        fail("expected ','");
      }
    }
    if (at >= text.size()) fail("a list or a mapping without an end");
    ++at;
    return values;
  }

  Json word(const std::string& text, std::size_t& at) {
    const std::size_t first = at;
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
      at = text.find(text[at], at + 1);
      if (at == std::string::npos) fail("a text without an end");
      return scalar(text.substr(first, ++at - first));
    }
    while (at < text.size() && std::string_view(",]}").find(text[at]) == std::string_view::npos &&
           !(text[at] == ':' && (at + 1 == text.size() || text[at + 1] == ' '))) {
      ++at;
    }
    if (at == first) fail("expected a value");
    return scalar(std::string(trimmed(std::string_view(text).substr(first, at - first))));
  }

  Json scalar(const std::string& text) const {
    const std::string inner(unquoted(text));
    if (inner.size() != text.size()) return inner;
    std::string low = text;
    std::ranges::transform(low, low.begin(), [](unsigned char c) { return std::tolower(c); });
    if (low.empty() || low == "null" || low == "~" || low == "none") return nullptr;
    for (const char* word : {"true", "yes", "on"}) {
      if (low == word) return true;
    }
    for (const char* word : {"false", "no", "off"}) {
      if (low == word) return false;
    }
    return number_or_text(text);
  }

  std::string name_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

Json parse_yaml(const std::string& name, const std::string& text) {
  if (not_utf8(text)) throw InputError(name + ": not UTF-8 (Latin-1?)");
  return Yaml(name, text).read();
}

}  // namespace syncline
