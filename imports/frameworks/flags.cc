// Flags of a command line, or of the shell script that holds it.
#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "formats/json/text.h"
#include "formats/text/visible.h"
#include "imports/frameworks/settings.h"
#include "imports/frameworks/shell.h"
#include "imports/frameworks/shell_variables.h"

namespace syncline::job::frameworks {
namespace {

constexpr std::size_t kMostFlags = 5000;

// Flags of torchrun, torch.distributed.launch and the deepspeed launcher: where ranks run.
const std::set<std::string>& launcher_flags() {
  static const std::set<std::string> names{"--nproc-per-node",    "--nnodes",        "--node-rank",
                                           "--master-addr",       "--master-port",   "--rdzv-id",
                                           "--rdzv-backend",      "--rdzv-endpoint", "--rdzv-conf",
                                           "--max-restarts",      "--role",          "--tee",
                                           "--redirects",         "--log-dir",       "--standalone",
                                           "--monitor-interval",  "--start-method",  "--local-addr",
                                           "--num-gpus",          "--num-nodes",     "--hostfile",
                                           "--local-ranks-filter"};
  return names;
}

bool is_flag(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

// "--name=value" without its value, as Megatron spells it.
std::string name_of_flag(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  std::ranges::replace(name, '_', '-');
  return name;
}

// Of "--name=word"; so a switch is turned off.
Json behind_equals(const std::string& word) {
  if (word == "true" || word == "false") return word == "true";
  return number_or_text(word);
}

Json value_of(const std::vector<Json>& values) {
  if (values.empty()) return true;
  return values.size() == 1 ? values.front() : Json(values);
}

// Flags of a command's words. A variable that nothing sets is the value of the flag ahead of it,
// which has no other, or a list of flags that nobody knows; that one is added to `lists`.
Json flags_in(const std::vector<std::string>& words, std::vector<std::string>& lists) {
  Json flags = Json::object();
  std::string name;
  std::vector<Json> values;
  const auto close = [&] {
    if (!name.empty() && flags.size() < kMostFlags) flags[name] = value_of(values);
    name.clear();
    values.clear();
  };
  for (const std::string& word : words) {
    const bool array = word.starts_with("${") && word.find("[@]") != word.npos;
    if (is_flag(word)) {
      close();
      const std::size_t equals = word.find('=');
      name = name_of_flag(word).substr(2);
      if (equals != std::string::npos) values.push_back(behind_equals(word.substr(equals + 1)));
    } else if (array || (is_variable(word) && (name.empty() || !values.empty()))) {
      const bool own = word == "$@" || word == "$*";
      if (!own && std::ranges::find(lists, word) == lists.end()) lists.push_back(word);
    } else if (!name.empty() && word != "$@" && word != "$*") {
      values.push_back(number_or_text(word));
    }
  }
  close();
  return flags;
}

// One word of a list that was quoted as a whole holds words of its own.
std::vector<std::string> taken_apart(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    const bool several = word.find_first_of(" \t\n") != word.npos && looks_like_flags(word);
    if (!several) {
      all.push_back(word);
      continue;
    }
    for (std::string& inner : split_words(word)) all.push_back(std::move(inner));
  }
  return all;
}

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A command that is given flags.
struct Command {
  std::string program;              // "python"
  std::string script;               // "pretrain_gpt.py"
  std::vector<std::string> before;  // flags ahead of the script
  Json launch = Json::object();     // these with their values
  std::vector<std::string> words;   // behind it
  std::vector<std::string> lists;
  Json flags = Json::object();

  std::string name() const {
    const std::string short_script = base_of(script);
    return script.empty() ? program : program.empty() ? short_script : program + " " + short_script;
  }
  // The command that trains is the job.
  auto rank() const {
    const std::string file = base_of(script);
    const bool trains = file.find("train") != file.npos || file.find("tune") != file.npos;
    return std::tuple(marks_megatron(flags), trains, flags.size());
  }
};

Command command_of(const std::vector<std::string>& given) {
  Command command;
  const std::vector<std::string> words = taken_apart(given);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool module = i > 0 && words[i - 1] == "-m" && words[i].find('.') == words[i].npos;
    if (!words[i].ends_with(".py") && !module) continue;
    command.script = words[i];
    begin = i + 1;
    break;
  }
  if (!words.empty() && !is_flag(words[0]) && begin != 1) command.program = base_of(words[0]);
  for (std::size_t i = 0; i < begin; ++i) {
    if (is_flag(words[i])) command.before.push_back(words[i]);
  }
  if (begin > 0) {
    const auto script = words.begin() + static_cast<std::ptrdiff_t>(begin) - 1;
    command.launch = flags_in({words.begin(), script}, command.lists);
  }
  command.words.assign(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
  command.flags = flags_in(command.words, command.lists);
  return command;
}

// Lines that are flags and nothing else are one command.
std::vector<Command> commands_of(const ShellReading& shell) {
  std::vector<Command> commands;
  std::vector<std::string> bare;
  for (const std::vector<std::string>& words : shell.commands) {
    if (!words.empty() && is_flag(words[0])) {
      bare.insert(bare.end(), words.begin(), words.end());
    } else {
      commands.push_back(command_of(words));
    }
  }
  if (!bare.empty()) commands.push_back(command_of(bare));
  return commands;
}

std::string listed(const std::vector<std::string>& words, std::size_t most, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, words.size()); ++i) {
    text += (i > 0 ? between : "") + words[i];
  }
  return text +
         (words.size() > most ? " and " + std::to_string(words.size() - most) + " more" : "");
}

