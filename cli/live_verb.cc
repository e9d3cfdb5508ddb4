#include "cli/live_verb.h"

#include "cli/exit.h"
#include "cli/files.h"
#include "cli/live_words.h"
#include "cli/output.h"
#include "core/input/read_scenario.h"
#include "core/tune/search_space.h"
#include "reports/format.h"
#include "reports/live_report.h"

namespace syncline::cli {

std::string identity(const input::Document& document, const LiveVerbOptions& options) {
  return document.root.dump() + "\n" + options.wrong;
}

tune::LiveReport LiveVerb::begin(const input::Document& fitted, const Scenario& scenario) const {
  const auto own = input::parse_search(fitted, scenario);
  const tune::GuideFactors error = guide_error(options_.wrong);
  tune::LiveReport report = tune::begin_report(
      scenario, own ? *own : tune::default_search(scenario), error, options_.exhaustive);
  report.guide = guide_words(error);
  report.settings.search.budget = static_cast<int>(options_.budget);
  report.settings.search.steps = options_.steps;
  report.settings.seed = options_.seed;
  report.settings.interrupted = interrupted;
  return report;
}

tune::Journal* LiveVerb::open_journal(const tune::LiveReport& report,
                                      const tune::LiveObjective& machine) {
  if (options_.journal.empty()) return nullptr;
  const Json header =
      tune::journal_header(identity(document_, options_), report.problem, report.settings, machine);
  journal_ = std::make_unique<tune::Journal>(options_.journal, header);
  const std::size_t known = journal_->entries().size();
  if (known > 0) {
    say("resumed: " + reports::plural(known, "evaluation") + " from " + options_.journal +
        (journal_->unchecked() ? ", a journal without checksums: damage to its digits would not "
                                 "be noticed"
                               : ""));
  }
  return journal_.get();
}

int LiveVerb::answer(tune::ModelTruth& truth, tune::LiveReport& report) const {
  if (!options_.emit.empty()) {
    report.emitted_dialect = options_.emit;
    report.emitted = truth.emitted(*dialect::find_dialect(options_.emit), report);
  }
  const reports::Answer answer = reports::answer_of(report);
  answer_with({html_file(options_.html, answer)}, [&] { print(answer, options_.format); });
  if (report.tuning.complete) return 0;
  say(tune::resume_advice(report.tuning, report.settings.search, journal_.get(), options_.command));
  return kInterruptedExit;
}

}  // namespace syncline::cli
