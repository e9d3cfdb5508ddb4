#include "cli/modules/ranks.h"

#include <unistd.h>

#include <atomic>
#include <iostream>

#include "cli/failure_notice.h"
#include "cli/modules.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/base/error.h"
#include "live/local_ranks.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

int start_ranks(const RanksOptions& options) {
  const FailureNotice notice;
  const auto commands = live::local_ranks(live::own_command(), options.ranks, options.meet);
  live::ProcessRules rules;
  // A failing rank has informed the others, and one of them has printed it. If a rank was killed
  // before all had joined, no other rank knows.
  rules.wait_limit = 3;
  // On the first signal ranks finish their measurement; a second one ends them at once.
  rules.grace = 86400;
  rules.stopped = options.timeout;
  const live::JobEnd end = live::run_ranks(commands, rules);
  const std::string failure = live::in_words(end);
  const int code = live::exit_code(end);
  if (failure.empty() || end.interrupted != 0 || code == kInterruptedExit) return code;
  if (!notice.has_failure()) std::cerr << "syncline: " << failure << "\n";
  return code == kWrongInput ? code : kFailingMachine;
}

// Prints `text` once and ends at once: other threads may be in calls that do not return.
[[noreturn]] void end_with(const std::string& text, bool say) {
  static std::atomic<bool> ending = false;
  while (ending.exchange(true)) pause();  // another thread ends the process
  if (say) {
    note_failure_printed();
    const std::string line = "syncline: " + reports::one_line(text) + "\n";
    [[maybe_unused]] const auto n = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(kFailingMachine);
}

}  // namespace

const live::Backend& backend_named(std::string_view name) { return *module_rows(name).backend; }

int with_ranks(const RanksOptions& options, const std::string& key,
               const std::function<int(live::ControlChannel&)>& body) {
  const auto environment = live::read_rank_environment(live::process_environment(), options.meet);
  if (!environment) {
    if (options.ranks == 0) {
      throw InputError(
          "--ranks: missing, and no launcher started this command; add --ranks N to start N ranks "
          "on this machine, or use mpirun, srun, torchrun or syncline lab");
    }
    return start_ranks(options);
  }
  if (options.ranks != 0 && options.ranks != environment->ranks) {
    throw InputError("--ranks: found " + std::to_string(options.ranks) + ", but " +
                     environment->launcher + " started " + std::to_string(environment->ranks));
  }
  live::ControlChannelSettings settings;
  settings.timeout = std::chrono::milliseconds(static_cast<long long>(options.timeout * 1000));
  settings.key = key;
  settings.on_failure = [rank = environment->rank](const std::string& text, bool first_hand) {
    // Both ends of a cut link find the other silent. Rank 0 prints that. The other end prints it if
    // no failure was printed just now, as rank 0's machine may be the one that is cut off.
    constexpr auto kJustNow = std::chrono::seconds(5);
    end_with(text, first_hand && (rank == 0 || !failure_printed_within(kJustNow)));
  };
  std::unique_ptr<live::ControlChannel> channel;
  try {
    channel = std::make_unique<live::ControlChannel>(*environment, settings);
  } catch (const live::RendezvousError& error) {
    if (error.first_hand) throw;
    return kFailingMachine;
  }
  std::string failure;
  auto suspicion = std::chrono::milliseconds(0);
  try {
    return body(*channel);
  } catch (const InputError&) {
    // The same on every rank.
    if (environment->rank == 0) throw;
    return kWrongInput;
  } catch (const live::PeerError& error) {
    failure = error.what();
    suspicion = live::ControlChannel::kSuspicion;
  } catch (const std::bad_alloc&) {
    failure = "out of memory";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  channel->fail(failure, suspicion);
  end_with("rank " + std::to_string(environment->rank) + ": " + failure, environment->rank == 0);
}

void require_ranks(const live::ControlChannel& channel, const input::Document& document,
                   const Cluster& cluster) {
  if (cluster.ranks() == channel.ranks()) return;
  throw InputError(document.file + ": cluster: " + std::to_string(cluster.nodes) + " nodes of " +
                   std::to_string(cluster.gpus_per_node) + " are " +
                   std::to_string(cluster.ranks()) + " ranks, but " +
                   std::to_string(channel.ranks()) + " were started");
}

}  // namespace syncline::cli
