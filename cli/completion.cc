#include <iostream>
#include <memory>
#include <sstream>

#include "cli/help.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

// One option or positional, as a shell has to know it.
struct CompletedWord {
  std::vector<std::string> names;  // "-o", "--out"; empty: a positional
  std::string about;
  bool takes_value = false;
  bool repeats = false;
  std::vector<std::string> choices;  // allowed values; empty: anything, or a file
};

struct CompletedVerb {
  std::string name;  // "run"; for a verb's own verb "calibrate-logs"
  std::string about;
  std::vector<CompletedWord> words;
  bool nested = false;
};

// Returns the names of the program's verbs, or of verbs' own verbs if `nested`.
std::string names_of(const std::vector<CompletedVerb>& verbs, bool nested, const char* between) {
  std::vector<std::string> names;
  for (const CompletedVerb& verb : verbs) {
    if (verb.nested == nested) names.push_back(verb.name);
  }
  return reports::join(names, between);
}

std::string spaced(const std::vector<std::string>& parts) { return reports::join(parts, " "); }

// Quotes in single quotes, as all three shells read them. `quote` replaces a single quote inside.
std::string quoted(const std::string& text, const std::string& quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? quote : std::string(1, c);
  return out + "'";
}

// Returns the script for bash. If a case gives no words, readline completes file names.
std::string bash(const std::vector<CompletedVerb>& verbs) {
  std::ostringstream out;
  out << "# bash completion for syncline: made by `syncline completion bash`.\n"
         "_syncline() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "  [ \"$word\" = = ] && word=\n"
         "  [ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  COMPREPLY=()\n"
         "  local verb=${COMP_WORDS[1]}\n"
         "  [ \"$COMP_CWORD\" -gt 2 ] && case $verb-${COMP_WORDS[2]} in\n"
         "    "
      << names_of(verbs, true, "|")
      << ") verb+=-${COMP_WORDS[2]} ;;\n"
         "  esac\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    words='"
      << names_of(verbs, false, " ")
      << " --help --version'\n"
         "  else\n"
         "    case \"$verb $before\" in\n";
  std::ostringstream options;
  for (const CompletedVerb& verb : verbs) {
    std::string names, choices;
    for (const CompletedWord& word : verb.words) {
      for (const std::string& name : word.names) {
        names += name + " ";
        if (!word.takes_value) continue;
        out << "      '" << verb.name << " " << name << "') words='" << spaced(word.choices)
            << "' ;;\n";
      }
      if (word.names.empty()) choices += spaced(word.choices);
    }
    options << "        '" << verb.name << " -'*) words='" << names << "' ;;\n";
    if (!choices.empty())
      options << "        '" << verb.name << " '*) words='" << choices << "' ;;\n";
  }
  out << "      *) case \"$verb $word\" in\n"
      << options.str()
      << "      esac ;;\n"
         "    esac\n"
         "  fi\n"
         "  [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _syncline syncline\n";
  return out.str();
}

// Escapes colons and brackets, which _arguments interprets.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_line(const CompletedWord& word, const std::string& name) {
  std::string value;
  if (word.takes_value) {
    value = ":value:" +
            (word.choices.empty() ? std::string("_files") : "(" + spaced(word.choices) + ")");
  }
  if (name.empty()) return "        " + quoted("*" + value, "'\\''");
  // A given option is not offered again, by any of its names.
  const std::string unique = word.repeats ? "*" : "(" + spaced(word.names) + ")";
  return "        " + quoted(unique + name + "[" + zsh_text(word.about) + "]" + value, "'\\''");
}

