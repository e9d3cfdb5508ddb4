#include "cli/ranks.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "backend_gloo/gloo_executor.h"
#include "backend_nccl/nccl_executor.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "live/failure_notice.h"
#include "live/processes.h"

namespace syncline {
namespace {

constexpr int kWrongInput = 2;
constexpr int kFailingMachine = 3;

// This process's own command line.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  std::string word;
  while (std::getline(file, word, '\0')) words.push_back(word);
  if (words.empty()) throw MachineError("/proc/self/cmdline: cannot be read");
  words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

// A folder of our own for the file in which the ranks meet, gone with it.
class RendezvousFolder {
 public:
  RendezvousFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "syncline-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw MachineError("mkdtemp " + name);
    folder_ = name;
  }
  ~RendezvousFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  std::string file() const { return folder_ + "/meet"; }

 private:
  std::string folder_;
};

int start_ranks(const RanksOptions& options) {
  const RendezvousFolder place;
  const FailureNotice notice;
  std::vector<RankCommand> commands;
  for (int rank = 0; rank < options.ranks; ++rank) {
    RankCommand command;
    command.words = own_command();
    command.environment = {{"SYNCLINE_RANK", std::to_string(rank)},
                           {"SYNCLINE_RANKS", std::to_string(options.ranks)},
                           {"SYNCLINE_MEET", options.meet.empty() ? place.file() : options.meet}};
    if (rank > 0) command.out = -1;
    commands.push_back(std::move(command));
  }
  ProcessRules rules;
  // A rank that ends has told the others why, and whoever is to say so has. Where one was killed
  // before they had met, nobody else knows.
  rules.patience = 3;
  // Told to end, they finish what they measure; a second signal ends them at once.
  rules.grace = 86400;
  const JobEnd end = run_ranks(commands, rules);
  const std::string failure = in_words(end);
  const int code = exit_code(end);
  if (failure.empty() || end.interrupted != 0 || code == kInterruptedExit) return code;
  if (!notice.given()) std::cerr << "syncline: " << failure << "\n";
  return code == kWrongInput ? code : kFailingMachine;
}

// Says it once and ends at once: other threads may be inside calls that do not return.
[[noreturn]] void end_with(const std::string& text, bool say) {
  static std::atomic<bool> ending = false;
  while (ending.exchange(true)) pause();  // another thread does
  if (say) {
    note_failure_printed();
    const std::string line = "syncline: " + text + "\n";
    [[maybe_unused]] const auto n = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(kFailingMachine);
}

}  // namespace

void add_ranks_options(CLI::App& verb, RanksOptions& options) {
  constexpr double kLongest = 86400;
  verb.add_option("--ranks", options.ranks,
                  "start so many ranks on this machine; leave it out under mpirun, srun, torchrun "
                  "or syncline lab")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--timeout", options.timeout,
                  "seconds after which a rank that is silent, or has not come, has failed")
      ->check(CLI::Range(1.0, kLongest))
      ->capture_default_str();
  verb.add_option("--meet", options.meet,
                  "file in which the ranks meet, where all of them see it; by default as the "
                  "launcher has it: its address, MPI, or a file in the working directory");
}

int with_ranks(const RanksOptions& options, const std::string& key,
               const std::function<int(ControlChannel&)>& body) {
  const auto environment = read_rank_environment(process_environment(), options.meet);
  if (!environment) {
    if (options.ranks == 0) {
      throw InputError(
          "--ranks: not given, and no launcher's variables are set; write --ranks N to start N "
          "ranks on this machine, or start this command with mpirun, srun, torchrun or syncline "
          "lab");
    }
    return start_ranks(options);
  }
  if (options.ranks != 0 && options.ranks != environment->ranks) {
    throw InputError("--ranks: found " + std::to_string(options.ranks) + ", but " +
                     environment->launcher + " started " + std::to_string(environment->ranks));
  }
  ControlChannelSettings settings;
  settings.timeout = std::chrono::milliseconds(static_cast<long long>(options.timeout * 1000));
  settings.key = key;
  settings.on_failure = [rank = environment->rank](const std::string& text, bool first_hand) {
    // Both ends of a link that was cut find the other silent: rank 0's word counts, where it is
    // heard at all.
    constexpr auto kJustNow = std::chrono::seconds(5);
    end_with(text, first_hand && (rank == 0 || !failure_printed_within(kJustNow)));
  };
  std::unique_ptr<ControlChannel> channel;
  try {
    channel = std::make_unique<ControlChannel>(*environment, settings);
  } catch (const RendezvousError& error) {
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
  } catch (const PeerError& error) {
    failure = error.what();
    suspicion = ControlChannel::kSuspicion;
  } catch (const std::bad_alloc&) {
    failure = "out of memory";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  channel->fail(failure, suspicion);
  end_with("rank " + std::to_string(environment->rank) + ": " + failure, environment->rank == 0);
}

LiveExecutorFactory backend_named(const std::string& name) {
  if (name == "gloo") return make_gloo_executor;
  if (name == "nccl") {
    return [](const Workload& workload, ControlChannel& channel) {
      return make_nccl_executor(workload, channel);
    };
  }
  throw InputError("--backend: found '" + name + "', expected gloo or nccl");
}

}  // namespace syncline
