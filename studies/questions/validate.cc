#include "studies/questions/validate.h"

#include "studies/questions/predictors.h"

namespace syncline::questions {
namespace {

constexpr const char* kGroup = "Measurement";

Argument count_argument(std::string name, int& value, std::string help, double most) {
  return {.name = std::move(name),
          .value = &value,
          .help = std::move(help),
          .low = 1,
          .high = most,
          .group = kGroup};
}

}  // namespace

Arguments arguments_of(Validate& question) {
  constexpr double kMaxWarmup = 1000, kMaxRepeats = 100000;
  return {{.name = "backend", .value = &question.backend, .help = "communicate with"},
          {.name = "compute",
           .value = &question.compute,
           .help = "pass the computation's time, or run the workload's operators (nccl)",
           .words = {"timers", "kernels"},
           .group = kGroup},
          {.name = "calibrate",
           .value = &question.calibrate,
           .help = "measure the links first, and predict with them"},
          {.name = "strategy",
           .value = &question.strategies,
           .help = "run these strategies only (default: all)"},
          executor_argument(question.executor, "predict with"),
          count_argument("warmup", question.warmup, "periods to run before measuring", kMaxWarmup),
          count_argument("repeats", question.repeats, "periods to measure", kMaxRepeats),
          {.name = "no-check",
           .value = &question.no_check,
           .help = "skip the check of the all-reduced values",
           .group = kGroup},
          {.name = "values",
           .value = &question.values,
           .help = "fill gradients with integers (exact sums) or real numbers",
           .words = {"integers", "real"},
           .group = kGroup}};
}

std::string key_of(const Validate& question) {
  std::string key = question.backend + question.values;
  for (const std::string& name : question.strategies) key += "\n" + name;
  return key + std::to_string(question.warmup) + " " + std::to_string(question.repeats) +
         question.compute + (question.calibrate ? " calibrate" : "") +
         (question.no_check ? " no check" : "");
}

}  // namespace syncline::questions
