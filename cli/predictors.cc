#include "cli/predictors.h"

#include "cli/options.h"

namespace syncline::cli {

void add_executor(CLI::App& verb, std::string& name, const std::string& about) {
  add_arguments(verb, {questions::executor_argument(name, about)});
}

}  // namespace syncline::cli
