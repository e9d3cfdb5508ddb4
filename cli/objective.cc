#include "cli/objective.h"

#include <array>

#include "cli/word_option.h"
#include "core/error.h"
#include "core/files.h"

namespace syncline::cli {
namespace {

struct Word {
  const char* word;
  worth::Quantity quantity;
};
constexpr std::array kWords{Word{"time_to_loss", worth::Quantity::kLoss},
                            Word{"time_to_accuracy", worth::Quantity::kAccuracy}};

}  // namespace

void add_objective(CLI::App& verb, ObjectiveOptions& options) {
  std::vector<std::string> words{"step_time"};
  for (const Word& known : kWords) words.emplace_back(known.word);
  verb.add_option("--objective", options.objective,
                  "what strategies are ranked by. time_to_loss, time_to_accuracy: of the training "
                  "to --target, the steps to which --curves say")
      ->transform(one_of_words(words))
      ->capture_default_str();
  verb.add_option("--target", options.target, "the loss to fall to, or the accuracy to rise to");
  verb.add_option("--curves", options.curves,
                  "training curves, for tune also without an objective, to tell where its rows' "
                  "trainings end: a CSV file with the columns strategy, step, loss or accuracy, "
                  "and seed where there are several trainings");
  verb.add_option("--measured", options.measured,
                  "trainings by the clock, to compare with: the same file with a column seconds in "
                  "place of step");
}

Outcomes outcomes_of(const std::string& file) {
  const std::string text = read_text_file(file, "a CSV file");
  const worth::Quantity quantity = worth::quantity_in(text);
  return {quantity, worth::curves_of(text, file, quantity)};
}

std::optional<worth::Objective> objective_of(const ObjectiveOptions& options) {
  if (!options.asked()) {
    if (options.target || !options.curves.empty() || !options.measured.empty()) {
      throw InputError(
          "--target, --curves and --measured belong to --objective time_to_loss or "
          "time_to_accuracy");
    }
    return std::nullopt;
  }
  if (!options.target || options.curves.empty()) {
    throw InputError("--objective " + options.objective + " needs --target and --curves");
  }
  worth::Objective objective;
  for (const Word& known : kWords) {
    if (options.objective == known.word) objective.quantity = known.quantity;
  }
  objective.target = *options.target;
  objective.curves = worth::curves_of(read_text_file(options.curves, "a CSV file"), options.curves,
                                      objective.quantity);
  if (!options.measured.empty()) {
    objective.measured =
        worth::curves_of(read_text_file(options.measured, "a CSV file"), options.measured,
                         objective.quantity, worth::Over::kSeconds);
  }
  return objective;
}

}  // namespace syncline::cli
