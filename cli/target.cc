#include "cli/target.h"

#include <string>
#include <utility>

#include "cli/predictors.h"
#include "formats/text/files.h"
#include "reports/chart/figure.h"
#include "reports/worth_report.h"

namespace syncline::cli {

std::optional<worth::Objective> objective_of(const ObjectiveOptions& options) {
  expect_whole(options);
  if (!options.asked()) return std::nullopt;
  worth::Objective objective;
  objective.quantity =
      options.objective == kTimeToLoss ? worth::Quantity::kLoss : worth::Quantity::kAccuracy;
  objective.target = *options.target;
  const auto curves_in = [&](const std::string& file, worth::Over over) {
    return worth::curves_of(read_text_file(file, "a CSV file"), file, objective.quantity, over);
  };
  objective.curves = curves_in(options.curves, worth::Over::kSteps);
  if (!options.measured.empty()) {
    objective.measured = curves_in(options.measured, worth::Over::kSeconds);
  }
  return objective;
}

void print_to_target(const TargetQuestion& question) {
  const worth::Worth worth =
      worth::worth_of(question.document, *objective_of(question.objective), question.executor,
                      predictor_named(question.executor).make, std::nullopt);
  const SideFile svg{question.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg}, reports::answer_of(worth, "run"), question.output);
}

}  // namespace syncline::cli
