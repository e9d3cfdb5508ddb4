// What is allowed in a scenario and rarely meant: said beside every answer, never a failure.
//
//   nothing to cost     one rank; no compute times, so that nothing can overlap; encoding that
//                        costs nothing as the device's memory rate is not given; a hierarchy of one
//                        level; parameters averaged after every step
//   a list turned round  gradients in forward order (gradient_order.h)
//   a unit mistaken      a NIC above 1600 Gbit/s or of a usual rate in GB/s, a GPU's port above 20
//                        Tbit/s, a message's latency of 10 ms or, between nodes, below 0.2 us, a
//                        device above 100 PFLOP/s or 100 TB/s, buckets of 1000 times the
//                        gradients, a bucket of a few elements, a Horovod threshold of a few bytes
//                        or cycle of a few microseconds; and, where the document is at hand, a
//                        backward_ms that contradicts its gradients' backward_us
//   hardware             a device's name that is another device's than its base, more GPUs than the
//                        named node has, bf16 where the device has no products in it
//   a global batch       activations that no GPU holds, where those of a share of the batch fit
//   several networks     rows evaluated by NCCL beside rows on the plain links
//   a first step         DDP's, which exchanges one bucket of everything, and what it takes
//   shapes not given     what PowerSGD factors is assumed
//   not measured         collectives outside the sizes and counts of the cluster's calibration
//   a guess              what the choice of NCCL rests on; what a node or device that is named
//                        (core/hardware) leaves to assumption, where the document is at hand
//
// Some of this is doubtful: input that is likely a mistake. Such a line begins with kDoubtful, and
// verbs say it before their results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/document.h"
#include "core/scenario/scenario.h"
#include "core/scenario/sweep.h"

namespace syncline::measure {

inline constexpr std::string_view kDoubtful = "doubtful: ";

// Takes the doubtful ones out of a list of warnings, without the word.
std::vector<std::string> take_suspicious(std::vector<std::string>& warnings);

// One line each, without a final stop. What holds for several strategies is one line that names
// them. Empty where there is nothing to say.
std::vector<std::string> warnings_of(const Scenario& scenario);

// The same over a sweep of the document, which has been read as `scenario`. Warnings that differ in
// numbers alone are said once, as at the first point where they hold; what does not hold at all
// points says where. Throws InputError, naming the point, where its values make the scenario wrong.
// `interrupted` is asked between points; true ends it with what was found at those before.
// `progress` is called after each point with the number done and wanted.
std::vector<std::string> warnings_of(
    const input::Document& document, const Scenario& scenario, const Sweep& sweep = Sweep(),
    const std::function<bool()>& interrupted = [] { return false; },
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t,
                                                                       std::size_t) {});

}  // namespace syncline::measure
