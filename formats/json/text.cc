#include "formats/json/text.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/text/visible.h"

namespace syncline {
namespace {

// Builds values from the parser's events, in time linear in the text. The parser's own callbacks
// and its ordered objects search all earlier members at each key and each end.
class StrictValues {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // text has no binary values
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = open_.back();
    auto& members = members_of(*level.value);
    // The parser silently keeps the last of repeated keys; a second key is a mistake.
    if (is_known(level, members, name) && !repeated_) repeated_ = name;
    members.emplace_back(std::move(name), Json());
    return true;
  }

  template <typename Error>
  bool parse_error(std::size_t, const std::string&, const Error& error) {
    throw error;
  }

  bool too_deep() const { return too_deep_; }
  const std::optional<std::string>& repeated() const { return repeated_; }
  Json take() { return std::move(root_); }

 private:
  // An object or list that is not closed yet, with the keys of an object with many.
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
  };
  using Members = std::vector<Json::object_t::value_type>;

  // Returns the ordered object's members, to append without a search for an equal key.
  static Members& members_of(Json& object) { return object.get_ref<Json::object_t&>(); }

  static bool is_known(Level& level, const Members& members, const std::string& name) {
    constexpr std::size_t kFew = 16;  // up to here a linear search is faster
    if (members.size() < kFew) {
      return std::any_of(members.begin(), members.end(),
                         [&](const auto& member) { return member.first == name; });
    }
    if (level.keys.empty()) {
      for (const auto& member : members) level.keys.insert(member.first);
    }
    return !level.keys.insert(name).second;
  }

