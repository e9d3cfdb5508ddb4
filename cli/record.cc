#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "cli/built_in.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace syncline::cli {

namespace {

// Writes all three scripts, as the tuner imports the others.
void write_scripts(const std::filesystem::path& folder) {
  const std::pair<const char*, std::string_view> scripts[] = {
      {"syncline_record.py", record_script()},
      {"syncline_apply.py", apply_script()},
      {"syncline_tuner.py", tuner_script()}};
  std::vector<std::string> written;
  for (const auto& [name, script] : scripts) {
    written.push_back((folder / name).string());
    write_file(written.back(), std::string(script));
  }
  tell_written(written);
}

}  // namespace

VerbAction add_record(CLI::App& verb) {
  auto file = std::make_shared<std::string>();
  add_file(verb, "-o,--out", *file,
           "write syncline_record.py; into a folder: also the files of autotune");
  verb.footer(
      "For an unmodified script:\n"
      "  torchrun ... -m syncline_record train.py\n"
      "Or in the script, on every rank:\n"
      "  from syncline_record import record\n"
      "  record(model, step)   # step(): forward, backward, optimizer.step()");
  return [file] {
    if (file->empty()) {
      std::cout << record_script();
    } else if (std::filesystem::is_directory(*file)) {
      write_scripts(*file);
    } else {
      write_file(*file, std::string(record_script()));
      tell_written({*file});
    }
    return 0;
  };
}

}  // namespace syncline::cli
