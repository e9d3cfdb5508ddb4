// The collective algorithm `nccl`: each payload runs by what NCCL would choose for it.
//
// The choice is NCCL's own (nccl_model.h), over a topology guessed from the cluster: what the
// search of NCCL would find is taken to be the largest speed on its list that a link can carry, and
// as many channels as fill the link. "nccl" in the cluster overrides each guess. The transfers are
// those of the nearest algorithm known here, for the links that concurrent collectives share:
//
//   Ring, CollNet, NVLS  ring (a switch that adds up has no transfers of its own here)
//   Tree, NVLSTree       double_binary_tree, in rank order, where NCCL keeps a chain inside nodes
//   PAT                  halving_doubling where it fits, else ring
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/collective.h"
#include "core/collective/nccl_model.h"
#include "core/scenario/cluster.h"

namespace syncline::collective {

inline constexpr std::string_view kNcclName = "nccl";
inline constexpr std::string_view kNcclSummary =
    "what NCCL 2.28.9 would choose for each payload, its model's or calibrated times";

// The topology that one of `groups` would find on this cluster. Requires groups of two or more.
NcclTopology nccl_topology(const Cluster& cluster, const Groups& groups);

// What a strategy may name as its algorithm: the rows of algorithm.h, and nccl.
std::vector<std::string> algorithm_choices();
bool choice_fits(std::string_view name, CollectiveKind kind, int ranks);

// Puts in the algorithm of that name, which must fit; `nccl` is resolved for this payload.
void choose_algorithm(Collective& collective, std::string_view name, const Cluster& cluster);

// What NCCL's model says that its choice takes, alone on the network; groups side by side share
// their nodes' NICs. At least what the wire needs (wire_floor.h): NCCL knows NICs, but no switches
// above them, and rounds some of its bandwidths up. Nothing for a collective that NCCL did not
// choose.
std::optional<Seconds> nccl_law(const Cluster& cluster, const Collective& collective);
// The same where wire_seconds_per_byte is known.
std::optional<Seconds> nccl_law(const Cluster& cluster, const Collective& collective,
                                double wire_seconds_per_byte);

}  // namespace syncline::collective
