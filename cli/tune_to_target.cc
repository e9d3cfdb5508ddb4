#include <iostream>

#include "cli/apply_file.h"
#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/files.h"
#include "cli/tune.h"
#include "core/error.h"
#include "reports/applied.h"
#include "reports/chart/svg.h"
#include "reports/worth_report.h"

namespace syncline::cli {

// Each strategy that has a curve is searched by itself: nothing that leaves its training as it is
// changes its steps to the target.
int tune_to_target(const TuneVerbOptions& verb, const input::Document& document,
                   worth::Objective objective) {
  if (!verb.live.machine.empty() || !verb.csv.empty()) {
    throw InputError("--live and --csv are for steps: leave them out with --objective " +
                     verb.objective.objective);
  }
  if (!verb.emit.empty() && verb.python.empty()) {
    throw InputError("--objective " + verb.objective.objective +
                     " writes its best as a file: --emit pytorch --python FILE");
  }
  expect_writable({verb.svg, verb.html, verb.python});
  const worth::Worth worth =
      worth::worth_of(document, std::move(objective), verb.executor,
                      predictor_named(verb.executor).make, search_options(verb));
  const reports::Answer answer = reports::answer_of(worth, "tune");
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg, html_file(verb.html, answer)}, [&] { print(answer, verb.format); });
  if (!verb.python.empty() && !worth.rows.empty()) {
    const Strategy& best = worth.rows.front().strategy;
    write_file(verb.python, apply_file(worth.scenario, best, worth.pinned));
    std::cerr << "syncline: wrote " << verb.python << "; "
              << reports::apply_usage(verb.python, best) << "\n";
  }
  return interrupted() ? kInterruptedExit : 0;
}

}  // namespace syncline::cli
