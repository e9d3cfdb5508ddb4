#include <iostream>
#include <memory>

#include "cli/built_in.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace syncline::cli {

VerbAction add_record(CLI::App& verb) {
  auto file = std::make_shared<std::string>();
  add_file(verb, "-o,--out", *file, "write syncline_record.py, next to the training script");
  verb.footer(
      "For an unmodified script:\n"
      "  torchrun ... -m syncline_record train.py\n"
      "Or in the script, on every rank:\n"
      "  from syncline_record import record\n"
      "  record(model, step)   # step(): forward, backward, optimizer.step()");
  return [file] {
    if (file->empty()) {
      std::cout << record_script();
    } else {
      write_file(*file, std::string(record_script()));
      tell_written({*file});
    }
    return 0;
  };
}

}  // namespace syncline::cli
