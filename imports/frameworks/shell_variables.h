// A shell's variables, and what words are once these stand for what they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "imports/frameworks/shell.h"

namespace syncline::job::frameworks {

inline constexpr std::size_t kMostText = 1 << 16;  // of a variable
inline constexpr std::size_t kMostWords = 20000;   // of a command, or a list
inline constexpr std::size_t kMostSaid = 64;       // names of a kind
inline constexpr int kDeepestNest = 48;            // brackets, functions, "bash -c"

bool looks_like_flags(std::string_view text);
std::optional<std::int64_t> whole_number(const std::string& text);
std::string joined_words(const std::vector<std::string>& words);

struct ShellValue {
  std::vector<std::string> words;  // one unless it is an array
  bool array = false;
};

class ShellVariables {
 public:
  // NAME=value, NAME+=value, NAME=(words). False: the word is none of these.
  bool assign(const std::string& raw);
  void set(const std::string& name, ShellValue value, bool more = false);
  void forget(const std::string& name) { set_.erase(name); }
  bool knows(const std::string& name) const { return set_.contains(name); }

  // The words that one word as it is written becomes.
  std::vector<std::string> expanded(const std::string& raw);
  // Of a condition: what nothing sets is empty, and added to `unset`. `open`: a command's output
  // decides.
  std::string settled(const std::string& raw, bool& open, std::vector<std::string>& unset);
  // Of "NAME=value": as one word, what is not quoted in it too.
  std::string text_of(const std::string& raw);

  // "A * 2": nothing where a name has no whole number.
  std::optional<std::int64_t> arithmetic(const std::string& text) const;

  // Whether what is expanded next counts as use of flags.
  void count_use(bool counts) { counts_ = counts; }
  std::vector<ShellReading::Flags> take_flags() { return std::move(flags_); }

 private:
  // What a variable is, and whether its words are words of their own even in quotes.
  struct Piece {
    std::vector<std::string> words;
    bool list = false;
  };

  std::optional<std::int64_t> number(const std::string& name, int depth) const;
  // `close` ends a word, which it is if it holds anything, or `any` is set.
  template <typename Close>
  std::size_t quoted(const std::string& raw, std::size_t at, std::string& word, bool& any,
                     const Close& close);
  template <typename Close>
  void unquoted(const Piece& piece, std::string& word, bool& any, const Close& close);
  Piece parameter(const std::string& raw, std::size_t& at);
  Piece output_of(const std::string& raw, std::size_t& at) const;
  Piece braced(const std::string& inside);
  Piece elements(const std::string& name, const std::string& rest, const std::string& written);
  Piece otherwise(const std::string& name, const std::string& rest, const std::string& written);
  Piece value_of(const std::string& name, const std::string& written);
  bool afford(const ShellValue& value);  // texts that double have an end
  void mark(const std::string& name);

  std::map<std::string, ShellValue> set_;
  std::vector<ShellReading::Flags> flags_;
  bool counts_ = true;
  int deep_ = 0;
  std::size_t spent_ = 0;  // characters that variables stood for
};

}  // namespace syncline::job::frameworks
