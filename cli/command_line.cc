#include "cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace syncline::cli {
namespace {

// Text as a shell reads it as one word.
std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string("./_-=,+:@%").find(c) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The command line as it was given, the program's name aside.
std::vector<std::string> words_of(const CLI::App& verb) {
  std::vector<std::string> words{verb.get_name()};
  std::vector<const CLI::Option*> said;
  for (const CLI::Option* option : verb.parse_order()) {
    if (std::find(said.begin(), said.end(), option) != said.end()) continue;
    said.push_back(option);
    for (const auto& value : option->results()) {
      if (!option->get_positional()) words.push_back("--" + option->get_single_name());
      if (option->get_type_size() > 0) words.push_back(value);
    }
  }
  return words;
}

}  // namespace

std::string command_line(const CLI::App& verb) {
  std::string line = "syncline";
  for (const auto& word : words_of(verb)) line += " " + shell_word(word);
  return line;
}

}  // namespace syncline::cli
