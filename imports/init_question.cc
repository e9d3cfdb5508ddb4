#include "imports/init_question.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/text/parse_number.h"
#include "formats/text/shell_word.h"
#include "imports/format.h"

namespace syncline::job {
namespace {

// Parallelism of a layout: the argument, the key of workload.parallel, the value.
struct Cut {
  const char* argument;
  const char* key;
  std::optional<std::size_t> InitQuestion::*size;
  const char* help;
};
constexpr std::array kCuts{
    Cut{"tp", "tensor", &InitQuestion::tensor, "ranks per layer (tensor parallelism)"},
    Cut{"pp", "pipeline", &InitQuestion::pipeline, "pipeline stages"},
    Cut{"vp", "virtual_stages", &InitQuestion::virtual_stages, "model chunks per pipeline stage"},
    Cut{"cp", "context", &InitQuestion::context, "ranks per sequence (context parallelism)"},
    Cut{"ep", "expert", &InitQuestion::expert, "ranks per set of experts (expert parallelism)"},
    Cut{"etp", "expert_tensor", &InitQuestion::expert_tensor,
        "ranks per expert (tensor parallelism of experts)"}};

constexpr std::array<std::string_view, 4> kRecomputed{"none", "selective", "products", "full"};

// Returns whether a word begins a launch, and so is no model.
bool starts_launch(const std::string& word) {
  constexpr std::array<std::string_view, 9> kPrograms{"torchrun",   "python",     "python3",
                                                      "srun",       "deepspeed",  "mpirun",
                                                      "accelerate", "horovodrun", "composer"};
  const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
  return word.ends_with(".py") || std::ranges::find(kPrograms, name) != kPrograms.end();
}

// Divides the words into a model, a file of settings and a line of flags. Without a model the flags
// or the launch begin in its place.
void take_words(const InitQuestion& question, InitOptions& init) {
  std::vector<std::string> words = question.words;
  init.model = question.model;
  if (!question.tensors.empty()) {
    // --tensors names the model: the argument in its place is the first word.
    if (!init.model.empty()) words.insert(words.begin(), init.model);
    init.model = question.tensors;
    init.tensors = true;
  }
  if (init.model.empty()) throw InputError("init: missing the model, or --tensors FILE");
  if (init.model == "bash" || init.model == "sh") {
    throw InputError("init runs no script: `syncline capture -o launch.json -- " + init.model +
                     " ...` does, with stand-ins that train nothing, and init reads launch.json");
  }
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
    // A single word may be a whole line; of several, a shell has removed the quotes.
    flags += (flags.empty() ? "" : " ") + (words.size() > 1 ? shell_word(word) : word);
  }
  (file ? init.flags : init.model.empty() ? init.model : init.settings) = flags;
}

// Reads "4=8.68", a step of 8.68 s on 4 nodes.
std::pair<int, Seconds> measured_step(const std::string& text) {
  const std::size_t equal = text.find('=');
  const auto nodes = parse_number<int>(std::string_view(text).substr(0, equal));
  const auto seconds = equal == text.npos
                           ? std::nullopt
                           : parse_number<double>(std::string_view(text).substr(equal + 1));
  if (!nodes || !seconds || *nodes < 1 || !(*seconds > 0)) {
    throw InputError("--step: found '" + text + "', expected NODES=SECONDS, such as 4=8.68");
  }
  return {*nodes, *seconds};
}

// Reads the measured steps (--step) and sets the number of nodes: --nodes, else the largest of a
// step.
void take_steps(const InitQuestion& question, InitOptions& init) {
  auto& steps = init.steps;
  for (const std::string& text : question.steps) {
    steps.push_back(measured_step(text));
    init.nodes = std::max(init.nodes, steps.back().first);
  }
  std::ranges::sort(steps);
  const auto same = std::ranges::adjacent_find(steps, {}, &std::pair<int, Seconds>::first);
  if (same != steps.end()) {
    throw InputError("--step: found two for " + std::to_string(same->first) +
                     " nodes, expected one per number of nodes");
  }
  if (!question.nodes) return;
  const int nodes = static_cast<int>(*question.nodes);
  // A step across nodes gives the network's times for its own number of nodes only.
  const bool known = std::ranges::count(steps, nodes, &std::pair<int, Seconds>::first) > 0;
  if (init.nodes > 1 && !known) {
    throw InputError("--nodes: found " + std::to_string(nodes) +
                     ", expected a number of nodes of --step, up to " + std::to_string(init.nodes) +
                     ", or no --nodes");
  }
  init.nodes = std::max(init.nodes, nodes);
}

// Throws unless the arguments name the machines once.
void expect_machines(const InitQuestion& question) {
  const bool file = is_topology_file(question.node), measured = !question.cluster.empty();
  const bool gpu = !question.gpu.empty();
  if (!file && !question.node.empty() && gpu) {
    throw InputError("init: remove --node, or --gpu: each says which GPUs these are");
  }
  if (question.node.empty() && !gpu && !measured) {
    throw InputError("init needs --node, or --gpu with --gpus and --net, or --cluster");
  }
  if (question.gpus && !gpu && !measured && !file) {
    throw InputError("--gpus: has no meaning without --gpu: a node of --node has its own");
  }
  if (file && question.gpus.value_or(1) > 1) {
    throw InputError("--gpus: " + question.node + " says how many there are");
  }
  if (!question.net.empty() && measured) {
    throw InputError("--net: remove it: " + question.cluster + " says what links carry");
  }
  if (!question.net.empty() && !gpu) {
    throw InputError("--net: has no meaning without --gpu: a node of --node has its own");
  }
}

Json layout_of(const InitQuestion& question) {
  Json parallel = Json::object();
  for (const Cut& cut : kCuts) {
    if (question.*cut.size) parallel[cut.key] = *(question.*cut.size);
  }
  if (!question.schedule.empty()) parallel["schedule"] = question.schedule;
  if (question.sequence_parallel) parallel["sequence"] = true;
  return parallel;
}

// Returns a refusal of the layout with the argument that was given, "--tp", in place of its key.
std::string by_arguments(std::string refusal, const InitQuestion& question) {
  for (const Cut& cut : kCuts) {
    const std::string key = std::string("init: workload.parallel.") + cut.key + ": ";
    if (!(question.*cut.size) || !refusal.starts_with(key)) continue;
    return refusal.replace(0, key.size(), std::string("--") + cut.argument + ": ");
  }
  return refusal;
}

std::optional<std::int64_t> count_of(const std::optional<std::size_t>& given) {
  if (!given) return std::nullopt;
  return static_cast<std::int64_t>(*given);
}

// Throws unless the word of --recompute is known; as a flag it has none.
void expect_known(const InitQuestion& question) {
  const std::string& word = question.recompute;
  if (word.empty() || std::ranges::find(kRecomputed, word) != kRecomputed.end()) return;
  throw InputError("--recompute: found '" + word + "', expected none, selective, products or full");
}

// Takes the word after --recompute, which as a flag wants "=" before it.
void take_recomputed(InitQuestion& question) {
  if (question.recompute != "full") return;
  const auto known = [](const std::string& word) {
    return std::ranges::find(kRecomputed, word) != kRecomputed.end();
  };
  std::vector<std::string>& words = question.words;
  if (const auto found = std::ranges::find_if(words, known); found != words.end()) {
    question.recompute = *found;
    words.erase(found);
  } else if (known(question.model)) {
    question.recompute = question.model;
    question.model = words.empty() ? "" : words.front();
    if (!words.empty()) words.erase(words.begin());
  }
}

// Lists the arguments about the machines.
void add_machines(InitQuestion& question, questions::Arguments& list) {
  constexpr double kMaxNodes = 100000, kMaxGpus = 1024;
  list.push_back({.name = "node",
                  .value = &question.node,
                  .help = "kind of node (dgx-h100), NCCL's topology or nvidia-smi's"});
  list.push_back({.name = "gpu",
                  .value = &question.gpu,
                  .help = "kind of GPU, such as rtx-3090, instead of --node"});
  list.push_back({.name = "gpus",
                  .value = &question.gpus,
                  .help = "GPUs per node, with --gpu (default 1)",
                  .low = 1,
                  .high = kMaxGpus});
  list.push_back({.name = "cluster",
                  .value = &question.cluster,
                  .help = "measured links (JSON), as calibrate logs -o writes them",
                  .file = true});
  list.push_back({.name = "net",
                  .value = &question.net,
                  .help = "ports of a node, such as 4x100gbit:efa, with --gpu"});
  list.push_back({.name = "step",
                  .value = &question.steps,
                  .help = "measured step time, to fit the device or the network"});
  list.push_back({.name = "nodes",
                  .value = &question.nodes,
                  .help = "number of nodes (default: by settings and steps, or 1)",
                  .low = 1,
                  .high = kMaxNodes});
}

// Lists the arguments that decide a GPU's use of memory.
void add_memory(InitQuestion& question, questions::Arguments& list) {
  constexpr const char* kGroup = "Memory";
  list.push_back({.name = "fsdp",
                  .value = &question.fsdp,
                  .help = "train with PyTorch's FSDP2 (default: if memory asks)",
                  .group = kGroup});
  list.push_back({.name = "zero",
                  .value = &question.zero,
                  .help = "train with this stage of DeepSpeed's ZeRO (default: PyTorch's DDP)",
                  .words = {"0", "1", "2", "3"},
                  .group = kGroup});
  list.push_back({.name = "recompute",
                  .value = &question.recompute,
                  .help = "recompute activations (default: if memory asks)",
                  .words = {kRecomputed.begin(), kRecomputed.end()},
                  .group = kGroup});
}

}  // namespace

