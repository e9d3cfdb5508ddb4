// Verbs that run on several ranks at once (validate, calibrate live, tune --live): this process
// is one of them, or starts them.
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

// Returns a backend, its module loaded; throws MachineError if that is not there.
const live::Backend& backend_named(std::string_view name);

// Runs `body` on every rank and gives the exit code. `key`: what all ranks must agree on. Without a
// launcher's variables, --ranks starts this same command once a rank and waits for them. Whatever
// fails is printed once, by rank 0 wherever it still can; the other ranks end silently.
// Throws InputError and MachineError where nothing has been printed yet.
int with_ranks(const RanksOptions& options, const std::string& key,
               const std::function<int(live::ControlChannel&)>& body);

// Throws InputError where the scenario's cluster has another number of ranks.
void require_ranks(const live::ControlChannel& channel, const input::Document& document,
                   const Cluster& cluster);

}  // namespace syncline::cli