  // Puts the next value into its place.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back().value;
    if (parent.is_object()) return members_of(parent).back().second = std::move(value);
    auto& list = parent.get_ref<Json::array_t&>();
    list.push_back(std::move(value));
    return list.back();
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  // Limits the depth: code that walks through a value recurses for each level.
  bool open(Json value) {
    too_deep_ = open_.size() == kDeepest;
    if (too_deep_) return false;
    open_.push_back({&place(std::move(value)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> open_;
  std::optional<std::string> repeated_;
  bool too_deep_ = false;
};

// Returns "line 3, column 7" of a byte; both are counted from 1, as parsers do.
std::string position_text(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  const std::size_t last = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = last == std::string::npos ? end + 1 : end - last;
  return "line " + std::to_string(line + 1) + ", column " + std::to_string(column);
}

// Returns the parser's text about a number too large for a double, without its numbering.
std::string overflow_text(const std::string& text, const std::string& what) {
  const std::size_t open = what.find('\'');
  const std::size_t close = what.rfind('\'');
  if (open == std::string::npos || close <= open + 1) return "not valid JSON: " + what;
  const std::string number = what.substr(open + 1, close - open - 1);
  return "the number " + number + " at " + position_text(text, text.find(number) + 1) +
         " is too large";
}

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kPunctuation = "{}[],:";

// A string, a sign, or a run of other characters.
struct Token {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::string_view in(const std::string& text) const {
    return std::string_view(text).substr(begin, end - begin);
  }
};

std::size_t end_of_token(const std::string& text, std::size_t begin) {
  if (kPunctuation.find(text[begin]) != std::string_view::npos) return begin + 1;
  std::size_t end = begin + 1;
  if (text[begin] == '"') {
    while (end < text.size() && text[end] != '"' && text[end] != '\n') {
      end += text[end] == '\\' ? 2 : 1;
    }
    if (end >= text.size()) return text.size();
    return text[end] == '"' ? end + 1 : end;
  }
  while (end < text.size() && text[end] != '"' &&
         kBlanks.find(text[end]) == std::string_view::npos &&
         kPunctuation.find(text[end]) == std::string_view::npos) {
    ++end;
  }
  return end;
}

// The token that contains a byte, and the previous one.
struct Tokens {
  Token before;
  Token at;
};

Tokens tokens_at(const std::string& text, std::size_t byte) {
  Tokens tokens;
  for (std::size_t begin = 0; begin < text.size();) {
    begin = text.find_first_not_of(kBlanks, begin);
    if (begin == std::string::npos) break;
    tokens.before = tokens.at;
    tokens.at = {begin, end_of_token(text, begin)};
    if (tokens.at.end >= byte) break;
    begin = tokens.at.end;
  }
  return tokens;
}

bool is_value(std::string_view token) {
  return !token.empty() && token != "," && token != ":" && token != "{" && token != "[";
}

std::string line_text(const std::string& text, const Token& token) {
  const std::string position = position_text(text, token.begin + 1);
  return position.substr(0, position.find(','));
}

bool is_open_string(std::string_view token) {
  return token.starts_with('"') && (token.size() == 1 || !token.ends_with('"'));
}

// Returns a token's beginning, cut between letters, with blanks for control characters.
std::string quoted_text(std::string_view token) {
  constexpr std::size_t kLongest = 40;
  std::size_t size = std::min(token.size(), kLongest);
  while (size > 0 && size < token.size() &&
         (static_cast<unsigned char>(token[size]) & 0xc0) == 0x80) {
    --size;
  }
  std::string text(token.substr(0, size));
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  }
  return "'" + text + "'";
}

bool not_a_number(std::string_view token) {
  if (!token.empty() && (token.front() == '-' || token.front() == '+')) token.remove_prefix(1);
  std::string word;
  for (const char letter : token) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return word == "nan" || word == "inf" || word == "infinity";
}

// Returns true if the text begins like YAML, with "key: value".
bool is_yaml(const std::string& text, const Token& first) {
  const std::string_view word = first.in(text);
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  return word == "---" || (first.end < text.size() && text[first.end] == ':' && !word.empty() &&
                           std::all_of(word.begin(), word.end(), letter));
}

std::optional<std::string> other_encoding(const std::string& text) {
  if (text.starts_with("\x1f\x8b")) return "this is a gzip file, unpack it first";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return "this is UTF-16, save it as UTF-8";
  }
  return std::nullopt;
}

// Returns the line of a byte (counted from 1), cut around it, and a mark below it.
std::vector<std::string> shown_place(const std::string& text, std::size_t byte) {
  constexpr std::size_t kBefore = 50, kBehind = 20;  // letters of the line that are shown
  const std::size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const std::size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const auto inside = [&](std::size_t place) {
    return place < text.size() && (static_cast<unsigned char>(text[place]) & 0xc0) == 0x80;
  };
  std::size_t first = at, last = at;
  for (std::size_t i = 0; first > begin && (i < kBefore || inside(first)); --first) {
    if (!inside(first)) ++i;
  }
  for (std::size_t i = 0; last < end && (i < kBehind || inside(last)); ++last) {
    if (!inside(last)) ++i;
  }
  // Bytes that are not UTF-8 are not sent to a terminal.
  const auto shown = [&](std::size_t from, std::size_t to) {
    std::string part = visible(std::string_view(text).substr(from, to - from));
    while (const auto bad = not_utf8(part)) part[*bad] = '?';
    return part;
  };
  const std::string number =
      "  " +
      std::to_string(
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1) +
      " | " + (first > begin ? "..." : "");
  const std::string before = shown(first, at);
  const auto letters =
      static_cast<std::size_t>(std::count_if(before.begin(), before.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }));
  return {number + before + shown(at, last) + (last < end ? "..." : ""),
          std::string(number.size() + letters, ' ') + "^"};
}

struct SyntaxMistake {
  std::string what;      // with its place
  std::size_t byte = 0;  // counted from 1; 0: the whole text
};

// Returns the mistake at the byte that the parser stopped at: a comma too many or too few, a
// comment, NaN, another encoding. `behind_key`: the parser expected a colon after a key. Nullopt
// for other mistakes.
std::optional<SyntaxMistake> syntax_mistake(const std::string& text, std::size_t byte,
                                            bool behind_key) {
  if (auto encoding = other_encoding(text)) return SyntaxMistake{*encoding, 0};
  const auto [before, at] = tokens_at(text, byte);
  const std::string_view found = at.in(text);
  const std::string_view last = before.in(text);
  const std::string where = " (" + position_text(text, at.begin + 1) + ")";
  const auto here = [&, place = at.begin + 1](const std::string& what) {
    return SyntaxMistake{what, place};
  };
  if (last.empty() && is_yaml(text, at)) {
    return here("this looks like YAML: JSON begins with '{' and quotes its keys" + where);
  }
  if (const auto bad = not_utf8(found)) {
    return SyntaxMistake{"a letter that is not UTF-8 at " +
                             position_text(text, at.begin + *bad + 1) +
                             " (Latin-1?), save the file as UTF-8",
                         at.begin + *bad + 1};
  }
  if (is_open_string(found)) return here("a quote is missing in " + line_text(text, at));
  if (found.starts_with("//") || found.starts_with("/*") || found.starts_with("#")) {
    return here("JSON has no comments" + where + "; \"about\" holds text");
  }
  if (found == "True" || found == "False" || found == "None") {
    return here("JSON writes true, false and null, not " + std::string(found) + where);
  }
  if (not_a_number(found)) return here(std::string(found) + " is not a JSON number" + where);
  if (found.starts_with("'")) return here("JSON quotes with \", not with '" + where);
  if (last == "," && found == ",") return here("two commas in a row (" + line_text(text, at) + ")");
  if (last == "," && (found == "}" || found == "]")) {
    return SyntaxMistake{
        "a comma before '" + std::string(found) + "' (" + line_text(text, before) + ")",
        before.begin + 1};
  }
  if (behind_key && is_value(last)) {
    return here("a colon is missing after " + quoted_text(last) + where);
  }
  const bool begins_value = is_value(found) || found == "{" || found == "[";
  if (is_value(last) && begins_value && found != "}" && found != "]") {
    return SyntaxMistake{
        "a comma is missing after " + line_text(text, before) + ", before " + quoted_text(found),
        before.end + 1};
  }
  return std::nullopt;
}

}  // namespace

