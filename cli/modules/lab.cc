#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "cli/failure_notice.h"
#include "cli/help.h"
#include "cli/modules/live.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/base/error.h"
#include "live/lab.h"
#include "live/local_ranks.h"

namespace syncline::cli {
namespace {

struct LabVerbOptions {
  live::LabRun run;
  std::string rate;
  std::string uplink;
  double latency_ms = 0;
  double queue_ms = 50;
  std::vector<std::string> cuts;
};

// Reads "2@0.5": rank 2's link, after half a second.
live::LabCut cut_of(const std::string& text, int ranks) {
  live::LabCut cut;
  std::size_t rank_end = 0;
  std::size_t end = 0;
  try {
    cut.rank = std::stoi(text, &rank_end);
    if (rank_end < text.size() && text[rank_end] == '@') {
      cut.at = std::stod(text.substr(rank_end + 1), &end);
      end += rank_end + 1;
    }
  } catch (const std::logic_error&) {
    end = 0;
  }
  if (end == 0 || end != text.size() || !std::isfinite(cut.at) || cut.at < 0) {
    throw InputError("--cut: found '" + text + "', expected RANK@SECONDS, such as 1@2.5");
  }
  if (cut.rank < 0 || cut.rank >= ranks) {
    throw InputError("--cut: found rank " + std::to_string(cut.rank) + ", expected 0 to " +
                     std::to_string(ranks - 1));
  }
  return cut;
}

int run(const LabVerbOptions& verb) {
  live::LabRun lab = verb.run;
  lab.options.rate = live::lab_rate(verb.rate, "--rate");
  if (!verb.uplink.empty()) lab.options.uplink = live::lab_rate(verb.uplink, "--uplink");
  lab.options.latency = verb.latency_ms / 1e3;
  lab.options.queue = verb.queue_ms / 1e3;
  live::check_lab(lab.options);
  lab.rules.stopped = lab.rules.wait_limit;  // such ranks have failed too
  for (const auto& text : verb.cuts) lab.cuts.push_back(cut_of(text, lab.options.ranks));
  const FailureNotice notice;
  const live::JobEnd end = live::run_lab(lab);
  const std::string failure = live::in_words(end);
  // Ranks of ours that ended with these codes have printed the reason.
  const bool explained =
      notice.has_failure() &&
      std::any_of(end.ranks.begin(), end.ranks.end(), [](const live::RankEnd& rank) {
        return rank.code == kWrongInput || rank.code == kFailingMachine;
      });
  if (!failure.empty() && !explained) std::cerr << "syncline: lab: " << failure << "\n";
  return live::exit_code(end);
}

}  // namespace

VerbAction add_lab(CLI::App& verb) {
  auto options = std::make_shared<LabVerbOptions>();
  live::LabOptions& lab = options->run.options;
  live::ProcessRules& rules = options->run.rules;
  verb.add_option("--ranks", lab.ranks, "number of ranks")->capture_default_str();
  verb.add_option("--rate", options->rate, "bandwidth of each rank's link, such as 1gbit")
      ->type_name("RATE")
      ->required();
  verb.add_option("--groups", lab.groups,
                  "number of switches; ranks divide evenly, uplinks join them")
      ->capture_default_str();
  verb.add_option("--uplink", options->uplink, "bandwidth of each switch's uplink, with --groups")
      ->type_name("RATE");
  verb.add_option("--latency", options->latency_ms, "milliseconds that each message is delayed")
      ->capture_default_str();
  verb.add_option("--queue", options->queue_ms,
                  "milliseconds that a packet may wait before it is dropped")
      ->capture_default_str();
  verb.add_option("--burst", lab.burst, "bytes that an idle link passes at once; 0: by the rate")
      ->capture_default_str();
  verb.add_option("--cut", options->cuts, "cut the link of a rank at this time; may be repeated")
      ->type_name("RANK@SECONDS")
      ->allow_extra_args(false);
  verb.add_option("--patience", rules.wait_limit,
                  "seconds for the others after a rank failed or all stopped")
      ->check(number_between(0.0, 86400.0))
      ->capture_default_str();
  verb.add_option("--grace", rules.grace, "seconds between SIGTERM and SIGKILL")
      ->check(number_between(0.0, 86400.0))
      ->capture_default_str();
  verb.add_option("command", options->run.command,
                  "after --: command to run, with torchrun's environment variables")
      ->required();
  put_in_group(verb, "Link and faults", {"--queue", "--burst", "--cut", "--patience", "--grace"});
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
