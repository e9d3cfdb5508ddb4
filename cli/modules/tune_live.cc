#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/help.h"
#include "cli/modules/live.h"
#include "cli/modules/ranks.h"
#include "cli/process.h"
#include "cli/tune.h"
#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/text/fingerprint.h"
#include "formats/text/parse_number.h"
#include "live/link_calibration.h"
#include "live/ranks_search.h"
#include "reports/format.h"
#include "reports/live/live_report.h"
#include "reports/tune_report.h"
#include "studies/machines/live_tuner.h"
#include "studies/study/study.h"
#include "studies/tune/search_space.h"

namespace syncline::cli {
namespace {

// Returns the maximum number of evaluations.
std::size_t budget(const TuneArguments& options) { return options.budget.value_or(12); }

// Reads "latency=2,bandwidth=0.5": the guiding model's values as factors of the machine's.
tune::MemberFactors member_error(const std::string& text) {
  constexpr double kMax = 1000;
  tune::MemberFactors error;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const double factor =
        equals == part.npos ? 0 : parse_number<double>(part.substr(equals + 1)).value_or(0);
    const bool known = key == "latency" || key == "bandwidth";
    if (!known || !(factor >= 1 / kMax && factor <= kMax)) {
      throw InputError("--wrong: found '" + part +
                       "', expected latency=FACTOR or bandwidth=FACTOR, from 0.001 to 1000");
    }
    (key == "latency" ? error.latency : error.transfer) = key == "latency" ? factor : 1 / factor;
    begin = end + 1;
  }
  return error;
}

void check(const TuneArguments& options) {
  const LiveOptions& live = options.live;
  if (budget(options) < 1 || budget(options) > 100000) {
    throw InputError("--budget: found " + std::to_string(budget(options)) +
                     ", expected 1 to 100000 evaluations with --live");
  }
  member_error(live.wrong);
  if (live.machine == kEmulated) {
    for (const bool given :
         {live.ranks.ranks != 0, live.calibrate, live.no_check, options.exhaustive}) {
      if (!given) continue;
      throw InputError(
          "--live emulated has no ranks: --ranks, --calibrate, --no-check and --exhaustive need "
          "--live gloo");
    }
  }
}

// Returns the guiding model's name and its deliberate error.
std::string member_words(const tune::MemberFactors& error) {
  std::string words = "the closed-form model";
  if (error.latency == 1 && error.transfer == 1) return words;
  words += ", made wrong on purpose: latency x";
  return words + reports::plain_number(error.latency) + ", bandwidth x" +
         reports::plain_number(1 / error.transfer);
}

// Returns a watch that prints "NAME 3 of COUNT: ..." before and after each measurement. `pace`:
// real seconds per measured second.
tune::MeasurementWatch announced(const std::string& what, const std::string& count,
                                 double time_scale = 0) {
  const auto which = [=](const tune::Evaluation& evaluation) {
    return what + " " + std::to_string(evaluation.number + 1) + " of " + count + ": ";
  };
  tune::MeasurementWatch watch;
  watch.begins = [=](const tune::Candidate& candidate, const tune::Evaluation& evaluation) {
    say(which(evaluation) + reports::one_line(candidate.name));
  };
  watch.ends = [=](const tune::Evaluation& evaluation, const tune::Measurement& measured) {
    const double seconds = measured.step_time * evaluation.steps * time_scale;
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    say(which(evaluation) + reports::seconds_text(measured.step_time) + " per step");
  };
  return watch;
}

// Returns the identity of the search without its machine, including the guiding model's error.
std::string identity(const TuneArguments& options, const input::Document& document) {
  return document.root.dump() + "\n" + options.live.wrong;
}

// A live search with these options: its report before the first measurement, its journal, and the
// answer.
class LiveSearch {
 public:
  // Requires that all arguments outlive this.
  LiveSearch(const TuneArguments& options, const input::Document& document,
             const std::string& command)
      : options_(options), document_(document), command_(command) {}

  tune::LiveReport begin(const input::Document& fitted, const Scenario& scenario) const {
    const auto own = input::parse_search(fitted, scenario);
    const tune::MemberFactors error = member_error(options_.live.wrong);
    tune::LiveReport report = tune::begin_report(
        scenario, own ? *own : tune::default_search(scenario), error, options_.exhaustive);
    report.member = member_words(error);
    report.settings.search.budget = static_cast<int>(budget(options_));
    report.settings.search.steps = options_.live.steps;
    report.settings.seed = options_.live.seed;
    report.settings.interrupted = is_interrupted;
    return report;
  }

