// Published trainings far apart: INTELLECT-1 and OpenDiLoCo lie inside the intervals of what their
// links, as described, are predicted to allow.
#include <gtest/gtest.h>

#include "core/input/document.h"
#include "core/measure/study.h"
#include "core/run/executor.h"

namespace syncline::measure {
namespace {

struct Published {
  const char* file;
  std::size_t row;
  std::int64_t period;
  Seconds steps;     // of a period, by themselves
  Seconds exchange;  // behind them, in the median
  double low, high;  // utilisation that the abstract claims
};

TEST(PublishedDiLoCo, UtilisationsLieInTheInterval) {
  for (const Published& known : {Published{"intellect1", 0, 100, 38 * 60, 103, 0.83, 0.96},
                                 Published{"intellect1", 1, 100, 38 * 60, 469, 0.83, 0.96},
                                 Published{"intellect1", 1, 100, 38 * 60, 382, 0.83, 0.96},
                                 Published{"opendiloco", 0, 500, 67.5 * 60, 300, 0.90, 0.95}}) {
    const input::Document document = input::read_document(
        std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/published/diloco/" + known.file + ".json");
    StudyOptions options;
    options.make_executor = run::make_model_executor;
    const Report report = run_study(document, options);
    const Row& row = report.rows.at(known.row);
    const auto period = static_cast<double>(known.period);
    const Seconds published = (known.steps + known.exchange) / period;
    EXPECT_LE(row.step.low, published) << known.file << known.row;
    EXPECT_GE(row.step.high, published) << known.file << known.row;
    // The predicted one is what its authors claim, to a point.
    const double busy = known.steps / period / row.metrics.step_time;
    EXPECT_GE(busy, known.low - 0.01) << known.file << known.row;
    EXPECT_LE(busy, known.high + 0.01) << known.file << known.row;
  }
}

}  // namespace
}  // namespace syncline::measure
