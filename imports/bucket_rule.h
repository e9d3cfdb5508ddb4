// The rule that put a job's gradients into the buckets that were seen.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "imports/observed.h"

namespace syncline::job {

// Lists gradients by bucket, in the order of the exchanges that carried them; collectives that
// carry none (a loss averaged, statistics kept alike) are left out. Where the file does not tell
// which gradients a collective carried, sizes do: those that were ready next and add up to it.
std::vector<std::vector<int>> seen_buckets(const Step& step);

struct BucketRule {
  bool explains = false;  // the rule makes the very buckets that were seen
  std::string words;      // what it is, or why none was found
  Json strategy;          // the strategy that the job ran with, without a name; null: no buckets
  std::string torch;      // the version, as it was told or as the buckets show; empty: unknown
  // Rules that were tried and make others, with how many: "torch's default makes 6 buckets".
  std::vector<std::string> others;
};

// Tries DistributedDataParallel's rules by torch's version and order, then buckets that close
// before they would exceed a limit (DeepSpeed, Horovod). What none explains becomes explicit
// groups.
BucketRule bucket_rule(const Observed& observed, const Step& step);

}  // namespace syncline::job
