// Verbs that run on several ranks at once (validate, calibrate live, tune --live): this process is
// one of them, or starts them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "core/cluster.h"
#include "formats/input/document.h"
#include "live/backend.h"
#include "live/control_channel.h"

namespace syncline::cli {

// Returns a backend after loading its module. Throws MachineError if that is missing.
const live::Backend& backend_named(std::string_view name);

// Runs `body` on every rank and returns the exit code. All ranks must have the same `key`. Without
// a launcher's variables, --ranks starts this same command once per rank and waits. A failure is
// printed once, by rank 0 if it still can; other ranks end silently. Throws InputError and
// MachineError if no failure was printed yet.
int with_ranks(const RanksOptions& options, const std::string& key,
               const std::function<int(live::ControlChannel&)>& body);

// Throws InputError if the scenario's cluster has another number of ranks.
void require_ranks(const live::ControlChannel& channel, const input::Document& document,
                   const Cluster& cluster);

}  // namespace syncline::cli
