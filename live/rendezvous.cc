// The file is one line, "HOST PORT TOKEN", that only its owner can read. Rank 0 locks it while it
// lives (flock): an unlocked file is a killed run's.
#include "live/rendezvous.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "formats/text/installed.h"
#include "live/messenger.h"
#include "live/mpi/broadcast.h"
#include "live/rank_environment.h"

namespace syncline::live {
namespace {

using Rendezvous = RankEnvironment::Rendezvous;

// The file's token if the environment has one.
constexpr const char* kNoToken = "-";

// Returns a listener that is open no wider than the other ranks need.
Socket listener_for(const RankEnvironment& environment) {
  if (environment.rendezvous != Rendezvous::kAddress) {
    return listen_on(environment.one_machine ? kLoopback : reachable_address(environment.interface),
                     0);
  }
  if (environment.listener >= 0) {
    Socket given(environment.listener);
    fcntl(given.fd(), F_SETFD, FD_CLOEXEC);
    if (parse_port(own_end(given.fd())) == environment.port) return given;
    throw MachineError("SYNCLINE_LISTENER: descriptor " + std::to_string(given.release()) +
                       " is no socket at port " + std::to_string(environment.port));
  }
  const std::string address = listen_address(environment.host, environment.one_machine);
  try {
    return listen_on(address, environment.port);
  } catch (const MachineError& error) {
    throw RendezvousError(
        "rank 0 cannot listen where the other ranks look for it, or was started "
        "twice: " +
            std::string(error.what()),
        true);
  }
}

// Returns a token that all ranks can derive. It keeps runs apart, but no stranger out.
std::string shared_token(const RankEnvironment& environment) {
  return "a run without a token: " + environment.run_id + " " + std::to_string(environment.port);
}

std::string token_for(const RankEnvironment& environment) {
  if (!environment.token.empty()) return environment.token;
  return environment.rendezvous == Rendezvous::kAddress ? shared_token(environment) : new_token();
}

std::string line_of(const FirstAddress& address) {
  return address.host + " " + std::to_string(address.port) + " " + address.token;
}

// Reads an address that line_of() wrote; nullopt for other text.
std::optional<FirstAddress> published_in(const std::string& line) {
  std::istringstream words(line);
  FirstAddress address;
  words >> address.host >> address.port >> address.token;
  const bool whole = words && !address.token.empty() && address.port > 0 && address.port < 65536;
  return whole && line_of(address) == line ? std::optional(address) : std::nullopt;
}

// An open file, which may be locked.
struct RendezvousFile {
  Socket descriptor;
  bool empty = false;
  std::optional<FirstAddress> address = {};  // of a rank 0; nullopt: other content
};

// Opens a small ordinary file of one line. Does not wait for any other kind of file.
RendezvousFile opened(const std::string& file) {
  constexpr std::size_t kLongest = 400;
  RendezvousFile found{Socket(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))};
  struct stat status {};
  const int fd = found.descriptor.fd();
  if (!found.descriptor || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return found;
  found.empty = status.st_size == 0;
  char block[kLongest + 1];
  const ssize_t got = pread(fd, block, sizeof block, 0);
  if (got <= 1 || static_cast<std::size_t>(got) > kLongest || block[got - 1] != '\n') return found;
  found.address = published_in(std::string(block, static_cast<std::size_t>(got) - 1));
  return found;
}

// Throws unless only this user can read and write the file. A writer could make us talk to any
// address; a reader could pretend to be one of us.
void expect_ours(const Socket& descriptor, const std::string& file) {
  struct stat status {};
  if (fstat(descriptor.fd(), &status) != 0) return;
  const bool open_to_others = (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (status.st_uid == geteuid() && !open_to_others) return;
  throw MachineError(file + ": " +
                     (open_to_others ? "is open to other users" : "belongs to another user") +
                     ", so that what it says of rank 0 proves nothing; name another file with "
                     "--meet, or give all ranks one SYNCLINE_TOKEN");
}

// Removes the file of a killed run. An empty one is being written.
void clear(const std::string& file, bool again) {
  const RendezvousFile other = opened(file);
  if (other.empty && again) return;
  if (!other.descriptor && errno == ENOENT) return;
  if (!other.address) {
    throw InputError(
        file +
        ": contains something else than the place of a rendezvous; name a new file with --meet");
  }
  if (flock(other.descriptor.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw RendezvousError(started_twice_text(0) + ", or another run meets in " + file, true);
  }
  // Only if it is still the same file.
  struct stat here {};
  struct stat there {};
  const bool same = fstat(other.descriptor.fd(), &here) == 0 && stat(file.c_str(), &there) == 0 &&
                    here.st_ino == there.st_ino && here.st_dev == there.st_dev;
  if (same) std::remove(file.c_str());
}

// Writes the line into a new file and returns the file, locked.
Socket publish(const std::string& file, const std::string& line) {
  constexpr int kMaxAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    Socket made(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    std::string reason = std::strerror(errno);
    if (made) {
      flock(made.fd(), LOCK_EX | LOCK_NB);  // goes on if there are no locks
      const std::string text = line + "\n";
      if (write(made.fd(), text.data(), text.size()) == std::ssize(text)) return made;
      reason = std::strerror(errno);
      std::remove(file.c_str());
    }
    if (made || errno != EEXIST || attempt > kMaxAttempts) throw MachineError(file + ": " + reason);
    clear(file, attempt < kMaxAttempts);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// SimGrid has MPI functions of its own, which abort outside its simulation: this library must find
// MPI's first. The sanitizers do not allow that: built with them, the program is linked to MPI
// before SimGrid.
#ifdef SYNCLINE_SANITIZED
constexpr int kLoading = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kLoading = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

constexpr const char* kInstead =
    ": name a file that all ranks can read, in which rank 0 writes its address, with --meet FILE";

SynclineMpiFromFirst* load_mpi() {
  const std::string name = own_library("libsyncline_mpi.so").string();
  if (name.empty()) {
    throw MachineError("the ranks were launched by mpirun, but this program has no MPI: " +
                       ("libsyncline_mpi.so is not with it" + std::string(kInstead)));
  }
  void* library = dlopen(name.c_str(), kLoading);
  if (library == nullptr) {
    throw MachineError("the ranks were launched by mpirun, but MPI cannot be loaded: " +
                       std::string(dlerror()) + kInstead);
  }
  auto* found = reinterpret_cast<SynclineMpiFromFirst*>(dlsym(library, "syncline_mpi_from_first"));
  if (found == nullptr) throw MachineError(name + ": " + dlerror());
  return found;
}

// Returns rank 0's text on every rank.
std::string mpi_from_first(const std::string& mine) {
  std::string text = mine;
  std::string failure;
  load_mpi()(text, failure);
  if (!failure.empty()) throw MachineError(failure);
  return text;
}

}  // namespace

OpenRendezvous::OpenRendezvous(const RankEnvironment& environment)
    : listener_(listener_for(environment)), token_(token_for(environment)) {
  if (environment.ranks == 1) return;
  const std::string end = own_end(listener_.fd());
  line_ =
      line_of({parse_address(end), parse_port(end), environment.token.empty() ? token_ : kNoToken});
  if (environment.rendezvous == Rendezvous::kMpi) mpi_from_first(line_);
  if (environment.rendezvous == Rendezvous::kFile) {
    lock_ = publish(environment.file, line_);
    file_ = environment.file;
  }
}

OpenRendezvous::~OpenRendezvous() {
  if (file_.empty()) return;
  // The file of another run, or of a user, stays.
  const auto published = opened(file_).address;
  if (published && line_of(*published) == line_) std::remove(file_.c_str());
}

FirstRank::FirstRank(const RankEnvironment& environment) : environment_(environment) {
  if (environment.rendezvous == Rendezvous::kMpi) found_ = published_in(mpi_from_first(""));
}

std::optional<FirstAddress> FirstRank::now() {
  if (environment_.rendezvous == Rendezvous::kAddress) {
    return FirstAddress{environment_.host, environment_.port, token_for(environment_)};
  }
  if (environment_.rendezvous == Rendezvous::kFile) {
    const RendezvousFile meet = opened(environment_.file);
    found_ = meet.address;
    if (found_ && environment_.token.empty()) expect_ours(meet.descriptor, environment_.file);
  }
  if (found_ && !environment_.token.empty()) found_->token = environment_.token;
  return found_;
}

bool FirstRank::lives() const {
  if (environment_.rendezvous != Rendezvous::kFile) return false;
  const RendezvousFile meet = opened(environment_.file);
  return meet.address && flock(meet.descriptor.fd(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

std::string FirstRank::where() const {
  if (environment_.rendezvous == Rendezvous::kAddress) {
    return " (at " + environment_.host + ":" + std::to_string(environment_.port) + ")" +
           (environment_.launcher == "syncline"
                ? ""
                : ", or all ranks have met and this is a second " + rank_text(environment_.rank));
  }
  if (!found_) return ": it has not written " + environment_.file;
  return " (at " + found_->host + ":" + std::to_string(found_->port) + ")";
}

}  // namespace syncline::live
