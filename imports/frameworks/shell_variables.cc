#include "imports/frameworks/shell_variables.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "imports/frameworks/shell_tokens.h"

namespace syncline::job::frameworks {
namespace {

bool splits_words(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// What stands in single quotes at `at`, which moves behind them.
std::string in_single_quotes(const std::string& raw, std::size_t& at) {
  const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
  std::string inside = raw.substr(at + 1, end - at - 1);
  at = end + 1;
  return inside;
}

// What "\c" is at `at`, which moves behind it; of a line's end nothing.
std::string behind_backslash(const std::string& raw, std::size_t& at) {
  const char next = raw[at + 1];
  at += 2;
  return next == '\n' ? "" : std::string(1, next);
}

bool has_backslash(const std::string& raw, std::size_t at) {
  return raw[at] == '\\' && at + 1 < raw.size();
}

}  // namespace

bool looks_like_flags(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\r\"'\\");
  if (begin != text.npos && text.substr(begin).starts_with("--")) return true;
  for (const char* lead : {" --", "\t--", "\n--"}) {
    if (text.find(lead) != text.npos) return true;
  }
  return false;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (&word == &words.front() ? "" : " ") + word;
  return text;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  const auto close = [&] {
    if (any || !word.empty()) words.push_back(std::exchange(word, {}));
    any = false;
  };
  for (std::size_t at = 0; at < text.size() && words.size() < kMostWords; ++at) {
    const char c = text[at];
    const bool quote = c == '"' || c == '\'';
    const std::size_t end = quote ? text.find(c, at + 1) : text.npos;
    if (end != text.npos) {
      word += text.substr(at + 1, end - at - 1);
      any = true;
      at = end;
    } else if (splits_words(c) || (c == '\\' && at + 1 < text.size() && text[at + 1] == '\n')) {
      close();
    } else {
      word += c;
    }
  }
  close();
  return words;
}

bool is_variable(const std::string& word) {
  if (word.size() < 2 || word.front() != '$' || word[1] == '(') return false;
  if (word[1] == '{') return word.find('}') + 1 == word.size();
  return std::all_of(word.begin() + 1, word.end(), of_shell_name) ||
         (word.size() == 2 && (word[1] == '@' || word[1] == '*'));
}

bool ShellVariables::assign(const std::string& raw) {
  const std::size_t equals = raw.find('=');
  if (equals == raw.npos || equals == 0) return false;
  const bool more = raw[equals - 1] == '+';
  const std::string name = raw.substr(0, equals - (more ? 1 : 0));
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  if (!std::ranges::all_of(name, of_shell_name)) return false;
  const std::string right = raw.substr(equals + 1);
  ShellValue value;
  if (right.starts_with("(")) {
    value.array = true;
    const std::size_t end = right.size() - (right.size() > 1 && right.ends_with(")") ? 1 : 0);
    for (const ShellToken& token : shell_tokens(right.substr(1, end - 1))) {
      if (!token.word || value.words.size() > kMostWords) continue;
      for (std::string& word : expanded(token.text)) value.words.push_back(std::move(word));
    }
  } else {
    value.words = {text_of(right)};
  }
  set(name, std::move(value), more);
  return true;
}

void ShellVariables::set(const std::string& name, ShellValue value, bool more) {
  const auto old = set_.find(name);
  if (more && old != set_.end()) {
    // Copied, joined and taken apart.
    for (int copy = 0; copy < 4; ++copy) {
      if (!afford(old->second)) return;
    }
    std::vector<std::string> words = old->second.words;
    if (value.array || old->second.array) {
      words.insert(words.end(), value.words.begin(), value.words.end());
      value.array = true;
    } else {
      words = {joined_words(words) + joined_words(value.words)};
    }
    value.words = std::move(words);
  }
  const std::string all = joined_words(value.words);
  if (value.words.size() > kMostWords || all.size() > kMostText) return;
  std::erase_if(flags_, [&](const auto& flags) { return flags.name == name; });
  constexpr std::size_t kMostLists = 500;
  if (looks_like_flags(all) && flags_.size() < kMostLists)
    flags_.push_back({name, split_words(all), false});
  set_[name] = std::move(value);
}

std::vector<std::string> ShellVariables::expanded(const std::string& raw) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;  // quotes make a word, empty or not
  const auto close = [&] {
    if (any || !word.empty()) words.push_back(std::exchange(word, {}));
    any = false;
  };
  for (std::size_t at = 0; at < raw.size() && words.size() < kMostWords;) {
    const char c = raw[at];
    any |= c == '\'' || c == '"';
    if (c == '\'') {
      word += in_single_quotes(raw, at);
    } else if (c == '"') {
      at = quoted(raw, at + 1, word, any, close);
    } else if (has_backslash(raw, at)) {
      word += behind_backslash(raw, at);
    } else if (c == '$' || c == '`') {
      unquoted(parameter(raw, at), word, any, close);
    } else {
      word += c;
      ++at;
    }
  }
  close();
  return words;
}

