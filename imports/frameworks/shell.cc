#include "imports/frameworks/shell.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "imports/frameworks/shell_tokens.h"
#include "imports/frameworks/shell_variables.h"

namespace syncline::job::frameworks {
namespace {

constexpr std::size_t kMostCommands = 1000;
constexpr std::size_t kMostReads = 1 << 20;  // tokens, those of functions again

enum class Truth { kNo, kYes, kOpen };

Truth truth(bool holds) { return holds ? Truth::kYes : Truth::kNo; }
Truth negated(Truth value) { return value == Truth::kOpen ? value : truth(value == Truth::kNo); }

// What the test of an `if` says of words that stand for what they are.
class ShellTest {
 public:
  ShellTest(std::vector<std::string> words, std::vector<bool> open)
      : words_(std::move(words)), open_(std::move(open)) {}

  Truth all() {
    if (words_.empty()) return Truth::kNo;
    const Truth value = either(0);
    return at_ == words_.size() ? value : Truth::kOpen;
  }

 private:
  bool take(std::string_view word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  Truth either(int depth) {
    Truth value = both(depth);
    while (take("||") || take("-o")) {
      const Truth other = both(depth);
      const bool yes = value == Truth::kYes || other == Truth::kYes;
      const bool open = value == Truth::kOpen || other == Truth::kOpen;
      value = yes ? Truth::kYes : open ? Truth::kOpen : Truth::kNo;
    }
    return value;
  }

  Truth both(int depth) {
    Truth value = one(depth);
    while (take("&&") || take("-a")) {
      const Truth other = one(depth);
      const bool no = value == Truth::kNo || other == Truth::kNo;
      const bool open = value == Truth::kOpen || other == Truth::kOpen;
      value = no ? Truth::kNo : open ? Truth::kOpen : Truth::kYes;
    }
    return value;
  }

  Truth one(int depth) {
    if (depth > kDeepestNest || at_ == words_.size()) return Truth::kOpen;
    if (take("!")) return negated(one(depth + 1));
    if (take("(")) {
      const Truth value = either(depth + 1);
      take(")");
      return value;
    }
    const std::size_t left = words_.size() - at_;
    const std::string& first = words_[at_];
    if (left >= 3 && is_comparison(words_[at_ + 1])) {
      const bool open = open_[at_] || open_[at_ + 2];
      const Truth value = compared(first, words_[at_ + 1], words_[at_ + 2]);
      at_ += 3;
      return open ? Truth::kOpen : value;
    }
    if (left >= 2 && first.size() == 2 && first[0] == '-') {
      const std::string& word = words_[at_ + 1];
      const bool open = open_[at_ + 1];
      at_ += 2;
      if (open || (first != "-z" && first != "-n")) return Truth::kOpen;
      return truth(word.empty() == (first == "-z"));
    }
    const bool open = open_[at_++];
    return open ? Truth::kOpen : truth(!first.empty());
  }

  static bool is_comparison(const std::string& word) {
    static const std::set<std::string> names{"=",   "==",  "!=",  "=~",  "<",   ">",
                                             "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    return names.contains(word);
  }

  static Truth compared(const std::string& left, const std::string& name,
                        const std::string& right) {
    if (name == "=" || name == "==") return truth(shell_pattern_fits(right, left));
    if (name == "!=") return truth(!shell_pattern_fits(right, left));
    if (name == "=~") return Truth::kOpen;
    if (name == "<") return truth(left < right);
    if (name == ">") return truth(left > right);
    const auto a = whole_number(left), b = whole_number(right);
    if (!a || !b) return left.empty() || right.empty() ? Truth::kNo : Truth::kOpen;
    if (name == "-eq") return truth(*a == *b);
    if (name == "-ne") return truth(*a != *b);
    if (name == "-lt") return truth(*a < *b);
    if (name == "-le") return truth(*a <= *b);
    return truth(name == "-gt" ? *a > *b : *a >= *b);
  }

  std::vector<std::string> words_;
  std::vector<bool> open_;
  std::size_t at_ = 0;
};

// Reads statements, and runs those that would run.
class Shell {
 public:
  explicit Shell(ShellReading& reading) : reading_(reading) {}

  void run(const std::string& text) {
    if (nested_ > kDeepestNest) return;
    ++nested_;
    std::vector<ShellToken> tokens = shell_tokens(text);
    run_tokens(std::move(tokens));
    --nested_;
  }

  void finish() {
    live_ = false;
    for (const auto& [name, body] : std::map(functions_)) {
      if (!called_.contains(name)) run_tokens(body);
    }
    reading_.variables = variables_.take_flags();
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  void run_tokens(std::vector<ShellToken> tokens) {
    const std::size_t at = std::exchange(at_, 0);
    std::swap(tokens_, tokens);
    while (at_ < tokens_.size() && reads_ < kMostReads) {
      list({});
      ++at_;  // an end without its beginning
    }
    std::swap(tokens_, tokens);
    at_ = at;
  }

  const ShellToken* peek() const { return at_ < tokens_.size() ? &tokens_[at_] : nullptr; }
  bool is(std::string_view text) const { return peek() != nullptr && peek()->text == text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    ++reads_;
    return true;
  }
  bool at_break() const { return is("\n") || is(";") || is("&"); }
  bool at_one_of(Ends ends) const {
    return peek() != nullptr &&
           std::ranges::find(ends, std::string_view(peek()->text)) != ends.end();
  }

  // Statements up to one of the words that end them. Gives what the last one says.
  Truth list(Ends ends) {
    Truth last = Truth::kYes;
    while (peek() != nullptr && reads_ < kMostReads) {
      if (at_break()) {
        ++at_;
        ++reads_;
      } else if (at_one_of(ends) || is(")") || is(";;") || at_one_of({"fi", "done", "esac", "}"})) {
        break;
      } else {
        const std::size_t before = at_;
        last = chain();
        if (at_ == before) ++at_;
      }
    }
    return last;
  }

  // a && b || c.
  Truth chain() {
    const bool live = live_;
    const std::size_t begin = at_;
    Truth value = pipeline();
    while (is("&&") || is("||")) {
      const bool both = is("&&");
      const std::string test = tested_ ? text_between(begin, at_) : "";
      ++at_;
      while (is("\n")) ++at_;
      const std::size_t from = at_;
      const bool runs = value == Truth::kOpen ? both : both == (value == Truth::kYes);
      live_ = live && runs;
      const std::size_t before = branches_;
      const Truth other = pipeline();
      if (live && branches_ > before && !test.empty()) say_condition(test, value);
      if (runs) value = other;
      if (at_ == from) break;
    }
    live_ = live;
    return value;
  }

  Truth pipeline() {
    const bool turned = take("!");
    Truth value = command();
    while (is("|") || is("|&")) {
      ++at_;
      while (is("\n")) ++at_;
      value = command();
    }
    return turned ? negated(value) : value;
  }

  Truth command() {
    tested_ = false;
    const bool deep = ++nested_ > kDeepestNest;
    Truth value = Truth::kYes;
    if (deep) {
      ++at_;
    } else if (take("if")) {
      if_clause();
    } else if (take("case")) {
      case_clause();
    } else if (take("for") || take("select")) {
      for_clause();
    } else if (is("while") || is("until")) {
      while_clause();
    } else if (take("{")) {
      list({"}"});
      take("}");
    } else if (take("(")) {
      list({});
      take(")");
    } else if (is("function") || names_function()) {
      function();
    } else if (is("[[")) {
      value = double_brackets();
    } else {
      value = simple();
    }
    --nested_;
    return value;
  }

  bool names_function() const {
    return at_ + 2 < tokens_.size() && tokens_[at_].word && tokens_[at_ + 1].text == "(" &&
           !tokens_[at_ + 1].word && tokens_[at_ + 2].text == ")";
  }

  // Its body is kept until it is called.
  void function() {
    take("function");
    const std::string name = peek() != nullptr ? peek()->text : "";
    ++at_;
    if (take("(")) take(")");
    while (is("\n")) ++at_;
    const std::size_t begin = at_;
    const bool live = std::exchange(live_, false);
    const bool quiet = std::exchange(quiet_, true);
    if (take("{")) {
      list({"}"});
      take("}");
    } else if (take("(")) {
      list({});
      take(")");
    }
    live_ = live;
    quiet_ = quiet;
    if (!live || at_ <= begin + 1) return;
    const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(begin) + 1;
    functions_[name] = {from, tokens_.begin() + static_cast<std::ptrdiff_t>(at_) - 1};
  }

  void if_clause() {
    const bool live = live_;
    bool decided = false;
    struct Said {
      std::string test;
      Truth value;
    };
    std::vector<Said> said;
    const std::size_t before = branches_;
    do {
      const std::size_t begin = at_;
      live_ = live && !decided;
      Truth value = list({"then"});
      const std::string test = text_between(begin, at_);
      take("then");
      // A branch that ends the script is none of a job.
      const bool ends = value != Truth::kNo && ends_script();
      if (live && !decided && !ends) said.push_back({test, value});
      if (ends) value = Truth::kNo;
      live_ = live && !decided && value != Truth::kNo;
      decided |= live_;
      list({"elif", "else", "fi"});
    } while (take("elif"));
    if (take("else")) {
      live_ = live && !decided;
      list({"fi"});
    }
    take("fi");
    live_ = live;
    if (!live || branches_ == before) return;
    for (const Said& one : said) say_condition(one.test, one.value);
  }

  // Whether the branch that begins here ends the script.
  bool ends_script() const {
    int depth = 0;
    for (std::size_t at = at_; at < tokens_.size() && at < at_ + 400; ++at) {
      const std::string& text = tokens_[at].text;
      if (depth == 0 && (text == "fi" || text == "else" || text == "elif")) return false;
      if (text == "if" || text == "case") ++depth;
      if (text == "fi" || text == "esac") --depth;
      if (text == "exit") return depth == 0;
    }
    return false;
  }

  void case_clause() {
    const bool live = live_;
    const std::string subject = peek() != nullptr ? peek()->text : "";
    bool open = false;
    const std::string word = live ? variables_.settled(subject, open, reading_.unset) : "";
    ++at_;
    while (is("\n")) ++at_;
    take("in");
    bool decided = false;
    std::string taken = "none";
    const std::size_t before = branches_;
    while (peek() != nullptr && !is("esac") && reads_ < kMostReads) {
      if (at_break() || is(";;") || is("(")) {
        ++at_;
        continue;
      }
      bool fits = false;
      const std::size_t begin = at_;
      for (; peek() != nullptr && !is(")") && !is("esac"); ++at_) {
        if (!peek()->word || !live) continue;
        bool unknown = false;
        std::vector<std::string> none;
        fits |= shell_pattern_fits(variables_.settled(peek()->text, unknown, none), word);
      }
      const std::string pattern = text_between(begin, at_);
      take(")");
      live_ = live && !decided && (fits || open);
      if (live_) taken = pattern;
      decided |= live_;
      list({";;"});
      live_ = live;
    }
    take("esac");
    if (!live || branches_ == before) return;
    add(open ? reading_.chosen : reading_.conditions,
        "case " + subject + ": " + (taken == "none" ? "no branch" : taken));
  }

  void for_clause() {
    const std::string name = peek() != nullptr ? peek()->text : "";
    ++at_;
    std::vector<std::string> words;
    if (take("in")) {
      for (; peek() != nullptr && peek()->word; ++at_) {
        for (std::string& word : variables_.expanded(peek()->text))
          words.push_back(std::move(word));
      }
    }
    while (at_break()) ++at_;
    take("do");
    const std::size_t before = branches_;
    if (live_ && !words.empty()) variables_.set(name, {{words.front()}, false});
    const std::size_t commands = reading_.commands.size();
    list({"done"});
    take("done");
    if (!live_ || words.size() < 2 || (branches_ == before && commands == reading_.commands.size()))
      return;
    add(reading_.chosen, name + "=" + words.front() + ", the first of " + joined_words(words));
  }

  // A loop over the script's own arguments has none.
  void while_clause() {
    const bool live = live_;
    const bool until = take("until");
    if (!until) take("while");
    const Truth value = list({"do"});
    take("do");
    live_ = live && value != truth(until);
    list({"done"});
    take("done");
    live_ = live;
  }

  Truth double_brackets() {
    ++at_;
    std::vector<const std::string*> words;
    for (; peek() != nullptr && !is("]]"); ++at_) {
      if (!is("\n")) words.push_back(&peek()->text);
    }
    take("]]");
    return test_of(words);
  }

  Truth test_of(const std::vector<const std::string*>& raw) {
    tested_ = true;
    if (!live_) return Truth::kNo;
    std::vector<std::string> words;
    std::vector<bool> open;
    for (const std::string* word : raw) {
      bool unknown = false;
      words.push_back(variables_.settled(*word, unknown, reading_.unset));
      open.push_back(unknown);
    }
    return ShellTest(std::move(words), std::move(open)).all();
  }

  // Words up to the command's end, redirections left out.
  std::vector<const std::string*> words_of_command(std::string& here) {
    std::vector<const std::string*> words;
    for (; peek() != nullptr; ++at_, ++reads_) {
      const ShellToken& token = *peek();
      if (token.word) {
        if (words.size() < kMostWords) words.push_back(&token.text);
        continue;
      }
      if (token.text.find_first_of("<>") == token.text.npos) break;
      here += token.here;
      if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].word) ++at_;
    }
    return words;
  }

  Truth simple() {
    std::string here;
    std::vector<const std::string*> raw = words_of_command(here);
    if (raw.empty()) return Truth::kYes;
    const std::string& first = *raw.front();
    for (const std::string* word : raw) branches_ += word->starts_with("--") ? 1 : 0;
    if (first == "[" || first == "test") {
      if (raw.back() == &first || first == "test" || *raw.back() != "]") {
        return test_of({raw.begin() + 1, raw.end()});
      }
      return test_of({raw.begin() + 1, raw.end() - 1});
    }
    if (first.starts_with("((")) {
      calculate(first.substr(2, first.size() < 4 ? 0 : first.size() - 4));
      tested_ = true;
      return Truth::kOpen;
    }
    if (first == "let") {
      for (std::size_t i = 1; i < raw.size(); ++i) calculate(variables_.text_of(*raw[i]));
      return Truth::kYes;
    }
    static const std::set<std::string> declares{"export", "declare", "local", "readonly",
                                                "typeset"};
    const bool names = declares.contains(first);
    std::size_t begin = names ? 1 : 0;
    for (; begin < raw.size(); ++begin) {
      const bool option = names && raw[begin]->starts_with("-");
      if (!option && !assigns(*raw[begin]) && !names) break;
    }
    if (begin == raw.size()) return Truth::kYes;
    if (!live_) return skip({raw.begin() + static_cast<std::ptrdiff_t>(begin), raw.end()});
    return start({raw.begin() + static_cast<std::ptrdiff_t>(begin), raw.end()}, here);
  }

  // Whether the word is NAME=value; where the statement runs it is one from here on.
  bool assigns(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return false;
    std::string name = word.substr(0, equals);
    if (name.ends_with('+')) name.pop_back();
    const bool valid = !name.empty() && std::ranges::all_of(name, of_shell_name) &&
                       std::isdigit(static_cast<unsigned char>(name[0])) == 0;
    if (!valid) return false;
    ++branches_;
    if (live_) {
      variables_.assign(word);
    } else {
      pass_over(word);
    }
    return true;
  }

  // "X = A * B" of let and ((...)).
  void calculate(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (!live_ || equals == text.npos) return;
    std::string name = text.substr(0, equals);
    std::erase(name, ' ');
    const auto value = variables_.arithmetic(text.substr(equals + 1));
    if (value && !name.empty() && std::ranges::all_of(name, of_shell_name)) {
      variables_.set(name, {{std::to_string(*value)}, false});
    }
  }

  Truth skip(const std::vector<const std::string*>& raw) {
    for (const std::string* word : raw) pass_over(*word);
    return Truth::kYes;
  }

  // Flags of what does not run.
  void pass_over(const std::string& raw) {
    if (quiet_ || raw.find("--") == raw.npos) return;
    const std::size_t equals = raw.find('=');
    const bool assigned = equals != raw.npos && !raw.starts_with("-");
    std::string text = assigned ? raw.substr(equals + 1) : raw;
    if (text.starts_with('(')) text = text.substr(1);
    std::erase_if(text, [](char c) { return c == '"' || c == '\'' || c == ')'; });
    for (const std::string& word : split_words(text)) {
      if (word.size() > 2 && word.starts_with("--")) {
        ++branches_;
        add(reading_.skipped, word);
      }
    }
  }

  // A command that runs.
  Truth start(const std::vector<const std::string*>& raw, const std::string& here) {
    const std::string& first = *raw.front();
    static const std::set<std::string> silent{"echo", "printf", "unset", "cd", "set", "exit"};
    const bool counts = !silent.contains(first);
    variables_.count_use(counts);
    std::vector<std::string> words;
    for (const std::string* word : raw) {
      for (std::string& part : variables_.expanded(*word)) {
        if (words.size() < kMostWords) words.push_back(std::move(part));
      }
    }
    variables_.count_use(true);
    if (words.empty() || !counts) {
      if (first == "unset") forget(words);
      return Truth::kYes;
    }
    if (const auto called = functions_.find(words.front()); called != functions_.end()) {
      called_.insert(words.front());
      call(called->second, words);
      return Truth::kYes;
    }
    if (first == "eval") {
      words.erase(words.begin());
      run(joined_words(words));
      return Truth::kYes;
    }
    static const std::set<std::string> shells{"bash", "sh", "zsh"};
    const auto is_shell = [&](const std::string& word) {
      return shells.contains(word.substr(word.rfind('/') + 1));
    };
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (!is_shell(words[i]) || !words[i + 1].starts_with('-') || !words[i + 1].ends_with('c')) {
        continue;
      }
      run(words[i + 2]);
      return Truth::kOpen;
    }
    static const std::set<std::string> readers{"bash", "sh", "sbatch", "srun", "qsub", "bsub"};
    if (!here.empty() && readers.contains(words.front())) {
      run(here);
      return Truth::kOpen;
    }
    if (reading_.commands.size() < kMostCommands) reading_.commands.push_back(std::move(words));
    return Truth::kOpen;
  }

