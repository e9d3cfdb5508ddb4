// A plan's operations in real time on one rank: a thread a stream, each operation begun once what
// it waits for is done. What an operation does is the backend's affair.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/plan/plan.h"
#include "core/run/timeline.h"

namespace syncline::live {

// Carries out one operation, which could begin at `ready`: when the last of what it waits for had
// ended. Gives when it ended, which may lie in the past by a timer's lateness: what follows is then
// reckoned from there, so that lateness does not add up.
using OpWork = std::function<Seconds(plan::OpId op, int period, Seconds ready)>;

// Spans of `rank`, in order of `begin` on each stream; times as ControlChannel::now(). The first
// exception of any operation ends all streams at their next operation and is thrown here.
std::vector<run::Span> run_stream_threads(const plan::Plan& plan, int periods, int rank,
                                          const OpWork& work);

}  // namespace syncline::live
