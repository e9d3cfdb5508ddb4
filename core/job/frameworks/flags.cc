// Flags of a command line, or of the shell script that holds it.
#include <algorithm>
#include <cctype>
#include <map>

#include "core/error.h"
#include "core/job/frameworks/settings.h"
#include "core/json/text.h"
#include "core/visible.h"

namespace syncline::job::frameworks {
namespace {

constexpr std::size_t kMostFlags = 5000;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The words of a shell's text. "\n" stands where a command or an array's line ends.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) {}

  std::vector<std::string> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (blank(c)) {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view("\n();&|").find(c) != std::string_view::npos) {
        ++at_;
        words_.emplace_back("\n");
      } else {
        word();
      }
    }
    return std::move(words_);
  }

 private:
  void word() {
    std::string word;
    bool split = false;  // what was quoted or put in place of a variable holds words of its own
    while (at_ < text_.size() && !blank(text_[at_]) &&
           std::string_view("\n();&|").find(text_[at_]) == std::string_view::npos) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        split |= quoted(word);
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] == '\n') break;
        word += text_[at_ + 1];
        at_ += 2;
      } else if (c == '$') {
        word += variable();
      } else {
        word += c;
        ++at_;
      }
    }
    assign(word);
    if (!split) return words_.push_back(word);
    for (std::string& inner : Words(word).read()) words_.push_back(std::move(inner));
  }

  // Whether it holds flags, as arrays of "--name value" and variables of flags do.
  bool quoted(std::string& word) {
    const char quote = text_[at_++];
    std::string inner;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (quote == '"' && text_[at_] == '$') {
        inner += variable();
      } else if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '\n') inner += text_[at_ + 1];
        at_ += 2;
      } else {
        inner += text_[at_++];
      }
    }
    at_ = std::min(at_ + 1, text_.size());
    word += inner;
    const std::size_t flag = inner.find("--");
    return flag != std::string::npos && inner.find_first_of(" \t\n", flag) != std::string::npos;
  }

  // "$NAME", "${NAME}", "${NAME:-this}": what was set, else this, else the words as they stand.
  std::string variable() {
    const std::size_t first = at_++;
    const bool braces = at_ < text_.size() && text_[at_] == '{';
    const std::size_t begin = at_ += braces ? 1 : 0;
    while (at_ < text_.size() && of_a_name(text_[at_])) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    std::string otherwise;
    bool told = false;
    if (braces) {
      const std::size_t end = std::min(text_.find('}', at_), text_.size());
      const std::string rest = text_.substr(at_, end - at_);
      told = rest.starts_with(":-") || rest.starts_with("-");
      if (told) otherwise = rest.substr(rest.find('-') + 1);
      std::erase(otherwise, '"');
      at_ = std::min(end + 1, text_.size());
    }
    const auto known = set_.find(name);
    if (known != set_.end()) return known->second;
    return told ? otherwise : text_.substr(first, at_ - first);
  }

  // NAME=value. A variable that holds itself grows no further.
  void assign(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || word.size() > 4096) return;
    if (!std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), of_a_name)) {
      return;
    }
    const std::string value = word.substr(equals + 1);
    const bool flags = value.find("--") != std::string::npos;
    if (!value.empty() && !flags) set_[word.substr(0, equals)] = value;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::map<std::string, std::string> set_;
};

// "${ARGS[@]}", "$ARGS": flags that were read where they were set.
bool is_array(std::string_view word) { return word.starts_with('$') && word.ends_with("[@]}"); }

Json value_of(const std::vector<Json>& values) {
  if (values.empty()) return true;
  return values.size() == 1 ? values.front() : Json(values);
}

}  // namespace

Json flags_of(const std::string& text) {
  if (not_utf8(text)) throw InputError("flags that are not UTF-8 (Latin-1?)");
  Json flags = Json::object();
  std::string name;
  std::vector<Json> values;
  const auto close = [&] {
    if (!name.empty() && flags.size() < kMostFlags) flags[name] = value_of(values);
    name.clear();
    values.clear();
  };
  for (const std::string& whole : Words(text).read()) {
    // LM_ARGS="--swiglu ..." begins with its first flag.
    const std::size_t dashes = whole.find("=--");
    const bool assigned = dashes != std::string::npos && !whole.starts_with("-");
    const std::string word = assigned ? whole.substr(dashes + 1) : whole;
    const bool flag = word.size() > 2 && word.starts_with("--");
    if (flag || word == "\n") close();
    if (flag) {
      const std::size_t equals = word.find('=');
      name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      std::ranges::replace(name, '_', '-');
      if (equals != std::string::npos) values.push_back(number_or_text(word.substr(equals + 1)));
    } else if (!name.empty() && word != "\n" && !is_array(word)) {
      values.push_back(number_or_text(word));
    }
  }
  close();
  return flags;
}

}  // namespace syncline::job::frameworks
