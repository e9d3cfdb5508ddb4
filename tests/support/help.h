// What the program's --help lists, for tests.
#pragma once

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace syncline::test {

// A command of the program that begins with such a verb.
inline std::vector<std::string> with_verb(const std::string& verb,
                                          const std::vector<std::string>& more) {
  std::istringstream parts(verb);
  std::vector<std::string> words;
  for (std::string word; parts >> word;) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The verbs of the program, or of a verb: "calibrate logs". In the order of its --help.
inline std::vector<std::string> verbs_of(const std::string& verb) {
  static const std::regex line("\n  ([a-z]+) ");
  std::string help = syncline_run(with_verb(verb, {"--help"})).out;
  if (!verb.empty()) help.erase(0, std::min(help.find("\nVerbs:\n"), help.size()));
  std::vector<std::string> verbs;
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at) {
    verbs.push_back((verb.empty() ? "" : verb + " ") + (*at)[1].str());
  }
  return verbs;
}

// All of them, and behind each those that it has itself.
inline const std::vector<std::string>& verbs_in_help() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const auto& verb : verbs_of("")) {
      found.push_back(verb);
      for (const auto& nested : verbs_of(verb)) found.push_back(nested);
    }
    return found;
  }();
  return all;
}

// A line of the help, continuations joined: "-o,--out FILE", and what that does.
struct HelpEntry {
  std::string key;
  std::string text;

  bool is_option() const { return key.starts_with("-"); }

  std::set<std::string> names() const {
    static const std::regex name("--?[a-zA-Z][a-z-]*");
    const std::string word = key.substr(0, key.find(' '));
    std::set<std::string> found;
    for (std::sregex_iterator at(word.begin(), word.end(), name), end; at != end; ++at) {
      found.insert(at->str());
    }
    return found;
  }

  // The words that end the text: "predict with: model, sim (default model)".
  std::set<std::string> choices() const {
    static const std::regex list(
        R"(: ([a-z0-9_]+(?:, [a-z0-9_]+)+)(?: \((?:default[^)]*|required)\))?$)");
    static const std::regex word("[a-z0-9_]+");
    std::set<std::string> found;
    std::smatch match;
    if (!std::regex_search(text, match, list)) return found;
    const std::string words = match[1];
    for (std::sregex_iterator at(words.begin(), words.end(), word), end; at != end; ++at) {
      found.insert(at->str());
    }
    return found;
  }
};

// The arguments and options of a verb's help.
inline std::vector<HelpEntry> entries_in_help(const std::string& help) {
  std::vector<HelpEntry> entries;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos) {
      inside = begin == 0 && line.ends_with(":");
    } else if (inside && begin == 2) {
      const std::size_t gap = std::min(line.find("  ", begin), line.size());
      const std::size_t text = std::min(line.find_first_not_of(' ', gap), line.size());
      entries.push_back({line.substr(begin, gap - begin), line.substr(text)});
    } else if (inside && !entries.empty()) {
      std::string& text = entries.back().text;
      text += (text.empty() ? "" : " ") + line.substr(begin);
    }
  }
  return entries;
}

// Of a verb, all of them.
inline std::vector<HelpEntry> entries_of(const std::string& verb) {
  return entries_in_help(syncline_run(with_verb(verb, {"--help-all"})).out);
}

inline std::set<std::string> options_of(const std::string& verb) {
  std::set<std::string> names;
  for (const auto& entry : entries_of(verb)) {
    if (entry.is_option()) names.merge(entry.names());
  }
  return names;
}

}  // namespace syncline::test
