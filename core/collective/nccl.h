// The collective algorithm `nccl`: each payload runs by NCCL's own choice.
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

// Returns the topology that NCCL would find for one of `groups` on this cluster. Requires groups of
// two or more.
NcclTopology nccl_topology(const Cluster& cluster, const Groups& groups);

// Returns the cluster's hints without channels and rates that equal the guess for all ranks, as
// `syncline check` prints it. Such a guess, written down, would bind smaller groups too.
NcclHints beyond_guesses(const Cluster& cluster);

// Returns the valid names of a strategy's algorithm: the rows of algorithm.h, and nccl.
std::vector<std::string> algorithm_choices();
bool choice_fits(std::string_view name, CollectiveKind kind, int ranks);

// Sets the algorithm of that name, which must fit; `nccl` is resolved for this payload.
void choose_algorithm(Collective& collective, std::string_view name, const Cluster& cluster);

// Returns the kind of path that one of `groups` communicates over, for the priors.
Path path_of(const Cluster& cluster, const Groups& groups);

// Returns the fraction of the nodes' port bandwidth that the fabric's busiest links let pass. Uses
// the messages of the collective's algorithm, or of a ring if that does not fit.
double passing_share(const Cluster& cluster, const Collective& collective);

// Time of a collective that NCCL chose, alone on the network; concurrent groups share their nodes'
// NICs. NCCL's model is applied to the links' own speeds and latencies, not to the rounded ones by
// which NCCL chooses. The time is the minimum over all that NCCL offers there, so it never rises as
// a link gets faster. It is at least the wire's need (footprint.h): NCCL knows no switches above
// its NICs. Results are stored by shape of groups; thread-safe.
class NcclCostModel {
 public:
  explicit NcclCostModel(const Cluster& cluster);  // Requires that `cluster` outlives it.
  ~NcclCostModel();
  NcclCostModel(const NcclCostModel&) = delete;
  NcclCostModel& operator=(const NcclCostModel&) = delete;

  // Returns the time by experience with such networks (library.h): their median, with their spread.
  // Empty for a collective that NCCL did not choose.
  std::optional<CollectiveTime> time(const Collective& collective) const;

 private:
  struct Known;
  const Known& find_known(const Collective& collective) const;
  const Cluster& cluster_;
  mutable std::mutex lock_;
  mutable std::vector<std::unique_ptr<const Known>> known_;
};

}  // namespace syncline::collective
