#include "reports/shell_completion.h"

#include <sstream>

namespace syncline::reports {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

std::string names_of(const std::vector<CompletedVerb>& verbs) {
  std::string names;
  for (const CompletedVerb& verb : verbs) names += verb.name + " ";
  return names;
}

// In single quotes, as all three shells read them, in front of `quote`, which stands for one.
std::string quoted(const std::string& text, const std::string& quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? quote : std::string(1, c);
  return out + "'";
}

// Where a case gives nothing, readline completes file names.
std::string bash(const std::vector<CompletedVerb>& verbs) {
  std::ostringstream out;
  out << "# bash completion for syncline: made by `syncline completion bash`.\n"
         "_syncline() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "  [ \"$word\" = = ] && word=\n"
         "  [ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    words='"
      << names_of(verbs)
      << "--help --version'\n"
         "  else\n"
         "    case \"${COMP_WORDS[1]} $before\" in\n";
  std::ostringstream options;
  for (const CompletedVerb& verb : verbs) {
    std::string names, choices;
    for (const CompletedWord& word : verb.words) {
      for (const std::string& name : word.names) {
        names += name + " ";
        if (!word.takes_value) continue;
        out << "      '" << verb.name << " " << name << "') words='" << joined(word.choices)
            << "' ;;\n";
      }
      if (word.names.empty()) choices += joined(word.choices);
    }
    options << "        '" << verb.name << " -'*) words='" << names << "' ;;\n";
    if (!choices.empty())
      options << "        '" << verb.name << " '*) words='" << choices << "' ;;\n";
  }
  out << "      *) case \"${COMP_WORDS[1]} $word\" in\n"
      << options.str()
      << "      esac ;;\n"
         "    esac\n"
         "  fi\n"
         "  [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _syncline syncline\n";
  return out.str();
}

// _arguments reads colons and brackets in what it shows.
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
            (word.choices.empty() ? std::string("_files") : "(" + joined(word.choices) + ")");
  }
  if (name.empty()) return "        " + quoted("*" + value, "'\\''");
  // One that was given is not offered again, by none of its names.
  const std::string unique = word.repeats ? "*" : "(" + joined(word.names) + ")";
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
    out << "      " << quoted(verb.name + ":" + zsh_text(verb.about), "'\\''") << "\n";
  }
  out << "    )\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  local verb=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $verb in\n";
  for (const CompletedVerb& verb : verbs) {
    out << "    " << verb.name << ")\n      _arguments";
    bool positional = false;
    for (const CompletedWord& word : verb.words) {
      // One line for all that stand without a name.
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
    out << "complete -c syncline -n __fish_use_subcommand -f -a " << verb.name << " -d "
        << text(verb.about) << "\n";
    const std::string begin =
        "complete -c syncline -n '__fish_seen_subcommand_from " + verb.name + "'";
    for (const CompletedWord& word : verb.words) {
      if (word.names.empty() && word.choices.empty()) continue;
      out << begin;
      for (const std::string& name : word.names) {
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      if (!word.choices.empty()) {
        out << (word.names.empty() ? "" : " -x") << " -f -a " << text(joined(word.choices));
      } else if (word.takes_value) {
        out << " -r -F";
      }
      out << " -d " << text(word.about) << "\n";
    }
  }
  return out.str();
}

}  // namespace

const std::vector<std::string>& shells() {
  static const std::vector<std::string> kShells{"bash", "zsh", "fish"};
  return kShells;
}

std::string shell_completion(const std::vector<CompletedVerb>& verbs, const std::string& shell) {
  if (shell == "bash") return bash(verbs);
  return shell == "zsh" ? zsh(verbs) : fish(verbs);
}

}  // namespace syncline::reports
