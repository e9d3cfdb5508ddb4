// Reads flags of a launch, from a command line or as captured.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>

#include "core/base/error.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "imports/frameworks/settings.h"
#include "imports/frameworks/shell.h"

namespace syncline::job::frameworks {
namespace {

// Flags of torchrun, torch.distributed.launch and the deepspeed launcher, for the ranks' placement.
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

// Returns true for a word such as "-m", but not for a number below zero.
bool is_short_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

// Returns the name in "--name=value", as Megatron spells it.
std::string name_of_flag(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  std::ranges::replace(name, '_', '-');
  return name;
}

// Returns the value of "--name=word"; false turns a switch off.
Json behind_equals(const std::string& word) {
  if (word == "true" || word == "false") return word == "true";
  return number_or_text(word);
}

Json value_of(const std::vector<Json>& values) {
  if (values.empty()) return true;
  return values.size() == 1 ? values.front() : Json(values);
}

// Returns true for a word such as "trainer.devices=8".
bool is_override(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::size_t begin = word.starts_with('+') ? word.find_first_not_of('+') : 0;
  return equals != word.npos && begin < equals &&
         std::all_of(word.begin() + static_cast<std::ptrdiff_t>(begin),
                     word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

// Returns the flags of a command's words with their values.
Json flags_in(const std::vector<std::string>& words) {
  Json flags = Json::object();
  std::string name;
  std::vector<Json> values;
  const auto close = [&] {
    if (!name.empty()) flags[name] = value_of(values);
    if (flags.size() > kMaxKeys) throw InputError("more than 5000 flags in one command");
    name.clear();
    values.clear();
  };
  for (const std::string& word : words) {
    if (is_flag(word)) {
      close();
      const std::size_t equals = word.find('=');
      name = name_of_flag(word).substr(2);
      if (equals != std::string::npos) values.push_back(behind_equals(word.substr(equals + 1)));
    } else if (is_short_flag(word)) {
      close();
    } else if (!name.empty() && !is_override(word)) {
      values.push_back(number_or_text(word));
    }
  }
  close();
  return flags;
}

bool looks_like_flags(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin != text.npos &&
         (text.substr(begin).starts_with("--") || text.find(" --") != text.npos);
}

// Splits a word that was quoted as a whole list into its words.
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

// A launch with its flags.
struct Command {
  const launch::CapturedLaunch* launch = nullptr;
  std::string program;              // flags before the script
  std::string script;               // "pretrain_gpt.py"
  std::vector<std::string> before;  // flags before the script
  Json ahead = Json::object();      // these with their values
  Json flags = Json::object();
  std::vector<std::string> files;  // words after the script that name settings
  std::vector<std::string> overrides;

  std::string name() const {
    const std::string short_script = base_of(script);
    return script.empty() ? program : program.empty() ? short_script : program + " " + short_script;
  }
  // Returns the rank of a command; the job is the one that trains.
  auto rank() const {
    const std::string file = base_of(script);
    const bool trains = file.find("train") != file.npos || file.find("tune") != file.npos;
    return std::tuple(marks_megatron(flags), trains, flags.size());
  }
};

// Replaces the names of captured files by their content, and objects that are written as one word
// by these objects. A file that names a file that names a file multiplies: all values are counted.
class Contents {
 public:
  explicit Contents(const std::map<std::string, std::string>& files) : files_(files) {}

  Json of(const Json& value, int depth = 0) {
    constexpr int kDeepestNames = 4;  // a file names a file
    if (++values_ > kMaxValues) throw InputError("files of settings with more than 100000 values");
    if (value.is_structured()) {
      Json all = value;
      for (auto& [key, one] : all.items()) one = of(one, depth);
      return all;
    }
    if (!value.is_string() || depth > kDeepestNames) return value;
    const std::string word = value.get<std::string>();
    if (word.starts_with('{')) {
      const auto json = try_parse_json(word);
      if (json) expect_few_keys(shorten_text(visible(word), 60), *json);
      return json ? *json : value;
    }
    const auto known = parsed_.find(word);
    if (known != parsed_.end()) return of(known->second, depth + 1);
    const auto file = files_.find(word);
    if (file == files_.end()) return value;
    const bool toml = word.ends_with(".toml");
    const bool yaml = word.ends_with(".yaml") || word.ends_with(".yml");
    const bool json =
        word.ends_with(".json") || (word.ends_with(".conf") && file->second.starts_with('{'));
    if (!toml && !json && !yaml) return value;
    Json content = toml   ? parse_toml(word, file->second)
                   : json ? parse_json_text(word, file->second)
                          : parse_yaml(word, file->second);
    expect_few_keys(word, content);
    return of(parsed_.emplace(word, std::move(content)).first->second, depth + 1);
  }

 private:
  const std::map<std::string, std::string>& files_;
  std::map<std::string, Json> parsed_;  // files that were named
  std::size_t values_ = 0;
};

Command command_of(const launch::CapturedLaunch& launch) {
  Command command;
  command.launch = &launch;
  const std::vector<std::string> words = taken_apart(launch.words);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool module = i > 0 && (words[i - 1] == "-m" || words[i - 1] == "--module") &&
                        !words[i].starts_with("torch.distributed.") && words[i] != "deepspeed";
    if (!words[i].ends_with(".py") && !module) continue;
    command.script = words[i];
    begin = i + 1;
    break;
  }
  if (!words.empty() && !is_flag(words[0]) && begin != 1) command.program = base_of(words[0]);
  const bool verbs = command.program == "megatron" || command.program == "litgpt";
  if (verbs && begin == 0 && words.size() > 1 && !is_flag(words[1])) {
    command.script = words[1];
    begin = 2;
  }
  for (std::size_t i = 0; i < begin; ++i) {
    if (is_flag(words[i])) command.before.push_back(words[i]);
  }
  const auto script = words.begin() + static_cast<std::ptrdiff_t>(begin);
  if (begin > 0) command.ahead = flags_in({words.begin(), script - 1});
  command.flags = flags_in({script, words.end()});
  // The one short flag that says much, in torchvision's and timm's scripts.
  const auto batch = std::find(script, words.end(), "-b");
  if (batch != words.end() && batch + 1 != words.end() && !command.flags.contains("batch-size")) {
    command.flags["batch-size"] = number_or_text(*(batch + 1));
  }
  for (auto word = script; word != words.end(); ++word) {
    if (is_override(*word)) command.overrides.push_back(*word);
  }
  if (const Json name = command.flags.value("config-name", Json()); name.is_string()) {
    const std::string file = name.get<std::string>();
    command.files.push_back(file.ends_with(".yaml") ? file : file + ".yaml");
  }
  for (auto word = script; word != words.end() && !is_flag(*word); ++word) {
    for (const char* end : {".json", ".yaml", ".yml"}) {
      if (word->ends_with(end)) command.files.push_back(*word);
    }
  }
  return command;
}

// Returns the word after one of these flags, "-np 16" or "--np=16"; empty: there is none.
std::string word_behind(const std::vector<std::string>& words,
                        std::initializer_list<std::string_view> flags) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    std::ranges::replace(name, '_', '-');
    if (std::ranges::find(flags, name) == flags.end()) continue;
    if (equals != std::string::npos) return words[i].substr(equals + 1);
    return i + 1 < words.size() ? words[i + 1] : "";
  }
  return "";
}

// Returns a word as an integer; 0: it is not one.
std::int64_t count_in(const std::string& word) {
  const Json number = number_or_text(word);
  const bool whole = number.is_number_integer() && number >= 1 && number <= kMaxRanks;
  return whole ? number.get<std::int64_t>() : 0;
}

// Sums the slots of a hostfile, "worker-1 slots=8", as DeepSpeed's launcher reads it.
std::int64_t slots_in(const std::string& hostfile) {
  std::istringstream lines(hostfile);
  std::int64_t all = 0;
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    const std::size_t slots = line.find("slots=");
    if (slots == line.npos) continue;
    const std::string count = line.substr(slots + 6);
    all += count_in(count.substr(0, count.find_first_of(" \t\r")));
  }
  return std::min(all, kMaxRanks);
}