  // Returns nullptr if there is no journal.
  tune::Journal* open_journal(const tune::LiveReport& report, const tune::LiveObjective& machine) {
    if (options_.live.journal.empty()) return nullptr;
    const Json header = tune::journal_header(identity(options_, document_), report.problem,
                                             report.settings, machine);
    journal_ = std::make_unique<tune::Journal>(options_.live.journal, header);
    const std::size_t known = journal_->entries().size();
    if (known > 0) {
      say("resumed: " + reports::plural(known, "evaluation") + " from " + options_.live.journal +
          (journal_->lacks_checksums()
               ? ", a journal without checksums: damaged digits are not detected"
               : ""));
    }
    return journal_.get();
  }

  // Prints the answer, and the command that resumes an interrupted search.
  int answer(tune::Evaluator& model, tune::LiveReport& report) const {
    if (!options_.emit.empty()) {
      report.emitted_dialect = options_.emit;
      report.emitted = tune::best_config(*dialect::find_dialect(options_.emit),
                                         report.best().strategy, Json(), model);
    }
    write_answer({}, reports::answer_of(report), options_.output);
    if (report.tuning.complete) return 0;
    say(tune::resume_advice(report.tuning, report.settings.search, journal_.get(), command_));
    return kInterruptedExit;
  }

 private:
  const TuneArguments& options_;
  const input::Document& document_;
  const std::string& command_;
  std::unique_ptr<tune::Journal> journal_;
};

int tune_on_ranks(const TuneArguments& options, const input::Document& fitted, LiveSearch& verb,
                  live::ControlChannel& channel) {
  Scenario scenario = input::parse_lone_scenario(fitted);
  scenario.cluster.device.overlap = {};  // timers replace the work that exchanges would slow,
  if (scenario.cluster.jitter.guessed) scenario.cluster.jitter = {};  // and are exact
  require_ranks(channel, fitted, scenario.cluster);
  const bool first = channel.rank() == 0;
  if (first) expect_writable({options.output.html});
  live::RanksSearch search;
  search.machine.backend_name = options.live.machine;
  search.machine.backend = backend_named(options.live.machine).make;
  search.machine.check_values = !options.live.no_check;
  search.sweep = options.exhaustive;
  if (options.live.calibrate) {
    if (first) say("calibrating the links");
    const auto found = live::calibrate_links(channel, search.machine.backend, scenario.cluster, {});
    scenario.cluster = found.cluster;
  }
  if (first) say("ranking the candidates by the model");
  tune::LiveReport report = verb.begin(fitted, scenario);
  live::RanksSearchHooks hooks;
  hooks.journal = [&](const tune::LiveObjective& machine) {
    return verb.open_journal(report, machine);
  };
  hooks.evaluation = announced("evaluation", "at most " + std::to_string(budget(options)));
  hooks.sweeping = [] { say("measuring every candidate, to grade the search"); };
  hooks.swept = announced("sweep", std::to_string(report.problem.candidates.size()));
  live::search_on_ranks(search, scenario, channel, hooks, report);
  if (!first) return 0;
  tune::Evaluator model(scenario);
  return verb.answer(model, report);
}

int tune_emulated(const TuneArguments& options, const input::Document& fitted, LiveSearch& verb) {
  expect_writable({options.output.html});
  const Scenario scenario = input::parse_lone_scenario(fitted);
  say("ranking the candidates by the model");
  tune::LiveReport report = verb.begin(fitted, scenario);
  tune::Evaluator model(scenario);
  tune::search_emulated(
      model, options.live.noise / 100,
      announced("evaluation", "at most " + std::to_string(budget(options)),
                options.live.time_scale),
      [&](const tune::LiveObjective& machine) { return verb.open_journal(report, machine); },
      report);
  return verb.answer(model, report);
}

}  // namespace

int tune_live(const TuneArguments& options, const input::Document& document,
              const std::string& command) {
  check(options);
  LiveSearch verb(options, document, command);
  const LiveOptions& live = options.live;
  if (live.machine == kEmulated) {
    return tune_emulated(options, measure::calibrate_document(document).document, verb);
  }
  const std::string key =
      fingerprint(identity(options, document) + live.machine + std::to_string(live.steps));
  return with_ranks(live.ranks, key, [&](live::ControlChannel& channel) {
    return tune_on_ranks(options, measure::calibrate_document(document).document, verb, channel);
  });
}

}  // namespace syncline::cli
