// Independent pieces of work spread over processes: results in order, the same bytes as from one
// process. Work may be anything, like a simulation engine with one instance per process, and a
// crash must not end other pieces: hence processes, not threads.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace syncline::run {

struct JobHooks {
  // Reports the numbers of finished and of all pieces, in this process after each piece.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  // Stops the work if true: called in this process between pieces. Pieces under way are finished.
  std::function<bool()> interrupted = [] { return false; };
  // Returns the name of a piece in messages.
  std::function<std::string(std::size_t)> name = [](std::size_t piece) {
    return "job " + std::to_string(piece + 1);
  };
  // Takes each result in this process as soon as it and all before it are done; those are not
  // returned then. Empty: results are kept and returned.
  std::function<void(std::string)> take;
};

// Runs work(0) to work(count - 1), each in one of `jobs` processes (in this one if jobs is 1 or
// there is one piece); pieces are handed out in order to the next free process. `work` must not
// depend on other pieces. With several processes this one handles SIGINT; when it ends, for any
// reason, so do the others.
//
// Returns all results, or if interrupted the first ones without a gap; results that hooks.take has
// taken are not among them. Throws the exception of the first piece that fails, for any number of
// processes: InputError and MachineError as themselves, all others as MachineError. A process that
// crashes is a MachineError naming the piece.
std::vector<std::string> run_jobs(std::size_t count, int jobs,
                                  const std::function<std::string(std::size_t)>& work,
                                  const JobHooks& hooks = {});

// Runs work() in a process of its own, called `name` in messages. Any failure there, even a crash,
// is a MachineError here.
std::string run_in_process(const std::string& name, const std::function<std::string()>& work);

// Returns the cores that this process may use, at most 4,096.
int cores();

// A parallel map: run_jobs with all but the pieces fixed.
using ParallelMap = std::function<std::vector<std::string>(
    std::size_t count, const std::function<std::string(std::size_t)>& work, const JobHooks& hooks)>;

// Returns run_jobs in `jobs` processes; for one an empty ParallelMap: the work is done here.
ParallelMap over_processes(int jobs);

}  // namespace syncline::run
