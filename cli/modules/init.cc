#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/modules/imports.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/error.h"
#include "formats/input/document.h"
#include "imports/init.h"

namespace syncline::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;  // of prose in a file

struct InitVerb {
  job::InitOptions init;
  std::vector<std::string> settings;  // a file, or words of a line
  std::string missing;                // of the words behind, for the parser
  std::string out;
  int nodes = 0;  // as given
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t micro_batches = 0;
  std::map<std::string, std::int64_t> sizes;  // of the layout, by their keys
  std::string schedule;
  bool sequence_parallel = false;
  std::vector<std::string> steps;  // "4=8.68"
};

// What a job may be cut into, by the option and the key of workload.parallel.
struct Cut {
  const char* option;
  const char* key;
  const char* what;
};
constexpr std::array kCuts{
    Cut{"--tp", "tensor", "ranks per layer (tensor parallelism)"},
    Cut{"--pp", "pipeline", "pipeline stages"},
    Cut{"--vp", "virtual_stages", "model chunks per pipeline stage"},
    Cut{"--cp", "context", "ranks per sequence (context parallelism)"},
    Cut{"--ep", "expert", "ranks per set of experts (expert parallelism)"},
    Cut{"--etp", "expert_tensor", "ranks per expert (tensor parallelism of experts)"}};

// The first word of a launch, which is no model.
bool starts_launch(const std::string& word) {
  constexpr std::array<std::string_view, 9> kPrograms{"torchrun",   "python",     "python3",
                                                      "srun",       "deepspeed",  "mpirun",
                                                      "accelerate", "horovodrun", "bash"};
  const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
  return word.ends_with(".py") || std::ranges::find(kPrograms, name) != kPrograms.end();
}

// Flags behind -- come word by word. Without a model ahead of them they begin in its place.
void take_settings(InitVerb& options) {
  std::vector<std::string> words = options.settings;
  job::InitOptions& init = options.init;
  const bool launch = !words.empty() && starts_launch(init.model);
  if (init.model.starts_with("--") || launch)
    words.insert(words.begin(), std::exchange(init.model, {}));
  if (words.empty()) return;
  const bool line =
      words.front().starts_with("--") || (words.size() > 1 && starts_launch(words[0]));
  const bool file = !launch && !line;
  std::error_code error;
  if (file && words.size() > 1 && !words[1].starts_with("--") &&
      !std::filesystem::is_regular_file(words[1], error)) {
    throw InputError("init: found '" + words[1] +
                     "', expected a model, files of a framework's settings, and flags");
  }
  if (file) {
    init.settings = words.front();
    words.erase(words.begin());
  }
  std::string flags;
  for (const std::string& word : words) {
    // One word may be a whole line; of several each is what a shell made of its quotes.
    flags += (flags.empty() ? "" : " ") + (words.size() > 1 ? shell_word(word) : word);
  }
  (file ? init.flags : init.model.empty() ? init.model : init.settings) = flags;
}

// "4=8.68": on 4 nodes 8.68 s a step.
void take_steps(InitVerb& options) {
  for (const std::string& text : options.steps) {
    const std::size_t equal = text.find('=');
    const auto nodes = number_in<int>(text.substr(0, equal));
    const auto seconds =
        equal == text.npos ? std::nullopt : number_in<double>(text.substr(equal + 1));
    if (!nodes || !seconds || *nodes < 1 || !(*seconds > 0)) {
      throw InputError("--step: found '" + text + "', expected NODES=SECONDS, such as 4=8.68");
    }
    options.init.steps.emplace_back(*nodes, *seconds);
    options.init.nodes = std::max(options.init.nodes, *nodes);
  }
  auto& steps = options.init.steps;
  std::ranges::sort(steps);
  const auto same = std::ranges::adjacent_find(steps, {}, &std::pair<int, Seconds>::first);
  if (same != steps.end()) {
    throw InputError("--step: found two for " + std::to_string(same->first) +
                     " nodes, expected one per number of nodes");
  }
  if (options.nodes == 0) return;
  // Of steps across nodes the network is known at their own counts alone.
  const bool known = std::ranges::count(steps, options.nodes, &std::pair<int, Seconds>::first) > 0;
  if (options.init.nodes > 1 && !known) {
    throw InputError("--nodes: found " + std::to_string(options.nodes) +
                     ", expected a number of nodes of --step, up to " +
                     std::to_string(options.init.nodes) + ", or no --nodes");
  }
  options.init.nodes = std::max(options.init.nodes, options.nodes);
}

