// The rule that explains the buckets of an observed job.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "imports/observed.h"

namespace syncline::job {

// Returns gradients by bucket, in the order of the exchanges that carried them, without collectives
// that carry none (an averaged loss, synchronised statistics). If the file does not name a
// collective's gradients, its size does: the next ready ones that add up to it.
std::vector<std::vector<int>> seen_buckets(const Step& step);

struct BucketRule {
  bool explains = false;  // the rule makes exactly the observed buckets
  std::string words;      // description of the rule, or reason why none was found
  Json strategy;          // strategy of the job, without a name; null: no buckets
  std::string torch;      // torch's version as given or implied by the buckets; empty: unknown
  // Rules that make other buckets, with their numbers: "torch's default makes 6 buckets".
  std::vector<std::string> others;
};

// Tries DistributedDataParallel's rules by torch's version and order, then buckets that close
// before they would exceed a limit (DeepSpeed, Horovod). If no rule fits, returns explicit groups.
BucketRule bucket_rule(const Observed& observed, const Step& step);

}  // namespace syncline::job
