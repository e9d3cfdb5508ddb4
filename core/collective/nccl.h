// The collective algorithm `nccl`: each payload runs by what NCCL would choose for it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.h"
#include "core/collective/collective.h"
#include "core/collective/library.h"
#include "core/collective/nccl_model.h"

namespace syncline::collective {

inline constexpr std::string_view kNcclName = "nccl";
inline constexpr std::string_view kNcclSummary =
    "what NCCL 2.28.9 would choose for each payload, its model's or calibrated times";

// Returns the topology that one of `groups` would find on this cluster. Requires groups of two or
// more.
NcclTopology nccl_topology(const Cluster& cluster, const Groups& groups);

// Returns the cluster's hints without channels and rates that repeat what is guessed for all ranks,
// as `check` prints it. Written down, a guess for all ranks would else bind smaller groups too.
NcclHints beyond_guesses(const Cluster& cluster);

// What a strategy may name as its algorithm: the rows of algorithm.h, and nccl.
std::vector<std::string> algorithm_choices();
bool choice_fits(std::string_view name, CollectiveKind kind, int ranks);

// Puts in the algorithm of that name, which must fit; `nccl` is resolved for this payload.
void choose_algorithm(Collective& collective, std::string_view name, const Cluster& cluster);

// What one of `groups` sends over, as far as priors tell.
Path path_of(const Cluster& cluster, const Groups& groups);

// Of what the nodes' ports carry, as much as the fabric's busiest links let pass, for the messages
// of its algorithm, or of a ring's where that does not fit.
double passing_share(const Cluster& cluster, const Collective& collective);

// What a collective that NCCL chose takes alone on the network; groups side by side share their
// nodes' NICs. NCCL's model says it of the links at their own speeds and latencies, not of the
// rounded ones that NCCL chooses by: the least of all that NCCL offers there, which never rises as
// a link gets faster. At least what the wire needs (footprint.h): NCCL knows no switches above its
// NICs. Keeps what it worked out for each shape of groups; may be asked by several threads.
class NcclCostModel {
 public:
  explicit NcclCostModel(const Cluster& cluster);  // which must outlive it
  ~NcclCostModel();
  NcclCostModel(const NcclCostModel&) = delete;
  NcclCostModel& operator=(const NcclCostModel&) = delete;

  // With what is known of such networks (library.h): as long as most took, and how far they lay
  // apart. Nothing for a collective that NCCL did not choose.
  std::optional<CollectiveTime> time(const Collective& collective) const;

 private:
  struct Known;
  const Known& known(const Collective& collective) const;
  const Cluster& cluster_;
  mutable std::mutex lock_;
  mutable std::vector<std::unique_ptr<const Known>> known_;
};

}  // namespace syncline::collective
