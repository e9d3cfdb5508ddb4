#include "live/rank_environment.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"

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

constexpr int kMostRanks = 100000;

void read_ranks(const EnvironmentVariables& variables, const std::string& rank,
                const std::string& ranks, RankEnvironment& found) {
  found.ranks = number(variables, ranks, 1, kMostRanks);
  found.rank = number(variables, rank, 0, found.ranks - 1);
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
  RankEnvironment found;
  found.file = file;
  if (variables("SYNCLINE_RANK")) {
    found.launcher = "syncline";
    read_ranks(variables, "SYNCLINE_RANK", "SYNCLINE_RANKS", found);
    if (file.empty()) found.file = variables("SYNCLINE_MEET").value_or("");
    if (found.file.empty()) throw InputError("SYNCLINE_MEET: not set, though SYNCLINE_RANK is");
    return found;
  }
  if (variables("RANK") && variables("WORLD_SIZE")) {
    found.launcher = "torchrun";
    read_ranks(variables, "RANK", "WORLD_SIZE", found);
    if (!file.empty()) return found;
    const auto host = variables("MASTER_ADDR");
    if (!host) throw InputError("MASTER_ADDR: not set, though RANK and WORLD_SIZE are");
    constexpr int kMostPort = 65535;
    found.rendezvous = RankEnvironment::Rendezvous::kAddress;
    found.host = *host;
    found.port = number(variables, "MASTER_PORT", 1, kMostPort);
    // torchrun's agent may keep a store of its own at that port.
    if (variables("TORCHELASTIC_USE_AGENT_STORE") == "True") {
      found.port += found.port < kMostPort ? 1 : -1;
    }
    return found;
  }
  for (const auto& [rank, ranks] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                    std::pair("PMI_RANK", "PMI_SIZE")}) {
    if (!variables(rank)) continue;
    found.launcher = "mpirun";
    read_ranks(variables, rank, ranks, found);
    found.rendezvous =
        file.empty() ? RankEnvironment::Rendezvous::kMpi : RankEnvironment::Rendezvous::kFile;
    return found;
  }
  if (variables("SLURM_PROCID") && variables("SLURM_NTASKS")) {
    found.launcher = "srun";
    read_ranks(variables, "SLURM_PROCID", "SLURM_NTASKS", found);
    if (found.file.empty()) {
      found.file = ".syncline-meet-" + variables("SLURM_JOB_ID").value_or("0") + "." +
                   variables("SLURM_STEP_ID").value_or("0");
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace syncline::live
