#include "core/run/shards.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/error.h"
#include "core/files.h"

namespace syncline::run {
namespace {

// What a rank leaves behind: its results in order, and how it ended.
struct Left {
  std::vector<std::string> results;
  enum class End : char { kDone = 'D', kInterrupted = 'S', kInputError = 'I', kMachineError = 'M' };
  End end = End::kDone;
  std::string message;  // of an error
};

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int number_in(const char* name, int least) {
  const auto text = variable(name);
  int value = 0;
  bool whole = false;
  if (text) {
    const char* end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, value);
    whole = parsed.ec == std::errc() && parsed.ptr == end;
  }
  if (whole && value >= least) return value;
  throw InputError(std::string("environment: ") + name + " is '" + text.value_or("") +
                   "', allowed is a whole number from " + std::to_string(least));
}

Shard checked(Shard shard, const char* name) {
  if (shard.rank >= 0 && shard.rank < shard.size) return shard;
  throw InputError(std::string("environment: ") + name + " makes this rank " +
                   std::to_string(shard.rank) + " of " + std::to_string(shard.size));
}

// Letters and digits of a name as they may stand in a file's.
std::string file_word(std::string name) {
  for (char& letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') || letter == '-';
    if (!plain) letter = '_';
  }
  return name;
}

std::string path_of(const Shard& shard, const ShardSettings& settings, int rank) {
  return settings.folder + "/shard-" + file_word(settings.work_name) + "-" +
         file_word(shard.launch) + "-" + std::to_string(rank) + "-of-" + std::to_string(shard.size);
}

void append_text(std::string& bytes, const std::string& text) {
  const std::uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
}

std::string encoded(const Left& left) {
  std::string bytes(1, static_cast<char>(left.end));
  append_text(bytes, left.message);
  for (const auto& result : left.results) append_text(bytes, result);
  return bytes;
}

std::string take_text(const std::string& bytes, std::size_t& at, const std::string& path) {
  std::uint64_t size = 0;
  if (bytes.size() - at >= sizeof size) {
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    if (size <= bytes.size() - at) {
      at += size;
      return bytes.substr(at - size, size);
    }
  }
  throw MachineError(path + ": cut short");
}

Left decoded(const std::string& bytes, const std::string& path) {
  if (bytes.empty()) throw MachineError(path + ": empty");
  Left left;
  left.end = static_cast<Left::End>(bytes.front());
  std::size_t at = 1;
  left.message = take_text(bytes, at, path);
  while (at < bytes.size()) left.results.push_back(take_text(bytes, at, path));
  return left;
}

// Empty where nothing came: out of patience is an error, an interruption is not.
std::optional<Left> await(const std::string& path, std::chrono::steady_clock::time_point until,
                          const JobHooks& hooks) {
  constexpr std::chrono::milliseconds kBetween{20};
  while (true) {
    std::ifstream in(path, std::ios::binary);
    if (in) {
      const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      std::remove(path.c_str());
      return decoded(bytes, path);
    }
    if (hooks.interrupted()) return std::nullopt;
    if (std::chrono::steady_clock::now() >= until) {
      throw MachineError(path +
                         ": this shard has not come in time; its rank failed, or does not "
                         "share the folder");
    }
    std::this_thread::sleep_for(kBetween);
  }
}

Left own_share(std::size_t count, int jobs, const Shard& shard,
               const std::function<std::string(std::size_t)>& work, const JobHooks& hooks) {
  const auto rank = static_cast<std::size_t>(shard.rank);
  const auto size = static_cast<std::size_t>(shard.size);
  const std::size_t own = count > rank ? (count - rank - 1) / size + 1 : 0;
  const auto global = [rank, size](std::size_t piece) { return rank + piece * size; };
  JobHooks hooks_here = hooks;
  hooks_here.name = [&](std::size_t piece) { return hooks.name(global(piece)); };
  Left left;
  try {
    left.results = run_jobs(
        own, jobs, [&](std::size_t piece) { return work(global(piece)); }, hooks_here);
    if (left.results.size() < own) left.end = Left::End::kInterrupted;
  } catch (const InputError& error) {
    left.end = Left::End::kInputError;
    left.message = error.what();
  } catch (const std::exception& error) {
    left.end = Left::End::kMachineError;
    left.message = error.what();
  }
  return left;
}

void throw_failure(const Left& left) {
  if (left.end == Left::End::kInputError) throw InputError(left.message);
  if (left.end == Left::End::kMachineError) throw MachineError(left.message);
}

}  // namespace

std::optional<Shard> shard_from_environment() {
  if (variable("OMPI_COMM_WORLD_RANK")) {
    Shard shard;
    shard.rank = number_in("OMPI_COMM_WORLD_RANK", 0);
    shard.size = number_in("OMPI_COMM_WORLD_SIZE", 1);
    // Random for each mpirun; job numbers come round again.
    for (const char* name :
         {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
      if (shard.launch.empty()) shard.launch = variable(name).value_or("");
    }
    return checked(shard, "OMPI_COMM_WORLD_RANK");
  }
  if (variable("SLURM_ARRAY_TASK_ID")) {
    Shard shard;
    const int first = variable("SLURM_ARRAY_TASK_MIN") ? number_in("SLURM_ARRAY_TASK_MIN", 0) : 0;
    const int step = variable("SLURM_ARRAY_TASK_STEP") ? number_in("SLURM_ARRAY_TASK_STEP", 1) : 1;
    shard.rank = (number_in("SLURM_ARRAY_TASK_ID", 0) - first) / step;
    shard.size = number_in("SLURM_ARRAY_TASK_COUNT", 1);
    shard.launch = variable("SLURM_ARRAY_JOB_ID").value_or("");
    return checked(shard, "SLURM_ARRAY_TASK_ID");
  }
  return std::nullopt;
}

std::vector<std::string> run_sharded(std::size_t count, int jobs, const Shard& shard,
                                     const ShardSettings& settings,
                                     const std::function<std::string(std::size_t)>& work,
                                     const JobHooks& hooks) {
  Left own = own_share(count, jobs, shard, work, hooks);
  if (shard.rank != 0) {
    write_file(path_of(shard, settings, shard.rank), encoded(own));
    throw_failure(own);
    return {};
  }

  // Rank 0 waits for every rank before it reports a failure, so that no shard stays in the folder.
  const auto until = std::chrono::steady_clock::now() + settings.patience;
  std::vector<Left> all;
  all.push_back(std::move(own));
  for (int rank = 1; rank < shard.size; ++rank) {
    auto left = await(path_of(shard, settings, rank), until, hooks);
    if (!left) left = Left{{}, Left::End::kInterrupted, {}};
    all.push_back(std::move(*left));
  }
  for (const auto& left : all) throw_failure(left);
  std::vector<std::string> results;
  while (results.size() < count) {
    auto& left = all[results.size() % all.size()];
    const std::size_t at = results.size() / all.size();
    if (at >= left.results.size()) break;  // interrupted there
    results.push_back(std::move(left.results[at]));
  }
  return results;
}

}  // namespace syncline::run