std::string text_of_file(const std::string& name, const launch::CapturedLaunch& launch) {
  const auto captured = launch.files.find(name);
  if (captured != launch.files.end()) return captured->second;
  std::error_code error;
  const bool here = !name.empty() && std::filesystem::is_regular_file(name, error);
  return here ? read_text_file(name, "a hostfile") : "";
}

// Returns the processes that a launch starts, all nodes together; 0: unknown.
std::int64_t processes_of(const Command& command) {
  const launch::CapturedLaunch& launch = *command.launch;
  const std::vector<std::string>& words = launch.words;
  const std::string& around = launch.around.empty() ? "" : launch.around.front();
  if (command.program == "deepspeed") {
    const std::int64_t each = count_in(word_behind(words, {"--num-gpus"}));
    const std::int64_t nodes = count_in(word_behind(words, {"--num-nodes"}));
    if (each > 0 && nodes > 0) return std::min(each * nodes, kMaxRanks);
    const std::string file = word_behind(words, {"--hostfile", "-H"});
    const bool some = !word_behind(words, {"--include", "-i", "--exclude", "-e"}).empty();
    const std::int64_t slots = some ? 0 : slots_in(text_of_file(file, launch));
    return slots > 0 && each + nodes == 0 ? slots : each;
  }
  const std::int64_t each = count_in(word_behind(words, {"--nproc-per-node"}));
  const std::string nodes = word_behind(words, {"--nnodes"});
  if (each > 0) return std::min(each * (nodes.empty() ? 1 : count_in(nodes)), kMaxRanks);
  if (command.program == "horovodrun") {
    return count_in(word_behind(words, {"-np", "--num-proc"}));
  }
  const auto in_environment = [&](const char* name, std::int64_t other) {
    const auto variable = launch.environment.find(name);
    return variable == launch.environment.end() ? other : count_in(variable->second);
  };
  if (command.program == "swift" || command.program == "megatron" ||
      command.program == "llamafactory-cli") {
    return std::min(in_environment("NPROC_PER_NODE", 0) * in_environment("NNODES", 1), kMaxRanks);
  }
  if (!command.program.starts_with("python")) return 0;
  if (around.starts_with("mpi")) {
    return count_in(word_behind(launch.around, {"-np", "-n", "--np"}));
  }
  if (around != "srun") return 0;
  const std::int64_t tasks = count_in(word_behind(launch.around, {"--ntasks", "-n"}));
  return tasks > 0 ? tasks : in_environment("SLURM_NTASKS", 0);
}

