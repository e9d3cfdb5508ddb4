#include "imports/frameworks/shell_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace syncline::job::frameworks {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 19> kOperators{"<<<", "<<-", ";;", "&&", "||", "<<", ">>",
                                                      ">&",  "<&",  "&>", "|&", "\n", ";",  "&",
                                                      "|",   "(",   ")",  "<",  ">"};

bool of_a_gap(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The place behind the end of the quote at `at`; the one behind that itself where nothing ends it.
std::size_t behind_quote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t end = at + 1; end < text.size(); ++end) {
    if (text[end] == quote) return end + 1;
    if (quote != '\'' && text[end] == '\\') ++end;
  }
  return at + 1;
}

class ShellLexer {
 public:
  explicit ShellLexer(const std::string& text) : text_(text) {}

  std::vector<ShellToken> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (of_a_gap(c)) {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (!operator_here()) {
        word();
      }
    }
    return std::move(tokens_);
  }

 private:
  bool operator_here() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest.starts_with("((")) return false;  // arithmetic is one word
    for (const std::string_view name : kOperators) {
      if (!rest.starts_with(name)) continue;
      const bool redirects = name.find_first_of("<>") != name.npos;
      if (redirects) drop_number();
      tokens_.push_back({std::string(name), false, {}});
      at_ += name.size();
      if (name.starts_with("<<") && name != "<<<") heres_.push_back(tokens_.size() - 1);
      if (name == "\n") take_here_documents();
      return true;
    }
    return false;
  }

  // The 2 of "2>file".
  void drop_number() {
    if (tokens_.empty() || !tokens_.back().word || end_of_last_ != at_) return;
    const std::string& last = tokens_.back().text;
    if (std::ranges::all_of(last, [](unsigned char c) { return std::isdigit(c) != 0; })) {
      tokens_.pop_back();
    }
  }

  void take_here_documents() {
    for (const std::size_t place : std::exchange(heres_, {})) {
      if (place + 1 >= tokens_.size()) continue;
      std::string end = tokens_[place + 1].text;
      std::erase_if(end, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
      while (at_ < text_.size()) {
        const std::size_t next = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, next - at_);
        at_ = std::min(next + 1, text_.size());
        const std::size_t begin = line.find_first_not_of('\t');
        if (begin != line.npos && line.substr(begin) == end) break;
        tokens_[place].here += line + "\n";
      }
    }
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !of_a_gap(text_[at_])) {
      const std::string_view rest = std::string_view(text_).substr(at_);
      const char c = text_[at_];
      if (c == '(' && (at_ == begin || text_[at_ - 1] == '=' || text_[at_ - 1] == '$')) {
        at_ = behind_nested(text_, at_, '(', ')');  // an array, a command's output, arithmetic
      } else if (rest.starts_with("${")) {
        at_ = behind_nested(text_, at_ + 1, '{', '}');
      } else if (c == '"' || c == '\'' || c == '`') {
        at_ = behind_quote(text_, at_);
      } else if (c == '\\') {
        if (rest.starts_with("\\\n")) break;
        at_ = std::min(at_ + 2, text_.size());
      } else if (std::string_view("\n;&|()<>").find(c) != std::string_view::npos) {
        break;
      } else {
        ++at_;
      }
    }
    end_of_last_ = at_;
    tokens_.push_back({text_.substr(begin, at_ - begin), true, {}});
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t end_of_last_ = 0;
  std::vector<ShellToken> tokens_;
  std::vector<std::size_t> heres_;  // tokens "<<" whose lines are still to come
};

// Sums, products, brackets and signs of whole numbers.
class Arithmetic {
 public:
  using Values = std::function<std::optional<std::int64_t>(const std::string&)>;
  Arithmetic(std::string_view text, const Values& values) : text_(text), values_(values) {}

  std::optional<std::int64_t> all() {
    const auto value = sum(0);
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  using Number = std::optional<std::int64_t>;

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  // The operator that is next, of those in `any`; 0: none.
  char next(std::string_view any) {
    skip();
    if (at_ == text_.size() || any.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }

  Number sum(int depth) {
    Number left = product(depth);
    while (const char sign = next("+-")) {
      const Number right = product(depth);
      if (!left || !right) return std::nullopt;
      std::int64_t result = 0;
      const bool over = sign == '+' ? __builtin_add_overflow(*left, *right, &result)
                                    : __builtin_sub_overflow(*left, *right, &result);
      if (over) return std::nullopt;
      left = result;
    }
    return left;
  }

  Number product(int depth) {
    Number left = single(depth);
    while (const char sign = next("*/%")) {
      const Number right = single(depth);
      if (!left || !right) return std::nullopt;
      std::int64_t result = 0;
      if (sign == '*') {
        if (__builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      } else {
        if (*right == 0 || *right == -1) return std::nullopt;
        result = sign == '/' ? *left / *right : *left % *right;
      }
      left = result;
    }
    return left;
  }

  Number single(int depth) {
    constexpr int kDeepest = 32;
    if (depth > kDeepest) return std::nullopt;
    if (const char sign = next("+-(")) {
      if (sign != '(') {
        const Number value = single(depth + 1);
        return value && sign == '-' ? Number(*value == INT64_MIN ? 0 : -*value) : value;
      }
      const Number value = sum(depth + 1);
      return next(")") != 0 ? value : std::nullopt;
    }
    next("$");
    const bool braces = next("{") != 0;
    const std::size_t begin = at_;
    while (at_ < text_.size() && of_shell_name(text_[at_])) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (braces && next("}") == 0) return std::nullopt;
    if (name.empty() || name.size() > 64) return std::nullopt;
    return values_(name);
  }

  std::string_view text_;
  const Values& values_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<ShellToken> shell_tokens(const std::string& text) { return ShellLexer(text).read(); }

std::size_t behind_nested(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\'' || c == '"' || c == '`') {
      at = behind_quote(text, at);
      continue;
    }
    if (c == '#' && open == '(' && at > 0 &&
        (of_a_gap(text[at - 1]) || text[at - 1] == '\n' || text[at - 1] == '(')) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '\\') {
      at += 2;
      continue;
    }
    depth += c == open ? 1 : c == close ? -1 : 0;
    ++at;
    if (depth == 0) return at;
  }
  return text.size();
}

bool of_shell_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) {
  return Arithmetic(text, value_of).all();
}

bool shell_pattern_fits(std::string_view pattern, std::string_view word) {
  std::size_t p = 0, w = 0, star = pattern.npos, from = 0;
  while (w < word.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = w;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == word[w])) {
      ++p;
      ++w;
    } else if (star != pattern.npos) {
      p = star + 1;
      w = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace syncline::job::frameworks
