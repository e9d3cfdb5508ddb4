#include "core/run/shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/visible.h"

namespace syncline::run {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// What a rank leaves behind: its results in order, and how it ended.
struct Left {
  int attempt = 0;
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

constexpr std::string_view kHead = "syncline shard 2\n";

std::string encoded(const Left& left) {
  std::string bytes(kHead);
  bytes += static_cast<char>(left.end);
  append_text(bytes, std::to_string(left.attempt));
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
  const auto refuse = [&](const std::string& what) -> MachineError {
    return MachineError(path + ": " + what + "; remove it and start its rank again");
  };
  if (!std::string_view(bytes).starts_with(kHead)) throw refuse("is no shard of this program");
  std::size_t at = kHead.size();
  const char end = at < bytes.size() ? bytes[at++] : '\0';
  if (end == '\0' || std::string_view("DSIM").find(end) == std::string_view::npos) {
    throw refuse("does not say how its rank ended");
  }
  Left left;
  left.end = static_cast<Left::End>(end);
  const std::string attempt = take_text(bytes, at, path);
  std::from_chars(attempt.data(), attempt.data() + attempt.size(), left.attempt);
  left.message = take_text(bytes, at, path);
  while (at < bytes.size()) left.results.push_back(take_text(bytes, at, path));
  return left;
}

// What lies there; nothing where nothing does. Whatever has that name, this does not wait for it.
std::optional<Left> left_at(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  std::string bytes;
  std::string wrong = file < 0 ? std::strerror(errno) : "";
  struct stat status {};
  if (file >= 0 && (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
    wrong = "is no ordinary file, so no shard; remove it";
  }
  char block[1 << 16];
  for (ssize_t got = 1; wrong.empty() && got != 0;) {
    got = ::read(file, block, sizeof block);
    if (got < 0 && errno != EINTR) wrong = std::strerror(errno);
    if (got > 0) bytes.append(block, static_cast<std::size_t>(got));
  }
  if (file >= 0) ::close(file);
  if (!wrong.empty()) throw MachineError(path + ": " + wrong);
  return decoded(bytes, path);
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  constexpr std::size_t kMost = 10;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  return text +
         (ranks.size() > kMost ? " and " + std::to_string(ranks.size() - kMost) + " more" : "");
}

// How many of the pieces are a rank's.
std::size_t share_of(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank);
  return count > r ? (count - r - 1) / static_cast<std::size_t>(size) + 1 : 0;
}

// Rank 0, once its own share is done.
class Collection {
 public:
  Collection(std::size_t count, const Shard& shard, const ShardSettings& settings,
             fs::file_time_type began)
      : count_(count),
        shard_(shard),
        settings_(settings),
        began_(began),
        all_(static_cast<std::size_t>(shard.size)) {
    for (int rank = 1; rank < shard.size; ++rank) missing_.push_back(rank);
  }

  // By rank, nothing for rank 0; of a rank that has not come when we are interrupted, that it was.
  std::vector<Left> run(const JobHooks& hooks) {
    constexpr std::chrono::milliseconds kBetween{20};
    while (true) {
      std::erase_if(missing_, [&](int rank) { return has_come(rank); });
      if (missing_.empty()) break;
      if (hooks.interrupted()) {
        for (const int rank : missing_) place_of(rank).end = Left::End::kInterrupted;
        break;
      }
      if (Clock::now() >= since_ + settings_.patience) give_up();
      say_who_is_missing();
      std::this_thread::sleep_for(kBetween);
    }
    return std::move(all_);
  }

 private:
  Left& place_of(int rank) { return all_[static_cast<std::size_t>(rank)]; }

  bool has_come(int rank) {
    const std::string path = path_of(shard_, settings_, rank);
    auto left = left_at(path);
    if (!left || (may_come_again(*left, path) && say_of_earlier(rank, *left))) return false;
    const std::size_t share = share_of(count_, rank, shard_.size);
    if (left->end == Left::End::kDone && left->results.size() != share) {
      throw MachineError(path + ": holds " + std::to_string(left->results.size()) + " of " +
                         std::to_string(share) + " results; remove it and start its rank again");
    }
    place_of(rank) = std::move(*left);
    return true;
  }

  // A rank that ended badly before this one began may have been started again with it.
  bool may_come_again(const Left& left, const std::string& path) const {
    if (left.end != Left::End::kInterrupted && left.end != Left::End::kMachineError) return false;
    if (left.attempt < shard_.attempt) return true;
    std::error_code gone;
    const bool before = fs::last_write_time(path, gone) < began_;
    return gone || (before && Clock::now() < since_ + settings_.restart_patience);
  }

