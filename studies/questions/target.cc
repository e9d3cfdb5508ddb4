#include "studies/questions/target.h"

#include "formats/text/files.h"
#include "studies/questions/predictors.h"

namespace syncline::questions {

std::vector<worth::Curve> read_curve_file(const std::string& file, worth::Quantity quantity,
                                          worth::Over over) {
  return worth::curves_of(read_text_file(file, "a CSV file"), file, quantity, over);
}

std::optional<worth::Objective> objective_of(const ObjectiveOptions& options) {
  expect_whole(options);
  if (!options.has_target()) return std::nullopt;
  worth::Objective objective;
  objective.quantity =
      options.objective == kTimeToLoss ? worth::Quantity::kLoss : worth::Quantity::kAccuracy;
  objective.target = *options.target;
  objective.curves = read_curve_file(options.curves, objective.quantity, worth::Over::kSteps);
  if (!options.measured.empty()) {
    objective.measured =
        read_curve_file(options.measured, objective.quantity, worth::Over::kSeconds);
  }
  return objective;
}

worth::Worth run_to_target(const input::Document& document, const ObjectiveOptions& objective,
                           const std::string& executor) {
  return worth::worth_of(document, *objective_of(objective), executor,
                         predictor_named(executor).make, std::nullopt);
}

}  // namespace syncline::questions
