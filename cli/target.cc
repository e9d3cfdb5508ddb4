#include "cli/target.h"

#include "reports/chart/figure.h"
#include "reports/worth_report.h"
#include "studies/questions/target.h"

namespace syncline::cli {

void print_to_target(const TargetQuestion& question) {
  const worth::Worth worth =
      questions::run_to_target(question.document, question.objective, question.executor);
  const SideFile svg{question.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  write_answer({svg}, reports::answer_of(worth, "run"), question.output);
}

}  // namespace syncline::cli
