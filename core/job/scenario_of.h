// From what a job left behind to a scenario that `run` and `tune` take as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/cost/measured_table.h"
#include "core/job/observed.h"
#include "core/json/json.h"
#include "core/scenario/cluster.h"
#include "core/scenario/workload.h"

namespace syncline::job {

// Which rule put a job's gradients into the buckets that were seen.

// Gradients by bucket, in the order of the exchanges that carried them; collectives that carry
// none (a loss averaged, statistics kept alike) are left out. Where the file does not tell which
// gradients a collective carried, sizes do: those that were ready next and add up to it.
std::vector<std::vector<int>> seen_buckets(const Step& step);

struct BucketRule {
  bool explains = false;  // the rule makes the very buckets that were seen
  std::string words;      // what it is, or why none was found
  Json strategy;          // the strategy that the job ran with, without a name; null: no buckets
  std::string torch;      // the version, as it was told or as the buckets show; empty: unknown
  // Rules that were tried and make others, with how many: "torch's default makes 6 buckets".
  std::vector<std::string> others;
};

// DistributedDataParallel's rules by torch's version and order, then buckets that close before they
// would exceed a limit (DeepSpeed, Horovod). What none explains becomes explicit groups.
BucketRule bucket_rule(const Observed& observed, const Step& step);

struct ImportOptions {
  // The cluster as a scenario has it, given by the user; nothing: what the files tell, the rest
  // assumed.
  std::optional<Json> cluster;
  std::int64_t batch = 0;  // samples a rank and step, which no file tells; 0: nobody said
};

struct Imported {
  Json scenario;
  BucketRule rule;
  std::vector<std::string> assumed;  // what no file told, one sentence each
};

// Of a job that was seen, the step that is typical of its first rank: its gradients in ready order
// with their waits and copies, the strategy that it ran with (and the same with gradients as views,
// where copies were seen), its GPU time as a published row. Of a model file, its workload. Throws
// InputError where no gradient is known.
Imported scenario_of(const Observed& observed, const ImportOptions& options);

// The name of the strategy that the job ran with.
inline constexpr const char* kAsItRan = "as it ran";

// The workload of a job that was seen: its gradients in ready order, with their times.

// The step with what its buckets carry beside the gradients that were told, as gradients of their
// own. Says in `assumed` where the two sums differ.
Step with_all_that_is_sent(Step step, std::vector<std::string>& assumed);

// `batch`: samples a rank and step; 0: nobody said.
Workload workload_of(const Observed& observed, const Step& step, std::int64_t batch,
                     std::vector<std::string>& assumed);

// Rescales the workload's times from the job's device to the cluster's, by the square root of the
// product of the ratios of FLOPs and memory bandwidth, and sets its time_spread to what lies
// between the two. True: it did, as they differ. Says in `assumed` what it did, or that nothing
// names a device. Throws InputError where the devices differ and the rates of one are not known.
bool rescale_times(const Observed& observed, const Step& step, const Device& device,
                   Workload& workload, std::vector<std::string>& assumed);

// The workload and the strategy of a job that is cut into groups of ranks (Observed::whole): its
// stages as they were measured, those that were not as the first rank's.

// Puts layout, tensors and times of one micro-batch into `workload`. What no file told goes to
// `assumed`, one sentence each.
void cut_as_observed(const Observed& observed, Workload& workload,
                     std::vector<std::string>& assumed);

// The strategy that it ran with, in the workload's tensors, and what it is in words.
BucketRule whole_rule(const Observed& observed);

// The layout in words: "tensor 2 x pipeline 2 x data 2, 4 micro-batches".
std::string layout_text(const Whole& whole, int world_size);

// The cluster that a job ran on, as far as its files tell.

// As a scenario has it: counts from the number of ranks and the devices that a host showed, links
// from the node in which such a device usually stands. What is assumed goes to `assumed`, one
// sentence each.
Json cluster_of(const Observed& observed, std::vector<std::string>& assumed);

// The collectives of an imported job as measured tables, for calibrate::calibration_of: a
// table for each kind of collective and count of ranks, a row a size: the median over the steps
// (and over collectives of one size within a step) of the least time over the ranks, which is what
// a collective takes once all are there. The rows carry how far the median may be off.
//
// Sizes are counted as nccl-tests does: the larger of what a rank gives and gets.
//
// Empty where nothing can be measured: of fewer than two ranks (one rank's durations hold its
// waiting for the others), without times, or where the ranks of a node are unknown. Left out are
// kinds that a plan cannot hold, collectives without a time, groups of which it is not known how
// they lie on the nodes (smaller than the job, on several nodes), and those of more ranks than were
// read, whose last one may not be among them.
std::vector<cost::MeasuredTable> tables_of(const Observed& observed);

}  // namespace syncline::job
