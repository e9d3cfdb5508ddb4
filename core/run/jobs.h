// Independent pieces of work spread over processes: results in order, the same bytes as from one
// process. Processes, not threads, because the work may be anything, a simulation engine with one
// instance a process included, and because a piece that crashes must not take the others with it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace syncline::run {

struct JobHooks {
  // Called in this process after each piece with the number done and wanted.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  // Asked in this process between pieces; true ends the work once the pieces at hand are done.
  std::function<bool()> interrupted = [] { return false; };
  // What a piece is called in messages.
  std::function<std::string(std::size_t)> name = [](std::size_t piece) {
    return "job " + std::to_string(piece + 1);
  };
  // Takes each result in this process as soon as it and all before it are done; those are not
  // returned then. None: they are kept and returned.
  std::function<void(std::string)> take;
};

// work(0) to work(count - 1), each in one of `jobs` processes (in this one if jobs is 1 or there is
// one piece); pieces are handed out in order, one by one, to the next free process. `work` must not
// depend on what other pieces did. Where several processes work, SIGINT is this process's to
// handle; when it ends, however it ends, so do the others.
//
// Returns all results, or where interrupted the first ones that are done without a gap; what
// hooks.take has taken is not among them. An exception of a piece is thrown here, InputError and
// MachineError as themselves, all others as MachineError; of several failures that of the first
// piece, whatever the number of processes. A process that crashes is a MachineError naming the
// piece.
std::vector<std::string> run_jobs(std::size_t count, int jobs,
                                  const std::function<std::string(std::size_t)>& work,
                                  const JobHooks& hooks = {});

// work() in a process of its own, by this one's name in messages. Whatever goes wrong there, a
// crash included, is a MachineError here.
std::string run_apart(const std::string& name, const std::function<std::string()>& work);

// Returns the cores that this process may use, at most 4,096.
int cores();

// A parallel map: run_jobs with everything but the pieces settled.
using ParallelMap = std::function<std::vector<std::string>(
    std::size_t count, const std::function<std::string(std::size_t)>& work, const JobHooks& hooks)>;

// run_jobs in so many processes; of one an empty ParallelMap: the work is done here.
ParallelMap over_processes(int jobs);

}  // namespace syncline::run