std::string ShellVariables::text_of(const std::string& raw) {
  std::string text;
  bool any = false;
  for (std::size_t at = 0; at < raw.size() && text.size() < kMostText;) {
    const char c = raw[at];
    if (c == '\'') {
      text += in_single_quotes(raw, at);
    } else if (c == '"') {
      at = quoted(raw, at + 1, text, any, [] {});
    } else if (has_backslash(raw, at)) {
      text += behind_backslash(raw, at);
    } else if (c == '$' || c == '`') {
      text += joined_words(parameter(raw, at).words);
    } else {
      text += c;
      ++at;
    }
  }
  return text;
}

std::string ShellVariables::settled(const std::string& raw, bool& open,
                                    std::vector<std::string>& unset) {
  const std::string text = text_of(raw);
  open = text.find("$(") != text.npos;
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$' || open) {
      rest += text[at++];
      continue;
    }
    const bool braces = text.compare(at, 2, "${") == 0;
    std::size_t end = at + (braces ? 2 : 1);
    const std::size_t begin = end;
    while (end < text.size() && of_shell_name(text[end])) ++end;
    const std::string name = text.substr(begin, end - begin);
    if (braces) end = std::min(text.find('}', end), text.size() - 1) + 1;
    if (name.empty()) {
      end = std::min(at + 2, text.size());  // $@, $?
    } else if (std::ranges::find(unset, name) == unset.end() && unset.size() < kMostSaid) {
      unset.push_back(name);
    }
    at = std::max(end, at + 1);
  }
  return rest;
}

std::optional<std::int64_t> ShellVariables::arithmetic(const std::string& text) const {
  return shell_arithmetic(text, [&](const std::string& name) { return number(name, 0); });
}

std::optional<std::int64_t> ShellVariables::number(const std::string& name, int depth) const {
  if (const auto value = whole_number(name)) return value;
  const auto known = set_.find(name);
  if (known == set_.end() || known->second.words.empty() || depth > kDeepestNest) {
    return std::nullopt;
  }
  return number(known->second.words.front(), depth + 1);
}

template <typename Close>
std::size_t ShellVariables::quoted(const std::string& raw, std::size_t at, std::string& word,
                                   bool& any, const Close& close) {
  while (at < raw.size() && raw[at] != '"') {
    if (has_backslash(raw, at)) {
      const char next = raw[at + 1];
      const bool escapes = std::string_view("\n\"\\$`").find(next) != std::string_view::npos;
      if (!escapes) word += '\\';
      word += behind_backslash(raw, at);
    } else if (raw[at] == '$' || raw[at] == '`') {
      const Piece piece = parameter(raw, at);
      if (!piece.list) {
        word += joined_words(piece.words);
        continue;
      }
      for (const std::string& one : piece.words) {
        if (&one != &piece.words.front()) close();
        word += one;
        any = true;
      }
    } else {
      word += raw[at++];
    }
  }
  return at + 1;
}

template <typename Close>
void ShellVariables::unquoted(const Piece& piece, std::string& word, bool& any,
                              const Close& close) {
  for (const std::string& one : piece.words) {
    if (&one != &piece.words.front()) close();
    if (piece.list || one.starts_with("$(") || one.starts_with("${")) {
      word += one;
      any |= piece.list;
      continue;
    }
    if (!one.empty() && splits_words(one.front())) close();
    const std::vector<std::string> parts = split_words(one);
    for (const std::string& part : parts) {
      if (&part != &parts.front()) close();
      word += part;
    }
    if (!one.empty() && splits_words(one.back())) close();
  }
}

// At '$' or '`'; `at` moves behind it.
ShellVariables::Piece ShellVariables::parameter(const std::string& raw, std::size_t& at) {
  const std::size_t first = at;
  const std::string_view rest = std::string_view(raw).substr(at);
  if (rest.front() == '`' || rest.starts_with("$(")) return output_of(raw, at);
  if (rest.starts_with("${")) {
    at = behind_nested(raw, at + 1, '{', '}');
    const std::string inside = raw.substr(first + 2, at - first - 2);
    return braced(inside.ends_with('}') ? inside.substr(0, inside.size() - 1) : inside);
  }
  const std::size_t begin = ++at;
  while (at < raw.size() && of_shell_name(raw[at])) ++at;
  const std::string name = raw.substr(begin, at - begin);
  if (!name.empty()) return value_of(name, "$" + name);
  const bool special =
      at < raw.size() && std::string_view("@*#?!$-").find(raw[at]) != std::string_view::npos;
  if (special) ++at;
  if (special && raw[begin] == '#') return {{"0"}};  // the script's own arguments
  return {{raw.substr(first, at - first)}};
}

