//   torchrun, `syncline lab`  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   mpirun                    OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE
//   srun                      SLURM_PROCID, SLURM_NTASKS
//   --ranks N                 SYNCLINE_RANK, SYNCLINE_RANKS, SYNCLINE_PORT, set by our launcher,
//                             and, for rank 0, SYNCLINE_LISTENER
// Also, from any of them or from the user: SYNCLINE_TOKEN.
#include "live/rank_environment.h"

#include <charconv>
#include <cstdlib>

#include "core/base/error.h"
#include "live/socket.h"

namespace syncline::live {
namespace {

int number(const EnvironmentVariables& variables, const std::string& name, int least, int most) {
  const auto text = variables(name);
  if (!text) throw InputError(name + ": not set, though the launcher's other variables are");
  int value = 0;
  const char* end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < least || value > most) {
    throw InputError(name + ": found '" + *text + "', expected " + std::to_string(least) + " to " +
                     std::to_string(most));
  }
  return value;
}

constexpr int kMaxRanks = 100000;
constexpr int kMaxPort = 65535;

// Returns true if the launcher says that it has started all ranks here.
bool on_one_machine(const EnvironmentVariables& variables, int ranks) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (variables(name) == std::to_string(ranks)) return true;
  }
  return false;
}

std::string token_in(const EnvironmentVariables& variables) {
  constexpr std::size_t kMin = 16;
  const std::string token = variables("SYNCLINE_TOKEN").value_or("");
  if (token.empty() || token.size() >= kMin) return token;
  throw InputError("SYNCLINE_TOKEN: found " + std::to_string(token.size()) +
                   " characters, expected at least " + std::to_string(kMin) +
                   " that nobody can guess, as `openssl rand -hex 32` gives them");
}

void meet_at_listener(const EnvironmentVariables& variables, RankEnvironment& found) {
  constexpr int kMaxDescriptors = 1 << 20;
  found.rendezvous = RankEnvironment::Rendezvous::kAddress;
  found.host = kLoopback;
  found.port = number(variables, "SYNCLINE_PORT", 1, kMaxPort);
  if (found.rank == 0) found.listener = number(variables, "SYNCLINE_LISTENER", 0, kMaxDescriptors);
}

void meet_at_master(const EnvironmentVariables& variables, RankEnvironment& found) {
  const auto host = variables("MASTER_ADDR");
  if (!host) throw InputError("MASTER_ADDR: not set, though RANK and WORLD_SIZE are");
  found.rendezvous = RankEnvironment::Rendezvous::kAddress;
  found.host = *host;
  found.port = number(variables, "MASTER_PORT", 1, kMaxPort);
  // torchrun's agent may keep a store of its own at that port.
  if (variables("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    found.port += found.port < kMaxPort ? 1 : -1;
  }
}

void meet_over_mpi(const EnvironmentVariables&, RankEnvironment& found) {
  found.rendezvous = RankEnvironment::Rendezvous::kMpi;
}

void meet_in_file(const EnvironmentVariables& variables, RankEnvironment& found) {
  found.file = ".syncline-meet-" + variables("SLURM_JOB_ID").value_or("0") + "." +
               variables("SLURM_STEP_ID").value_or("0");
}

// Launchers, the closest first.
constexpr struct {
  const char* name;
  const char* rank;
  const char* ranks;
  bool needs_both;                                              // other programs use the first too
  void (*meet)(const EnvironmentVariables&, RankEnvironment&);  // if no file is named
} kLaunchers[] = {
    {"syncline", "SYNCLINE_RANK", "SYNCLINE_RANKS", false, meet_at_listener},
    {"torchrun", "RANK", "WORLD_SIZE", true, meet_at_master},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false, meet_over_mpi},
    {"mpirun", "PMI_RANK", "PMI_SIZE", false, meet_over_mpi},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", true, meet_in_file},
};

// Returns the ranks, and how they find each other.
std::optional<RankEnvironment> read_launcher(const EnvironmentVariables& variables,
                                             const std::string& file) {
  for (const auto& launcher : kLaunchers) {
    if (!variables(launcher.rank) || (launcher.needs_both && !variables(launcher.ranks))) continue;
    RankEnvironment found;
    found.launcher = launcher.name;
    found.ranks = number(variables, launcher.ranks, 1, kMaxRanks);
    found.rank = number(variables, launcher.rank, 0, found.ranks - 1);
    found.file = file;
    if (file.empty()) launcher.meet(variables, found);
    return found;
  }
  return std::nullopt;
}

}  // namespace

EnvironmentVariables process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::optional<RankEnvironment> read_rank_environment(const EnvironmentVariables& variables,
                                                     const std::string& file) {
  auto found = read_launcher(variables, file);
  if (!found) return found;
  found->token = token_in(variables);
  found->one_machine = found->launcher == "syncline" || on_one_machine(variables, found->ranks);
  const std::string interfaces = variables("GLOO_SOCKET_IFNAME").value_or("");
  found->interface = interfaces.substr(0, interfaces.find(','));
  found->run_id = variables("TORCHELASTIC_RUN_ID").value_or("");
  return found;
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string missing_ranks_text(const std::vector<char>& joined) {
  std::string text;
  int missing = 0;
  for (std::size_t r = 0; r < joined.size(); ++r) {
    if (joined[r] != 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(r);
    ++missing;
  }
  return (missing > 1 ? "ranks " : "rank ") + text;
}

std::string limit_text(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  const auto tenths = time.count() % 1000 / 100;
  return std::to_string(seconds) + (time.count() % 1000 != 0 ? "." + std::to_string(tenths) : "") +
         " s";
}

std::string started_twice_text(int rank) {
  return rank_text(rank) + " was started twice; this one ends";
}

}  // namespace syncline::live
