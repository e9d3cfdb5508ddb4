// Verbs that run on several ranks at once (validate, calibrate --live, tune --live): this process
// is one of them, or starts them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "live/control_channel.h"
#include "live/live_executor.h"

namespace syncline {

struct RanksOptions {
  int ranks = 0;        // to be started here; 0: a launcher has started us
  double timeout = 60;  // seconds
  std::string meet;     // file in which ranks meet; empty: as the launcher has it
};

void add_ranks_options(CLI::App& verb, RanksOptions& options);

// Runs `body` on every rank and gives the exit code. `key`: what all ranks must agree on. Without a
// launcher's variables, --ranks starts this same command once a rank and waits for them. Whatever
// fails is said once, by rank 0 wherever it still can; the other ranks end silently.
// Throws InputError and MachineError where nothing has been said yet.
int with_ranks(const RanksOptions& options, const std::string& key,
               const std::function<int(ControlChannel&)>& body);

// "gloo" or "nccl".
LiveExecutorFactory backend_named(const std::string& name);

}  // namespace syncline