  void forget(const std::vector<std::string>& names) {
    for (const std::string& name : names) variables_.forget(name);
  }

  void call(const std::vector<ShellToken>& body, const std::vector<std::string>& words) {
    if (nested_ > kDeepestNest) return;
    ++nested_;
    for (std::size_t i = 1; i < std::min<std::size_t>(words.size(), 10); ++i) {
      variables_.set(std::to_string(i), {{words[i]}, false});
    }
    run_tokens(body);
    for (std::size_t i = 1; i < 10; ++i) variables_.forget(std::to_string(i));
    --nested_;
  }

  std::string text_between(std::size_t begin, std::size_t end) const {
    constexpr std::size_t kMost = 100;
    std::string text;
    for (std::size_t at = begin; at < end && at < tokens_.size(); ++at) {
      if (tokens_[at].text == "\n" || tokens_[at].text == ";") continue;
      text += (text.empty() ? "" : " ") + tokens_[at].text;
    }
    return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
  }

  void say_condition(const std::string& test, Truth value) {
    if (value == Truth::kOpen) return add(reading_.chosen, test + " holds");
    add(reading_.conditions, test + (value == Truth::kYes ? " holds" : " does not hold"));
  }

  static void add(std::vector<std::string>& list, const std::string& word) {
    if (list.size() < kMostSaid && std::ranges::find(list, word) == list.end()) {
      list.push_back(word);
    }
  }

  ShellReading& reading_;
  ShellVariables variables_;
  std::map<std::string, std::vector<ShellToken>> functions_;
  std::set<std::string> called_;
  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0;
  std::size_t reads_ = 0;
  std::size_t branches_ = 0;  // assignments and flags that were seen
  int nested_ = 0;
  bool live_ = true;     // what is read runs
  bool quiet_ = false;   // the body of a function that may be called
  bool tested_ = false;  // the last command was a test
};

}  // namespace

ShellReading read_shell(const std::string& text) {
  ShellReading reading;
  Shell shell(reading);
  shell.run(text);
  shell.finish();
  return reading;
}

}  // namespace syncline::job::frameworks
