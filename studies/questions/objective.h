// Training to a target: the objective by which run and tune rank strategies in place of step time.
#pragma once

#include <optional>
#include <string>

#include "studies/questions/arguments.h"

namespace syncline::questions {

inline constexpr const char* kTimeToLoss = "time_to_loss";
inline constexpr const char* kTimeToAccuracy = "time_to_accuracy";

struct ObjectiveOptions {
  std::string objective = "step_time";
  std::optional<double> target;
  std::string curves;
  std::string measured;

  bool has_target() const { return objective != "step_time"; }
};

// Adds objective, target, curves and measured.
void add_arguments(ObjectiveOptions& options, Arguments& arguments);

// Throws InputError if an option lacks another that it needs.
void expect_whole(const ObjectiveOptions& options);

}  // namespace syncline::questions
