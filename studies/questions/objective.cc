#include "studies/questions/objective.h"

#include "core/base/error.h"

namespace syncline::questions {

void add_arguments(ObjectiveOptions& options, Arguments& arguments) {
  const std::string group = "Training to a target";
  arguments.push_back({.name = "objective",
                       .value = &options.objective,
                       .help = "rank strategies by",
                       .words = {"step_time", kTimeToLoss, kTimeToAccuracy},
                       .group = group});
  arguments.push_back({.name = "target",
                       .value = &options.target,
                       .help = "loss or accuracy that ends the training, with --objective",
                       .group = group});
  arguments.push_back(
      {.name = "curves",
       .value = &options.curves,
       .help = "training curves: CSV with strategy, step, loss or accuracy, optionally seed",
       .file = true,
       .group = group});
  arguments.push_back({.name = "measured",
                       .value = &options.measured,
                       .help = "measured trainings to compare with: CSV with seconds for step",
                       .file = true,
                       .group = group});
}

void expect_whole(const ObjectiveOptions& options) {
  if (options.has_target()) {
    if (options.target && !options.curves.empty()) return;
    throw InputError("--objective " + options.objective + " needs --target and --curves");
  }
  if (options.target || !options.measured.empty()) {
    throw InputError(
        "--objective: found step_time, but --target and --measured need --objective time_to_loss "
        "or "
        "time_to_accuracy");
  }
  if (!options.curves.empty()) {
    throw InputError("--curves: need --objective time_to_loss or time_to_accuracy");
  }
}

}  // namespace syncline::questions
