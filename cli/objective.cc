#include "cli/objective.h"

#include "cli/help.h"
#include "cli/options.h"
#include "core/base/error.h"

namespace syncline::cli {
namespace {

TargetAnswer& handed_in_answer() {
  static TargetAnswer answer = nullptr;
  return answer;
}

}  // namespace

void add_objective(CLI::App& verb, ObjectiveOptions& options) {
  verb.add_option("--objective", options.objective, "rank strategies by")
      ->transform(one_of_words({"step_time", kTimeToLoss, kTimeToAccuracy}))
      ->capture_default_str();
  verb.add_option("--target", options.target,
                  "loss or accuracy that ends the training, with --objective");
  add_file(verb, "--curves", options.curves,
           "training curves: CSV with strategy, step, loss or accuracy, optionally seed");
  add_file(verb, "--measured", options.measured,
           "measured trainings to compare with: CSV with seconds for step");
  put_in_group(verb, "Training to a target", {"--objective", "--target", "--curves", "--measured"});
}

void expect_whole(const ObjectiveOptions& options) {
  if (!options.asked()) {
    if (!options.target && options.curves.empty() && options.measured.empty()) return;
    throw InputError(
        "--target, --curves and --measured need --objective time_to_loss or time_to_accuracy");
  }
  if (!options.target || options.curves.empty()) {
    throw InputError("--objective " + options.objective + " needs --target and --curves");
  }
}

void hand_in(TargetAnswer answer) { handed_in_answer() = answer; }

void answer_to_target(const TargetQuestion& question) { handed_in_answer()(question); }

}  // namespace syncline::cli
