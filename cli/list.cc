#include <memory>

#include "cli/executors.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "reports/choices.h"

namespace syncline::cli {
namespace {

reports::Choices executors_listed() {
  auto executors = reports::choices_of("executor", "what it does", predictors());
  executors.rows.push_back(
      {"host", "", "moves real floats in memory: the reference for values and bytes, in tests"});
  return executors;
}

}  // namespace

VerbAction add_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto* verb = app.add_subcommand("list", "List the names that scenarios and options accept");
  add_format(*verb, *output);
  return [output] {
    print(reports::list_of_choices(executors_listed(),
                                   reports::choices_of("backend", "what it does", backends())),
          *output);
    return 0;
  };
}

}  // namespace syncline::cli
