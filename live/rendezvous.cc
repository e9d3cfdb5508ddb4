#include "live/rendezvous.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "live/mpi_broadcast.h"
#include "live/rank_text.h"

namespace syncline::live {
namespace {

using Rendezvous = RankEnvironment::Rendezvous;

Socket listener_for(const RankEnvironment& environment) {
  if (environment.rendezvous != Rendezvous::kAddress) return listen_on(0);
  try {
    return listen_on(environment.port);
  } catch (const MachineError& error) {
    throw RendezvousError(
        "rank 0 cannot listen where the other ranks look for it, or was started "
        "twice: " +
            std::string(error.what()),
        true);
  }
}

// The address beside the file, whole, so that nobody reads half of it. Gives that file's name.
std::string write_beside(const std::string& file, const std::string& address) {
  std::string beside = file + ".XXXXXX";
  const Socket made(mkstemp(beside.data()));
  const std::string line = address + "\n";
  if (!made || write(made.fd(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    const std::string reason = std::strerror(errno);
    if (made) std::remove(beside.c_str());
    throw MachineError(file + ": " + reason);
  }
  fchmod(made.fd(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  return beside;
}

std::string line_of(const HostAddress& address) {
  return address.host + " " + std::to_string(address.port);
}

// What a rank 0 published: a small ordinary file of one line, "HOST PORT". Nothing where the file
// is not there or holds anything else; whatever it is, this does not wait for it.
std::optional<HostAddress> published_in(const std::string& file) {
  constexpr std::size_t kLongest = 300;
  const Socket in(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!in || fstat(in.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  char block[kLongest + 1];
  const ssize_t got = read(in.fd(), block, sizeof block);
  if (got <= 0 || static_cast<std::size_t>(got) > kLongest) return std::nullopt;
  const std::string text(block, static_cast<std::size_t>(got));
  HostAddress address;
  address.host = text.substr(0, text.find(' '));
  const std::size_t port = address.host.size() + 1;
  if (address.host.empty() || port >= text.size()) return std::nullopt;
  std::from_chars(text.data() + port, text.data() + text.size(), address.port);
  return line_of(address) + "\n" == text ? std::optional(address) : std::nullopt;
}

// Puts the address into the file. A file that is there already was left by a run that was killed,
// or a second rank 0 listens at the address in it.
void publish(const std::string& file, const std::string& address) {
  const std::string beside = write_beside(file, address);
  // Unlike renaming, linking fails where another process was quicker.
  int reason = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    reason = link(beside.c_str(), file.c_str()) == 0 ? 0 : errno;
    if (reason != EEXIST) break;
    const auto other = published_in(file);
    // Gone meanwhile.
    if (!other && access(file.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    if (!other || answers(other->host, other->port)) {
      std::remove(beside.c_str());
      if (!other)
        throw InputError(
            file + ": holds something else than where ranks meet; name a new file with --meet");
      throw RendezvousError(started_twice_text(0) +
                                ", or another program listens now where a run "
                                "that was killed did: remove " +
                                file + " then",
                            true);
    }
    std::remove(file.c_str());
  }
  std::remove(beside.c_str());
  if (reason != 0) throw MachineError(file + ": " + std::strerror(reason));
}

// What rank 0 has written into the file, once it has; empty: not by `deadline`.
std::string awaited_text(const std::string& file, LiveClock::time_point deadline) {
  for (;;) {
    if (const auto address = published_in(file)) return line_of(*address);
    if (LiveClock::now() >= deadline) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

OpenRendezvous::OpenRendezvous(const RankEnvironment& environment)
    : listener_(listener_for(environment)), port_(port_of(listener_)) {
  if (environment.ranks == 1) return;
  const std::string address = reachable_address() + " " + std::to_string(port_);
  if (environment.rendezvous == Rendezvous::kMpi) mpi_from_first(address);
  if (environment.rendezvous == Rendezvous::kFile) {
    publish(environment.file, address);
    file_ = environment.file;
  }
}

OpenRendezvous::~OpenRendezvous() {
  // Another run's, or a user's that has come in its place, stays.
  const auto published = published_in(file_);
  if (published && published->port == port_) std::remove(file_.c_str());
}

HostAddress find_first(const RankEnvironment& environment, LiveClock::time_point deadline,
                       std::chrono::milliseconds timeout) {
  if (environment.rendezvous == Rendezvous::kAddress) return {environment.host, environment.port};
  const std::string published = environment.rendezvous == Rendezvous::kMpi
                                    ? mpi_from_first("")
                                    : awaited_text(environment.file, deadline);
  const auto space = published.find(' ');
  if (space == std::string::npos) {
    throw RendezvousError("rank 0 did not join within " + limit_text(timeout) +
                              ": it has not written " + environment.file,
                          environment.rank == 1);
  }
  return {published.substr(0, space), std::atoi(published.c_str() + space)};
}

}  // namespace syncline::live
