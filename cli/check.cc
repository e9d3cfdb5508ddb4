#include <memory>
#include <utility>

#include "cli/cost.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/remarks.h"
#include "reports/check_report.h"

namespace syncline::cli {
namespace {

struct CheckOptions {
  std::string file;
  OutputFormat format;
};

int run(const CheckOptions& options) {
  const input::Document document = input::read_document(options.file);
  reports::Checked checked;
  checked.file = options.file;
  checked.scenario = input::parse_scenario(document);
  const auto points = sweep_points(checked.scenario);
  checked.points = points.size();
  checked.remarks = measure::remarks_of(document, points);
  for (auto& line : heavy_answers(checked.scenario)) {
    checked.remarks.push_back(std::move(line));
  }
  print(reports::answer_of(checked), options.format);
  return 0;
}

}  // namespace

VerbAction add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  auto* verb = app.add_subcommand("check", "Validate a scenario at every sweep point");
  verb->add_option("file", options->file, "the scenario (JSON)")->required();
  add_format(*verb, options->format);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
