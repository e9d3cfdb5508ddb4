// What the kernels take: copies at the mixes of reads and writes that the kernels have, launches,
// and each kernel beside the bytes that it must move. Fused kernels beside what they replace.
#pragma once

#include <string>
#include <vector>

#include "kernels/check/check.h"

namespace syncline::kernels {

struct Interval {
  double low = 0;
  double median = 0;
  double high = 0;  // quarters of the runs are below `low` and above `high`
};

// Reads and writes of equal arrays, as fast as memory gives them.
struct Ceiling {
  int reads = 1;
  int writes = 1;
  double bytes = 0;
  double seconds = 0;
};

struct TimedCase {
  std::string name;
  std::string kind;  // of the kernel: pack, update, dgc_step, sparse_apply, layer, product
  double elements = 0;
  double kept = 0;
  double bytes = 0;  // that it must move
  Interval seconds = {};
  // What it replaces, as kernels of their own; 0: nothing.
  double unfused_bytes = 0;
  Interval unfused_seconds = {};
  std::string failed = {};  // why there are no times
};

struct Measurements {
  double submit_seconds = 0;  // the host issues a kernel
  double gap_seconds = 0;     // from one kernel to the next
  std::vector<Ceiling> ceilings;
  std::vector<TimedCase> cases;
};

Measurements measure_kernels(bool large);

// The JSON of `calibrate --kernels`. `rehearsal`: the times are not a GPU's.
std::string as_json(const Measurements& measured, const Checks& checks, const std::string& machine,
                    const std::string& date, const std::string& commit, bool rehearsal);

}  // namespace syncline::kernels
