#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/job/init.h"

namespace syncline::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;  // of prose in a file

struct InitVerb {
  job::InitOptions init;
  std::string out;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
};

int run(InitVerb options) {
  if (options.batch > 0) options.init.batch = options.batch;
  if (options.sequence > 0) options.init.sequence = options.sequence;
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
  const std::size_t terminal = stdout_screen(Colour::kNever).width;
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

VerbAction add_init(CLI::App& app) {
  auto options = std::make_shared<InitVerb>();
  auto* verb = app.add_subcommand(
      "init", "Write a scenario to begin with: a model on nodes of a known kind");
  verb->add_option("model", options->init.model,
                   "an architecture (`syncline list` names them), a config.json or a .safetensors")
      ->required();
  verb->add_option("--node", options->init.node, "kind of node, such as dgx-h100")->required();
  verb->add_option("--nodes", options->init.nodes, "how many of them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("-o,--out", options->out, "file to write; without it the scenario is printed");
  verb->add_option("--batch", options->batch, "samples a GPU and step")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  verb->add_option("--sequence", options->sequence, "tokens a sample")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  verb->add_option("--dtype", options->init.dtype, "format of products: bf16, fp16 or fp32")
      ->transform(one_of_words({"bf16", "fp16", "fp32"}));
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