// "$(command)" and "`command`" stay, arithmetic is what it comes to.
ShellVariables::Piece ShellVariables::output_of(const std::string& raw, std::size_t& at) const {
  const std::size_t first = at;
  if (raw[at] == '`') {
    const std::size_t end = std::min(raw.find('`', at + 1), raw.size());
    at = std::min(end + 1, raw.size());
    if (first + 1 < raw.size() && raw[first + 1] == '#') return {};  // a comment inside a command
    return {{"$(" + raw.substr(first + 1, end - first - 1) + ")"}};
  }
  at = behind_nested(raw, at + 1, '(', ')');
  const std::string all = raw.substr(first, at - first);
  if (all.starts_with("$((") && all.ends_with("))") && all.size() >= 5) {
    if (const auto value = arithmetic(all.substr(3, all.size() - 5))) {
      return {{std::to_string(*value)}};
    }
  }
  return {{all}};
}

// "NAME:-this", "NAME[@]", "#NAME[@]"; other forms stay as they are written.
ShellVariables::Piece ShellVariables::braced(const std::string& inside) {
  const std::string written = "${" + inside + "}";
  const std::size_t begin = inside.starts_with('#') ? 1 : 0;
  std::size_t end = begin;
  while (end < inside.size() && of_shell_name(inside[end])) ++end;
  const std::string name = inside.substr(begin, end - begin);
  const std::string rest = inside.substr(end);
  if (begin == 1) {
    const auto known = set_.find(name);
    const bool array = known != set_.end() && rest.starts_with('[');
    return {{array ? std::to_string(known->second.words.size()) : written}};
  }
  if (rest.empty()) return value_of(name, written);
  return rest.front() == '[' ? elements(name, rest, written) : otherwise(name, rest, written);
}

ShellVariables::Piece ShellVariables::elements(const std::string& name, const std::string& rest,
                                               const std::string& written) {
  const auto known = set_.find(name);
  if (known == set_.end() || !afford(known->second)) return {{written}};
  mark(name);
  if (rest == "[@]" || rest == "[*]") return {known->second.words, rest[1] == '@'};
  const auto place = arithmetic(rest.substr(1, rest.size() - 2));
  if (!place || *place < 0 || !rest.ends_with(']')) return {{written}};
  const auto at = static_cast<std::size_t>(*place);
  return {{at < known->second.words.size() ? known->second.words[at] : ""}};
}

// Of a variable that nothing sets, or to nothing.
ShellVariables::Piece ShellVariables::otherwise(const std::string& name, const std::string& rest,
                                                const std::string& written) {
  const bool colon = rest.front() == ':';
  const char kind = rest.size() > (colon ? 1U : 0U) ? rest[colon ? 1 : 0] : ' ';
  const auto known = set_.find(name);
  const std::string text = known != set_.end() ? joined_words(known->second.words) : "";
  const bool given = known != set_.end() && (!colon || !text.empty()) && !is_variable(text);
  const std::string other = rest.substr(std::min<std::size_t>(rest.size(), colon ? 2 : 1));
  if (kind == '?') return value_of(name, "$" + name);
  if ((kind != '-' && kind != '=' && kind != '+') || deep_ > kDeepestNest) return {{written}};
  if (kind == '+' && !given) return {{""}};
  if (kind != '+' && given) return value_of(name, written);
  ++deep_;
  const std::string instead = text_of(other);
  --deep_;
  if (kind == '=') set(name, {{instead}, false});
  return {{instead}};
}

ShellVariables::Piece ShellVariables::value_of(const std::string& name,
                                               const std::string& written) {
  const auto known = set_.find(name);
  if (known == set_.end() || !afford(known->second)) return {{written}};
  mark(name);
  return {known->second.words};
}

bool ShellVariables::afford(const ShellValue& value) {
  constexpr std::size_t kMost = std::size_t{1} << 22;  // each is copied a few dozen times
  for (const std::string& word : value.words) spent_ += word.size() + 1;
  return spent_ < kMost;
}

void ShellVariables::mark(const std::string& name) {
  if (!counts_) return;
  for (auto& flags : flags_) flags.used |= flags.name == name;
}

}  // namespace syncline::job::frameworks
