#include "cli/apply_file.h"

#include "cli/python_scripts.h"
#include "core/dialect/pytorch_apply.h"
#include "core/error.h"
#include "reports/applied.h"

namespace syncline::cli {

void check_python(const std::string& file, const std::string& dialect, const std::string& option) {
  if (file.empty() || dialect == kPythonDialect) return;
  throw InputError("--python writes a file for PyTorch: it needs " + option + " " +
                   std::string(kPythonDialect));
}

std::string apply_file(const Scenario& scenario, const Strategy& strategy,
                       const measure::Pinned& pinned) {
  const std::string obstacle =
      dialect::apply_obstacle(strategy, scenario.workload, scenario.cluster);
  if (!obstacle.empty()) {
    throw InputError("strategy '" + strategy.name +
                     "' cannot be applied by a Python file: " + obstacle);
  }
  const Strategy applied = dialect::as_applied(strategy);
  const std::string placeholder = "STRATEGY = None\n";
  std::string file(apply_script());
  file.replace(file.find(placeholder), placeholder.size(),
               reports::applied_comment(scenario, applied, pinned) + "STRATEGY = " +
                   dialect::apply_table(strategy, scenario.workload, scenario.cluster) + "\n");
  return file;
}

}  // namespace syncline::cli
