#include "studies/questions/explain.h"
#include "cli/options.h"
#include "reports/explain_report.h"

namespace syncline::cli {

VerbAction add_explain(CLI::App& verb) {
  return add_question<questions::Explain>(
      verb, true,
      [](const questions::Explain& question, const input::Document& document,
         const Output& output) {
        const measure::Explanation explanation = questions::answer(question, document);
        write_answer({}, reports::answer_of(explanation), output);
      });
}

}  // namespace syncline::cli
