#include <memory>

#include "cli/options.h"
#include "reports/plan_report.h"
#include "studies/questions/plan.h"

namespace syncline::cli {

VerbAction add_plan(CLI::App& verb) {
  return add_question<questions::PlanQuestion>(
      verb, false,
      [](const questions::PlanQuestion& question, const input::Document& document,
         const Output& output) {
        const questions::Planned planned = questions::answer(question, document);
        print(reports::answer_of(planned), output);
      });
}

}  // namespace syncline::cli
