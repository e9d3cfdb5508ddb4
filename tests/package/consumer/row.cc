// Loads a scenario and prints what each of its strategies costs.
#include <cstdio>
#include <exception>

#include "core/executor.h"
#include "formats/dialect/dialects.h"
#include "formats/input/document.h"
#include "studies/study/study.h"

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: row SCENARIO\n"), 2;
  syncline::dialect::hand_in(syncline::dialect::all_dialects());
  syncline::measure::StudyOptions options;
  options.make_executor = syncline::run::make_model_executor;
  const auto document = syncline::input::read_document(argv[1]);
  for (const auto& row : syncline::measure::run_study(document, options).rows) {
    std::printf("%s,%.17g\n", row.strategy.c_str(), row.metrics.step_time);
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "row: %s\n", error.what()), 2;
}