questions::Arguments arguments_of(InitQuestion& question) {
  constexpr double kMaxDegree = 1 << 20;
  questions::Arguments list;
  add_machines(question, list);
  const auto add_count = [&](const char* name, std::optional<std::size_t>& value, std::string help,
                             const char* group) {
    list.push_back({.name = name,
                    .value = &value,
                    .help = std::move(help),
                    .low = 1,
                    .high = kMaxDegree,
                    .group = group});
  };
  for (const Cut& cut : kCuts) add_count(cut.argument, question.*cut.size, cut.help, "Layout");
  list.push_back({.name = "sequence-parallel",
                  .value = &question.sequence_parallel,
                  .help = "split norms and residuals across the --tp ranks (default: with --tp)",
                  .group = "Layout"});
  list.push_back({.name = "schedule",
                  .value = &question.schedule,
                  .help = "pipeline schedule",
                  .words = {"gpipe", "1f1b", "interleaved", "zero_bubble"},
                  .group = "Layout"});
  add_count("micro-batches", question.micro_batches,
            "micro-batches per step (default: the settings', else by the pipeline)", "Layout");
  add_count("batch", question.batch, "samples per GPU or micro-batch (default: the model's)", "");
  add_count("sequence", question.sequence, "tokens per sample, such as 8k (default: the model's)",
            "Job");
  list.back().thousand = 1024;
  constexpr double kMaxLaunches = 99;
  list.push_back({.name = "launch",
                  .value = &question.launch,
                  .help = "captured launch (default: the one that trains)",
                  .low = 1,
                  .high = kMaxLaunches,
                  .group = "Job"});
  list.push_back(
      {.name = "tensors",
       .value = &question.tensors,
       .help = "parameters in place of MODEL: safetensors, or NAME (SHAPE) DTYPE per line",
       .file = true,
       .group = "Job"});
  list.push_back({.name = "dtype",
                  .value = &question.dtype,
                  .help = "format (default: the GPU's)",
                  .words = {"bf16", "fp16", "fp8", "tf32", "fp32"}});
  list.push_back({.name = "compiled",
                  .value = &question.compiled,
                  .help = "predict a model under torch.compile",
                  .group = "Job"});
  add_memory(question, list);
  return list;
}

Begun answer(const InitQuestion& asked) {
  InitQuestion question = asked;
  take_recomputed(question);
  InitOptions init;
  take_words(question, init);
  take_steps(question, init);
  expect_machines(question);
  expect_known(question);
  init.node = question.node;
  init.gpu = question.gpu;
  init.gpus = static_cast<int>(question.gpus.value_or(0));
  init.cluster = question.cluster;
  init.net = question.net;
  init.dtype = question.dtype;
  init.compiled = question.compiled;
  init.fsdp = question.fsdp;
  if (!question.zero.empty()) init.zero = question.zero.front() - '0';
  init.recompute = question.recompute;
  init.batch = count_of(question.batch);
  init.sequence = count_of(question.sequence);
  init.micro_batches = count_of(question.micro_batches);
  init.launch = static_cast<int>(question.launch.value_or(0));
  init.parallel = layout_of(question);
  try {
    Begun begun = init_scenario(init);
    input::parse_scenario(input::document_of("the new scenario", begun.scenario));
    return begun;
  } catch (const InputError& error) {
    throw InputError(by_arguments(error.what(), question));
  }
}

}  // namespace syncline::job