int run(InitVerb options) {
  take_settings(options);
  take_steps(options);
  const bool file = job::is_topology_file(options.init.node);
  if (!file && options.init.node.empty() == options.init.gpu.empty()) {
    throw InputError("init needs --node, or --gpu with --gpus and --net");
  }
  if (options.batch > 0) options.init.batch = options.batch;
  if (options.sequence > 0) options.init.sequence = options.sequence;
  if (options.micro_batches > 0) options.init.micro_batches = options.micro_batches;
  options.init.parallel = Json::object();
  for (const auto& [key, size] : options.sizes) {
    if (size > 0) options.init.parallel[key] = size;
  }
  if (!options.schedule.empty()) options.init.parallel["schedule"] = options.schedule;
  if (options.sequence_parallel) options.init.parallel["sequence"] = true;
  if (file && options.init.gpus > 1) {
    throw InputError("--gpus: " + options.init.node + " says how many there are");
  }
  expect_writable({options.out});
  const job::Begun begun = job::init_scenario(options.init);
  // What is written must be right: it is read as a user's file would be.
  const std::string text = begun.scenario.dump(2) + "\n";
  const bool to_file = !options.out.empty();
  const std::string name = to_file ? options.out : "the new scenario";
  input::parse_scenario(input::document_of(name, begun.scenario));
  if (to_file) {
    write_file(options.out, text);
  } else {
    std::cout << text << std::flush;
  }
  // Beside a scenario on stdout the talk goes to stderr.
  std::ostream& talk = to_file ? std::cout : std::cerr;
  const std::size_t terminal = stdout_screen(ColourMode::kNever).width;
  const std::size_t width = to_file && terminal > 0 ? terminal : kUsualWidth;
  const auto tell = [&](const std::string& said, std::size_t indent) {
    for (const auto& line : reports::wrapped(said, width, indent)) talk << line << "\n";
  };
  constexpr std::size_t kBehindDash = 4;
  tell(begun.scenario["name"].get<std::string>(), 0);
  tell("Assumed:", 0);
  for (const std::string& line : begun.assumed) tell("  - " + line, kBehindDash);
  if (to_file) {
    talk << "Written: " << options.out << "; next: syncline run " << options.out << "\n";
  }
  return 0;
}

}  // namespace

VerbAction add_init(CLI::App& verb) {
  auto options = std::make_shared<InitVerb>();
  verb.add_option(
          "model", options->init.model,
          "architecture (see syncline list), config.json, .safetensors or framework settings")
      ->required();
  verb.add_option("settings", options->settings,
                  "settings of its framework, such as a YAML or a script");
  // Never given: the parser takes words behind "--" only where one is missing.
  verb.add_option("flags", options->missing, "flags, after --")->group("");
  verb.add_option("--node", options->init.node,
                  "kind of node, such as dgx-h100, or NCCL's topology file");
  CLI::Option* gpu = verb.add_option("--gpu", options->init.gpu,
                                     "kind of GPU, such as rtx-3090, instead of --node");
  verb.add_option("--gpus", options->init.gpus, "GPUs per node, with --gpu (default 1)")
      ->check(CLI::Range(1, 1024))
      ->needs(gpu);
  verb.add_option("--net", options->init.net, "ports of a node, such as 4x100gbit:efa, with --gpu")
      ->type_name("PORTS")
      ->needs(gpu);
  verb.add_option("--step", options->steps, "measured step time, to fit the device or the network")
      ->type_name("NODES=SECONDS")
      ->allow_extra_args(false);
  verb.add_option("--nodes", options->nodes, "number of nodes (default 1, or the most of --step)")
      ->check(CLI::Range(1, 100000));
  add_file(verb, "-o,--out", options->out, "write to this file (default: standard output)");
  for (const auto& [option, key, what] : kCuts) {
    verb.add_option(option, options->sizes[key], what)->check(CLI::Range(1, 1 << 20));
  }
  verb.add_flag("--sequence-parallel", options->sequence_parallel,
                "split norms and residuals across the --tp ranks");
  verb.add_option("--schedule", options->schedule, "pipeline schedule")
      ->transform(one_of_words({"gpipe", "1f1b", "interleaved", "zero_bubble"}));
  verb.add_option("--micro-batches", options->micro_batches,
                  "micro-batches per step (default: the settings', else by the pipeline)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  verb.add_option("--batch", options->batch,
                  "samples per GPU or micro-batch (default: the model's)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  verb.add_option("--sequence", options->sequence, "tokens per sample (default: the model's)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  verb.add_option("--dtype", options->init.dtype, "format (default: the GPU's)")
      ->transform(one_of_words({"bf16", "fp16", "fp8", "tf32", "fp32"}));
  verb.add_flag("--compiled", options->init.compiled, "predict a model under torch.compile");
  for (const auto& [option, key, what] : kCuts) verb.get_option(option)->group("Layout");
  put_in_group(verb, "Layout", {"--sequence-parallel", "--schedule", "--micro-batches"});
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