std::string zsh(const std::vector<CompletedVerb>& verbs) {
  std::ostringstream out;
  out << "#compdef syncline\n"
         "# zsh completion for syncline: made by `syncline completion zsh`.\n"
         "_syncline() {\n"
         "  if (( CURRENT == 2 )); then\n"
         "    local -a verbs=(\n";
  for (const CompletedVerb& verb : verbs) {
    if (!verb.nested)
      out << "      " << quoted(verb.name + ":" + zsh_text(verb.about), "'\\''") << "\n";
  }
  out << "    )\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  local verb=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  (( CURRENT > 2 )) && case $verb-$words[2] in\n"
         "    "
      << names_of(verbs, true, "|")
      << ")\n"
         "      verb+=-$words[2]\n"
         "      shift words\n"
         "      (( CURRENT-- )) ;;\n"
         "  esac\n"
         "  case $verb in\n";
  for (const CompletedVerb& verb : verbs) {
    out << "    " << verb.name << ")\n      _arguments";
    bool positional = false;
    for (const CompletedWord& word : verb.words) {
      // One line for all positionals.
      if (word.names.empty() && !positional) out << " \\\n" << zsh_line(word, "");
      positional = positional || word.names.empty();
      for (const std::string& name : word.names) out << " \\\n" << zsh_line(word, name);
    }
    out << " ;;\n";
  }
  out << "  esac\n"
         "}\n"
         "_syncline \"$@\"\n";
  return out.str();
}

std::string fish(const std::vector<CompletedVerb>& verbs) {
  const auto text = [](const std::string& about) { return quoted(about, "\\'"); };
  std::ostringstream out;
  out << "# fish completion for syncline: made by `syncline completion fish`.\n";
  for (const CompletedVerb& verb : verbs) {
    if (!verb.nested) {
      out << "complete -c syncline -n __fish_use_subcommand -f -a " << verb.name << " -d "
          << text(verb.about) << "\n";
    }
    std::string seen = verb.name;
    if (verb.nested) seen.replace(seen.find('-'), 1, "; and __fish_seen_subcommand_from ");
    const std::string begin = "complete -c syncline -n '__fish_seen_subcommand_from " + seen + "'";
    for (const CompletedWord& word : verb.words) {
      if (word.names.empty() && word.choices.empty()) continue;
      out << begin;
      for (const std::string& name : word.names) {
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      if (!word.choices.empty()) {
        out << (word.names.empty() ? "" : " -x") << " -f -a " << text(spaced(word.choices));
      } else if (word.takes_value) {
        out << " -r -F";
      }
      out << " -d " << text(word.about) << "\n";
    }
  }
  return out.str();
}

CompletedWord word_of(const CLI::Option& option) {
  CompletedWord word;
  for (const auto& name : option.get_snames()) word.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) word.names.push_back("--" + name);
  word.about = option.get_description();
  word.takes_value = option.get_items_expected_max() > 0;
  word.repeats = option.get_items_expected_max() > 1;
  word.choices = choices_of(option);
  return word;
}

// Returns verbs and verbs' own verbs, with `before` in front of their names.
std::vector<CompletedVerb> completed_verbs(const CLI::App& app, const std::string& before = "") {
  std::vector<CompletedVerb> verbs;
  for (const CLI::App* verb : verbs_of(app)) {
    const std::string name = before + verb->get_name();
    CompletedVerb completed{name, verb->get_description(), {}, !before.empty()};
    for (const CLI::Option* option : verb->get_options()) {
      if (!option->get_group().empty()) completed.words.push_back(word_of(*option));
    }
    CompletedWord own{{}, "what to do", true, false, {}};
    for (const CLI::App* nested : verbs_of(*verb)) own.choices.push_back(nested->get_name());
    if (!own.choices.empty()) completed.words.push_back(own);
    verbs.push_back(completed);
    for (CompletedVerb& nested : completed_verbs(*verb, name + "-")) verbs.push_back(nested);
  }
  return verbs;
}

}  // namespace

VerbAction add_completion(CLI::App& verb) {
  auto shell = std::make_shared<std::string>();
  verb.add_option("shell", *shell, "shell to complete command lines in")
      ->required()
      ->transform(one_of_words({"bash", "zsh", "fish"}));
  verb.footer(
      "In a running shell: source <(syncline completion bash).\n"
      "An installed Syncline needs no such line.");
  return [&verb, shell] {
    const auto verbs = completed_verbs(*verb.get_parent());
    std::cout << (*shell == "bash" ? bash(verbs) : *shell == "zsh" ? zsh(verbs) : fish(verbs));
    return 0;
  };
}

}  // namespace syncline::cli