// Returns the machines that a launch names; 0: none.
std::int64_t machines_of(const Command& command) {
  const std::vector<std::string>& words = command.launch->words;
  return count_in(word_behind(words, {"--nnodes", "--num-nodes", "--num-machines"}));
}

}  // namespace

std::string list_words(const std::vector<std::string>& words, std::size_t most,
                       const char* between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, words.size()); ++i) {
    text += (i > 0 ? between : "") + words[i];
  }
  return text +
         (words.size() > most ? " and " + std::to_string(words.size() - most) + " more" : "");
}

namespace {

// Names the launches that are not the job, and ignored flags of its launcher.
void say_passed_over(const std::vector<Command>& commands, const Command& job,
                     TrainingCommand& training) {
  constexpr std::size_t kMaxNames = 8;
  std::vector<std::string> others;
  std::size_t number = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string name = commands[i].name();
    if (&commands[i] == &job) number = i + 1;
    if (&commands[i] != &job && !commands[i].flags.empty()) {
      others.push_back(std::to_string(i + 1) + (name.empty() ? "" : ", " + name));
    }
  }
  if (!others.empty()) {
    training.said.push_back(
        "launch " + std::to_string(number) + ", " + job.name() +
        ", as the job (--launch chooses another: " + list_words(others, kMaxNames, "; ") + ")");
  }
  if (job.program == "accelerate" || job.program == "horovodrun") return;
  std::vector<std::string> before;
  for (const std::string& word : job.before) {
    const std::string name = word.substr(0, word.find('='));
    if (!launcher_flags().contains(name_of_flag(word))) before.push_back(name);
  }
  if (!before.empty()) {
    training.said.push_back("nothing of what " + job.program +
                            " is told: " + list_words(before, kMaxNames, ", "));
  }
}

}  // namespace

