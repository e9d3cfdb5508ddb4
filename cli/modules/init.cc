#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/modules/imports.h"
#include "cli/options.h"
#include "cli/output.h"
#include "imports/init_question.h"

namespace syncline::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;  // of prose in a file

struct InitVerb {
  job::InitQuestion question;
  std::string missing;  // of the words behind, for the parser
  std::string out;
};

// Prints what was assumed: next to a scenario on stdout on stderr.
void tell_begun(const job::Begun& begun, const std::string& out) {
  std::ostream& talk = out.empty() ? std::cerr : std::cout;
  const std::size_t terminal = stdout_screen(ColourMode::kNever).width;
  const std::size_t width = !out.empty() && terminal > 0 ? terminal : kUsualWidth;
  const auto tell = [&](const std::string& said, std::size_t indent) {
    for (const auto& line : reports::wrapped(said, width, indent)) talk << line << "\n";
  };
  constexpr std::size_t kBehindDash = 4;
  tell(begun.scenario["name"].get<std::string>(), 0);
  tell("Assumed:", 0);
  for (const std::string& line : begun.assumed) tell("  - " + line, kBehindDash);
  if (!out.empty()) talk << "Written: " << out << "; next: syncline run " << out << "\n";
}

int run(const InitVerb& options) {
  expect_writable({options.out});
  const job::Begun begun = job::answer(options.question);
  const std::string text = begun.scenario.dump(2) + "\n";
  if (options.out.empty()) {
    std::cout << text << std::flush;
  } else {
    write_file(options.out, text);
  }
  tell_begun(begun, options.out);
  return 0;
}

}  // namespace

VerbAction add_init(CLI::App& verb) {
  auto options = std::make_shared<InitVerb>();
<<<<<<< HEAD
  verb.add_option(
          "model", options->question.model,
          "architecture (see syncline list), config.json, .safetensors or framework settings; "
          "- is standard input")
      ->required();
  verb.add_option("settings", options->question.words,
                  "settings of its framework, such as a YAML or captured launches");
  // Never given: the parser takes words behind "--" only where one is missing.
  verb.add_option("flags", options->missing, "flags, after --")->group("");
  const questions::Arguments arguments = arguments_of(options->question);
  add_arguments(verb, arguments, {"node", "gpu", "gpus", "net", "step", "nodes"});
  verb.get_option("--net")->type_name("PORTS");
  verb.get_option("--step")->type_name("NODES=SECONDS");
  add_file(verb, "-o,--out", options->out, "write to this file (default: standard output)");
  add_arguments(verb, arguments);
=======
  verb.add_option("model", options->init.model,
                  "architecture (see syncline list), config.json, .safetensors or settings (- is "
                  "standard input)")
      ->required();
  verb.add_option("settings", options->settings,
                  "settings of its framework: a YAML, captured launches");
  // Never given: the parser takes words behind "--" only where one is missing.
  verb.add_option("flags", options->missing, "flags, after --")->group("");
  verb.add_option("--node", options->init.node,
                  "kind of node, such as dgx-h100, or NCCL's topology file (.xml)");
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
  verb.add_option("--nodes", options->nodes,
                  "number of nodes (default: by settings and steps, or 1)")
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
  verb.add_option("--launch", options->init.launch,
                  "captured launch (default: the one that trains)")
      ->check(CLI::Range(1, 99));
  verb.add_option("--dtype", options->init.dtype, "format (default: the GPU's)")
      ->transform(one_of_words({"bf16", "fp16", "fp8", "tf32", "fp32"}));
  verb.add_flag("--compiled", options->init.compiled, "predict a model under torch.compile");
  for (const auto& [option, key, what] : kCuts) verb.get_option(option)->group("Layout");
  put_in_group(verb, "Layout",
               {"--sequence-parallel", "--schedule", "--micro-batches", "--launch"});
>>>>>>> 25363e3f0d530c573b6611f57fd373f1f3d33539
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
