#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/heartbeat.h"
#include "cli/modules/imports.h"
#include "cli/options.h"
#include "cli/output.h"
#include "imports/init_question.h"

namespace syncline::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;  // columns of prose in a file

struct InitVerb {
  job::InitQuestion question;
  std::string missing;  // flags after --, for the parser
  std::string out;
};

// Prints the assumptions, to stderr if the scenario goes to stdout.
void tell_begun(const job::Begun& begun, const std::string& out) {
  std::ostream& talk = out.empty() ? std::cerr : std::cout;
  const std::size_t terminal = stdout_screen(ColourMode::kNever).width;
  const std::size_t width = !out.empty() && terminal > 0 ? terminal : kUsualWidth;
  const auto tell = [&](const std::string& text, std::size_t indent) {
    for (const auto& line : reports::wrap(text, width, indent)) talk << line << "\n";
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
  break_silence();
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
  verb.add_option("model", options->question.model,
                  "architecture (see syncline list), config.json, .safetensors or settings (- is "
                  "standard input)");
  verb.add_option("settings", options->question.words,
                  "settings of its framework: a YAML, captured launches");
  // Never given: the parser accepts words after "--" only if a positional is missing.
  verb.add_option("flags", options->missing, "flags, after --")->group("");
  const questions::Arguments arguments = arguments_of(options->question);
  add_arguments(verb, arguments, {"node", "gpu", "gpus", "cluster", "net", "step", "nodes"});
  verb.get_option("--net")->type_name("PORTS");
  verb.get_option("--step")->type_name("NODES=SECONDS");
  add_file(verb, "-o,--out", options->out, "write to this file (default: standard output)");
  verb.add_flag("--recompute{full}", options->question.recompute,
                "recompute activations in full, or by =selective, =none (default: if memory asks)")
      ->group("Memory");
  add_arguments(verb, arguments);
  verb.get_option("--zero")->type_name("STAGE");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