  bool say_of_earlier(int rank, const Left& left) {
    if (!told_.insert(rank).second) return true;
    const bool stopped = left.end == Left::End::kInterrupted;
    settings_.say("rank " + std::to_string(rank) + " left that it " +
                  (stopped ? "was interrupted" : "failed (" + visible(left.message) + ")") +
                  " before this rank began; waiting for it to come again");
    return true;
  }

  void say_who_is_missing() {
    constexpr std::chrono::seconds kFirst{5};
    constexpr std::chrono::seconds kAgain{60};
    const auto now = Clock::now();
    if (now < said_at_ + (said_.empty() ? kFirst : kAgain) || missing_ == said_) return;
    said_ = missing_;
    said_at_ = now;
    settings_.say("waiting for the shards of " + ranks_text(missing_) + " in " + settings_.folder);
  }

  [[noreturn]] void give_up() const {
    throw MachineError(path_of(shard_, settings_, missing_.front()) + ": the shards of " +
                       ranks_text(missing_) +
                       " have not come in time; they failed, or do not share the folder");
  }

  const std::size_t count_;
  const Shard& shard_;
  const ShardSettings& settings_;
  const fs::file_time_type began_;
  const Clock::time_point since_ = Clock::now();
  std::vector<Left> all_;
  std::vector<int> missing_;
  std::set<int> told_;
  std::vector<int> said_;
  Clock::time_point said_at_ = since_;
};

Left own_share(std::size_t count, int jobs, const Shard& shard,
               const std::function<std::string(std::size_t)>& work, const JobHooks& hooks) {
  const auto rank = static_cast<std::size_t>(shard.rank);
  const auto size = static_cast<std::size_t>(shard.size);
  const std::size_t own = share_of(count, shard.rank, shard.size);
  const auto global = [rank, size](std::size_t piece) { return rank + piece * size; };
  JobHooks hooks_here = hooks;
  hooks_here.name = [&](std::size_t piece) { return hooks.name(global(piece)); };
  hooks_here.take = nullptr;  // they go into the shard
  Left left;
  left.attempt = shard.attempt;
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
    if (variable("SLURM_RESTART_COUNT")) shard.attempt = number_in("SLURM_RESTART_COUNT", 0);
    return checked(shard, "SLURM_ARRAY_TASK_ID");
  }
  return std::nullopt;
}

std::vector<std::string> run_sharded(std::size_t count, int jobs, const Shard& shard,
                                     const ShardSettings& settings,
                                     const std::function<std::string(std::size_t)>& work,
                                     const JobHooks& hooks) {
  const std::string own_path = path_of(shard, settings, shard.rank);
  if (shard.rank != 0) {
    // What an earlier try of this rank has left is no news any more.
    std::remove(own_path.c_str());
    const Left own = own_share(count, jobs, shard, work, hooks);
    write_file(own_path, encoded(own));
    throw_failure(own);
    return {};
  }

  // Its own file says since when rank 0 has been at it, by the clock of the folder.
  write_file(own_path, std::string(kHead));
  const fs::file_time_type began = fs::last_write_time(own_path);
  Left own = own_share(count, jobs, shard, work, hooks);
  std::vector<Left> all = Collection(count, shard, settings, began).run(hooks);
  all.front() = std::move(own);
  const bool failed = std::any_of(all.begin(), all.end(), [](const Left& left) {
    return left.end == Left::End::kInputError || left.end == Left::End::kMachineError;
  });
  // Rank 0 has waited for every rank before it reports a failure, so that no shard stays.
  if (failed) remove_shards(shard, settings);
  for (const auto& left : all) throw_failure(left);
  for (std::size_t rank = 1; rank < all.size() && !hooks.interrupted(); ++rank) {
    if (all[rank].end == Left::End::kInterrupted) {
      settings.say("rank " + std::to_string(rank) +
                   " was interrupted: what it had not done is missing, and all that follows it");
    }
  }
  std::vector<std::string> results;
  while (results.size() < count) {
    auto& left = all[results.size() % all.size()];
    const std::size_t at = results.size() / all.size();
    if (at >= left.results.size()) break;  // interrupted there
    results.push_back(std::move(left.results[at]));
  }
  return results;
}

void remove_shards(const Shard& shard, const ShardSettings& settings) {
  for (int rank = 0; rank < shard.size; ++rank) {
    std::remove(path_of(shard, settings, rank).c_str());
  }
}

}  // namespace syncline::run
