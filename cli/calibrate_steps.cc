#include <nlohmann/json.hpp>

#include "cli/calibrate.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/scenario_option.h"
#include "core/calibrate/step_fit.h"
#include "core/input/document.h"
#include "reports/step_fit.h"

namespace syncline::cli {

int calibrate_from_steps(const CalibrateOptions& options) {
  const calibrate::StepFit fit =
      calibrate::fit_steps(read({options.steps, options.set}), options.rows);
  const reports::Answer answer = reports::answer_of(fit);
  answer_with({{options.out, [&] { return fit.fitted.root.dump(2) + "\n"; }},
               html_file(options.html, answer)},
              [&] { print(answer, options.format); });
  return 0;
}

}  // namespace syncline::cli