Keyed::Keyed(Json& object) : members_(object.get_ref<Json::object_t&>()) {
  for (const auto& member : members_) places_.emplace(member.first, places_.size());
}

Json* Keyed::find(const std::string& key) {
  const auto known = places_.find(key);
  return known == places_.end() ? nullptr : &members_[known->second].second;
}

Json& Keyed::set(const std::string& key, Json value) {
  const auto [place, fresh] = places_.emplace(key, members_.size());
  if (fresh) members_.emplace_back(key, Json());
  return members_[place->second].second = std::move(value);
}

Json parse_json_text(const std::string& name, const std::string& text) {
  StrictValues values;
  try {
    Json::sax_parse(text, &values);
    if (values.too_deep()) throw InputError(name + ": nested more than 64 levels deep");
    if (const auto& key = values.repeated()) {
      throw InputError(name + ": key '" + shorten_text(*key) + "' is given twice");
    }
    return values.take();
  } catch (const Json::parse_error& error) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      throw InputError(name + ": empty file, expected a JSON object");
    }
    const bool behind_key =
        std::string_view(error.what()).find("expected ':'") != std::string::npos;
    if (const auto mistake = syntax_mistake(text, error.byte, behind_key)) {
      const std::string what = name + ": not valid JSON: " + mistake->what;
      if (mistake->byte == 0) throw InputError(what);
      throw InputMistakes(what, shown_place(text, mistake->byte));
    }
    std::string what = error.what();
    const auto colon = what.rfind("; ");
    what = colon != std::string::npos ? what.substr(colon + 2) : what;
    throw InputMistakes(name + ": not valid JSON at " + position_text(text, error.byte) +
                            (error.byte >= text.size() ? " (the file ends too early)" : "") + ": " +
                            what,
                        shown_place(text, error.byte));
  } catch (const Json::exception& error) {
    throw InputError(name + ": " + overflow_text(text, error.what()));
  }
}

std::optional<Json> try_parse_json(const std::string& text) {
  StrictValues values;
  try {
    Json::sax_parse(text, &values);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (values.too_deep()) return std::nullopt;
  return values.take();
}

Json read_json_file(const std::string& path) {
  return parse_json_text(path, read_text_file(path, "a JSON file"));
}

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  // A whole cluster or workload is shown by its name.
  if (value.is_object() && value.contains("name") && value["name"].is_string()) {
    return value["name"].get<std::string>();
  }
  return value.dump();
}

}  // namespace syncline
