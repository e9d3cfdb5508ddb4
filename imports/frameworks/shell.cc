#include "imports/frameworks/shell.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

namespace syncline::job::frameworks {
namespace {

constexpr std::size_t kMaxWords = 20000;

bool of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns true for a word NAME=value.
bool assigns(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == word.npos || equals == 0) return false;
  const auto end = word.begin() + static_cast<std::ptrdiff_t>(equals);
  return std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
         std::all_of(word.begin(), end, of_name);
}

class LineReader {
 public:
  explicit LineReader(const std::string& text) : text_(text) {}

  ShellLines read() {
    while (at_ < text_.size() && read_ < kMaxWords) step();
    end_command();
    return std::move(lines_);
  }

 private:
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void step() {
    const char c = text_[at_];
    if (c == '\\') return escaped();
    if (c == '\'') return single_quoted();
    if (c == '"') return double_quoted();
    if (c == '$' || c == '`') return variable();
    if (c == '#' && !open_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    ++at_;
    if (c == ' ' || c == '\t') return end_word();
    if (c == '<' || c == '>') return redirect(c);
    if (c == '\n' || c == ';' || c == '&' || c == '|') {
      end_command();
      line_ += c == '\n' ? 1 : 0;
      return;
    }
    if (c == '(') ask("a '('");
    if (c == ')') return end_word();
    add(c);
  }

  void escaped() {
    const char escaped = next();
    at_ += 2;
    if (escaped == '\n') {
      ++line_;
    } else if (escaped != '\0') {
      add(escaped);
    }
  }

  void single_quoted() {
    const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
    open_ = true;
    for (++at_; at_ < end; ++at_) keep(text_[at_]);
    ++at_;
  }

  void double_quoted() {
    for (const char* own : {"\"$@\"", "\"$*\""}) {
      if (text_.compare(at_, 4, own) != 0) continue;
      at_ += 4;
      return;
    }
    open_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != '"';) {
      const char c = text_[at_];
      if (c == '$' || c == '`') {
        variable();
        continue;
      }
      const bool escape =
          c == '\\' && std::string_view("\n\"\\$`").find(next()) != std::string_view::npos;
      at_ += escape ? 2 : 1;
      if (!escape) {
        keep(c);
      } else if (text_[at_ - 1] != '\n') {
        add(text_[at_ - 1]);
      }
    }
    ++at_;
  }

  // Keeps a word that begins with '$' or '`' as it is written; "$@" is dropped.
  void variable() {
    const std::size_t begin = at_++;
    if (text_[begin] == '$' && at_ < text_.size() && (text_[at_] == '@' || text_[at_] == '*')) {
      ++at_;
      return;
    }
    const char opens = text_[begin] == '`' ? '`' : at_ < text_.size() ? text_[at_] : '\0';
    if (opens == '`') {
      at_ = std::min(text_.find('`', at_), text_.size() - 1) + 1;
    } else if (opens == '{' || opens == '(') {
      at_ = behind_closing(opens, opens == '{' ? '}' : ')');
    } else {
      while (at_ < text_.size() && of_name(text_[at_])) ++at_;
    }
    const std::string written = text_.substr(begin, at_ - begin);
    open_ = true;
    word_ += written;
    if (written.size() > 1) {
      ask((opens == '(' || opens == '`' ? "the output of " : "the variable ") + written);
    }
  }

  // Returns the place after the end of the part that opens here.
  std::size_t behind_closing(char opens, char closes) const {
    int depth = 0;
    for (std::size_t at = at_; at < text_.size(); ++at) {
      if (text_[at] == opens) ++depth;
      if (text_[at] == closes && --depth == 0) return at + 1;
    }
    return text_.size();
  }

  void redirect(char direction) {
    if (direction == '<' && at_ < text_.size() && text_[at_] == '<') ask("a here-document");
    const bool number =
        std::ranges::all_of(word_, [](unsigned char digit) { return std::isdigit(digit) != 0; });
    if (number) {
      word_.clear();
      open_ = false;
    }
    end_word();
    if (at_ < text_.size() && (text_[at_] == '&' || text_[at_] == direction)) ++at_;
    drops_ = true;
  }

  // Adds a letter of a word, and counts lines inside quotes.
  void keep(char c) {
    line_ += c == '\n' ? 1 : 0;
    add(c);
  }
  void add(char c) {
    open_ = true;
    word_ += c;
  }

  void end_word() {
    if (!std::exchange(open_, false)) return;
    std::string word = std::exchange(word_, {});
    ++read_;
    if (std::exchange(drops_, false)) return;
    static const std::set<std::string, std::less<>> control{
        "if",   "then", "else",     "elif", "fi", "for", "while", "until",
        "case", "do",   "function", "eval", "{",  "[[",  "source"};
    if (words_.empty() && control.contains(word)) ask("'" + word + "'");
    if (words_.empty() && assigns(word)) return;
    words_.push_back(std::move(word));
  }

  void end_command() {
    end_word();
    drops_ = false;
    if (!words_.empty()) lines_.commands.push_back(std::exchange(words_, {}));
  }

  void ask(const std::string& what) {
    if (!lines_.asks.empty()) return;
    lines_.asks = what + " in line " + std::to_string(line_);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t read_ = 0;  // words
  int line_ = 1;
  std::string word_;
  bool open_ = false;   // a word is open, empty or not
  bool drops_ = false;  // the next word belongs to a redirection
  std::vector<std::string> words_;
  ShellLines lines_;
};

}  // namespace

ShellLines read_shell_lines(const std::string& text) { return LineReader(text).read(); }

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::vector<std::string>& command : read_shell_lines(text).commands) {
    words.insert(words.end(), command.begin(), command.end());
  }
  return words;
}

}  // namespace syncline::job::frameworks