std::vector<launch::CapturedLaunch> launches_in_lines(const ShellLines& lines) {
  std::vector<launch::CapturedLaunch> launches;
  std::vector<std::string> bare;  // lines that have only flags are one command
  for (const std::vector<std::string>& words : lines.commands) {
    if (is_flag(words[0])) {
      bare.insert(bare.end(), words.begin(), words.end());
    } else {
      launches.push_back({.words = words});
    }
  }
  if (!bare.empty()) launches.push_back({.words = std::move(bare)});
  return launches;
}

TrainingCommand training_command(const std::vector<launch::CapturedLaunch>& launches, int chosen) {
  std::vector<Command> commands;
  for (const launch::CapturedLaunch& launch : launches) commands.push_back(command_of(launch));
  const Command* job = nullptr;
  for (const Command& command : commands) {
    if (chosen > 0 && &command != &commands[static_cast<std::size_t>(chosen) - 1]) continue;
    if (job == nullptr || command.rank() > job->rank()) job = &command;
  }
  TrainingCommand training;
  if (job == nullptr) return training;
  const launch::CapturedLaunch& started = *job->launch;
  Contents contents(started.files);
  training.flags = contents.of(job->flags);
  training.launch = contents.of(job->ahead);
  for (const std::string& file : job->files) {
    training.settings.push_back(contents.of(file));
  }
  for (const std::string& word : job->overrides) {
    const std::size_t equals = word.find('=');
    const std::size_t begin = word.find_first_not_of('+');
    training.overrides.emplace_back(word.substr(begin, equals - begin), word.substr(equals + 1));
  }
  training.script = base_of(job->script);
  training.program = job->program;
  training.environment = started.environment;
  training.around = started.around;
  training.ranks = processes_of(*job);
  training.nodes = machines_of(*job);
  say_passed_over(commands, *job, training);
  return training;
}

Json with_overrides(const TrainingCommand& training) {
  Json all = Json::object();
  const auto set = [&](const std::string& path, const Json& value) {
    constexpr std::ptrdiff_t kDeepestKey = 16;
    if (std::ranges::count(path, '.') > kDeepestKey) return;
    Json* at = &all;
    std::istringstream keys(path);
    for (std::string key; std::getline(keys, key, '.');) {
      if (!at->is_object()) *at = Json::object();
      at = &(*at)[key];
    }
    *at = value;
  };
  std::vector<Json> files = training.settings;
  if (training.flags.contains("config")) files.push_back(training.flags["config"]);
  for (const Json& one : files) {
    if (one.is_object()) all.update(one);
  }
  for (const auto& [path, word] : training.overrides) {
    const std::string plain = word == "True" ? "true" : word == "False" ? "false" : word;
    set(path, plain == "null" ? Json() : behind_equals(plain));
  }
  for (const auto& [flag, value] : training.flags.items()) {
    std::string path = flag;
    std::ranges::replace(path, '-', '_');
    if (path.find('.') != path.npos) set(path, value);
  }
  return all;
}

Json flags_of(const std::string& text) {
  if (not_utf8(text)) throw InputError("flags that are not UTF-8 (Latin-1?)");
  return training_command(launches_in_lines(read_shell_lines(text)), 0).flags;
}

}  // namespace syncline::job::frameworks
