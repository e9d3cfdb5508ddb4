#include "live/place.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace syncline {
namespace {

int number(const Environment& environment, const std::string& name, int least, int most) {
  const auto text = environment(name);
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

void read_ranks(const Environment& environment, const std::string& rank, const std::string& ranks,
                RankPlace& place) {
  place.ranks = number(environment, ranks, 1, kMostRanks);
  place.rank = number(environment, rank, 0, place.ranks - 1);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::optional<RankPlace> place_in(const Environment& environment, const std::string& file) {
  RankPlace place;
  place.file = file;
  if (environment("SYNCLINE_RANK")) {
    place.launcher = "syncline";
    read_ranks(environment, "SYNCLINE_RANK", "SYNCLINE_RANKS", place);
    if (file.empty()) place.file = environment("SYNCLINE_MEET").value_or("");
    if (place.file.empty()) throw InputError("SYNCLINE_MEET: not set, though SYNCLINE_RANK is");
    return place;
  }
  if (environment("RANK") && environment("WORLD_SIZE")) {
    place.launcher = "torchrun";
    read_ranks(environment, "RANK", "WORLD_SIZE", place);
    if (!file.empty()) return place;
    const auto host = environment("MASTER_ADDR");
    if (!host) throw InputError("MASTER_ADDR: not set, though RANK and WORLD_SIZE are");
    constexpr int kMostPort = 65535;
    place.meet = RankPlace::Meet::kAddress;
    place.host = *host;
    place.port = number(environment, "MASTER_PORT", 1, kMostPort);
    // torchrun's agent may keep a store of its own at that port.
    if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") {
      place.port += place.port < kMostPort ? 1 : -1;
    }
    return place;
  }
  for (const auto& [rank, ranks] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                    std::pair("PMI_RANK", "PMI_SIZE")}) {
    if (!environment(rank)) continue;
    place.launcher = "mpirun";
    read_ranks(environment, rank, ranks, place);
    place.meet = file.empty() ? RankPlace::Meet::kMpi : RankPlace::Meet::kFile;
    return place;
  }
  if (environment("SLURM_PROCID") && environment("SLURM_NTASKS")) {
    place.launcher = "srun";
    read_ranks(environment, "SLURM_PROCID", "SLURM_NTASKS", place);
    if (place.file.empty()) {
      place.file = ".syncline-meet-" + environment("SLURM_JOB_ID").value_or("0") + "." +
                   environment("SLURM_STEP_ID").value_or("0");
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace syncline