std::vector<std::string> flags_among(const std::vector<std::string>& words) {
  std::vector<std::string> flags;
  for (const std::string& word : words) {
    if (is_flag(word)) flags.push_back(word.substr(0, word.find('=')));
  }
  return flags;
}

// "NAME (--a, --b)".
void add_group(const std::string& name, const std::vector<std::string>& flags,
               std::vector<std::string>& groups) {
  constexpr std::size_t kMostNames = 8;
  if (!flags.empty()) groups.push_back(name + " (" + listed(flags, kMostNames, ", ") + ")");
}

// What a script holds beside the job's flags.
void say_passed_over(const ShellReading& shell, const std::vector<Command>& commands,
                     const Command* job, TrainingCommand& training) {
  constexpr std::size_t kMostGroups = 12;
  std::vector<std::string> groups;
  for (const auto& variable : shell.variables) {
    if (job != nullptr && !variable.used) {
      add_group(variable.name, flags_among(variable.words), groups);
    }
  }
  for (const Command& command : commands) {
    if (&command != job) add_group(command.name(), flags_among(command.words), groups);
    const bool read = command.program == "accelerate" || command.program == "horovodrun";
    if (read && &command == job) continue;
    std::vector<std::string> before = flags_among(command.before);
    std::erase_if(before,
                  [](const auto& flag) { return launcher_flags().contains(name_of_flag(flag)); });
    add_group(command.program, before, groups);
  }
  std::vector<std::string> skipped = flags_among(shell.skipped);
  std::erase_if(skipped, [&](const std::string& flag) {
    return training.flags.contains(name_of_flag(flag).substr(2));
  });
  add_group("branches that are not taken", skipped, groups);
  if (groups.empty()) return;
  const std::string name = job != nullptr ? job->name() : "";
  training.said.push_back((name.empty() ? "the job" : name + " as the job") +
                          " without what it is not given: " + listed(groups, kMostGroups, "; "));
}

void say_choices(const ShellReading& shell, TrainingCommand& training) {
  constexpr std::size_t kMostNames = 12;
  if (!shell.conditions.empty()) {
    training.said.push_back("the script's conditions as its own values have them: " +
                            listed(shell.conditions, kMostNames, "; "));
  }
  if (!shell.conditions.empty() && !shell.unset.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : shell.unset) names.push_back("$" + name);
    training.said.push_back(
        "that nothing sets " + listed(names, kMostNames, ", ") +
        ", which conditions ask for: the script is assumed to be started without "
        "arguments and variables");
  }
  if (!shell.chosen.empty()) {
    training.said.push_back("of what only a run decides: " +
                            listed(shell.chosen, kMostNames, "; "));
  }
}

}  // namespace

TrainingCommand training_command(const std::string& text) {
  if (not_utf8(text)) throw InputError("flags that are not UTF-8 (Latin-1?)");
  const ShellReading shell = read_shell(text);
  const std::vector<Command> commands = commands_of(shell);
  const Command* job = nullptr;
  for (const Command& command : commands) {
    if (command.flags.empty()) continue;
    if (job == nullptr || command.rank() > job->rank()) job = &command;
  }
  // Flags that another script takes.
  Command all;
  std::vector<std::string> names;
  for (const auto& variable : shell.variables) {
    all.words.insert(all.words.end(), variable.words.begin(), variable.words.end());
    names.push_back(variable.name);
  }
  all.flags = flags_in(all.words, all.lists);
  TrainingCommand training;
  if (marks_megatron(all.flags) && (job == nullptr || !marks_megatron(job->flags))) {
    training.said.push_back("the flags of " + listed(names, names.size(), ", ") +
                            ", which no command in the script is given");
    job = nullptr;
  } else if (job != nullptr) {
    all = *job;
  }
  training.flags = all.flags;
  training.script = base_of(all.script);
  training.program = all.program;
  training.launch = all.launch;
  const auto started = std::ranges::find_if(
      commands, [](const Command& command) { return !command.before.empty(); });
  if (job == nullptr && started != commands.end()) {
    training.program = started->program;
    training.launch = started->launch;
  }
  say_choices(shell, training);
  say_passed_over(shell, commands, job, training);
  if (!all.lists.empty()) {
    training.said.push_back("nothing behind " + listed(all.lists, all.lists.size(), ", ") +
                            ", which is set elsewhere");
  }
  return training;
}

Json flags_of(const std::string& text) { return training_command(text).flags; }

}  // namespace syncline::job::frameworks
