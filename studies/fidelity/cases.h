// Published cases of jobs: which of two settings is faster, and the peak memory of a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/fidelity/fidelity.h"
#include "studies/rows/interval.h"
#include "studies/rows/report.h"

namespace syncline::measure {

enum class Decision { kRight, kOpen, kWrong };
// Returns "right", "open" or "wrong".
std::string_view word_of(Decision decision);

// Two settings of a job. A ratio is the time of `a` over the time of `b` for the same work.
struct PairCase {
  std::string kind;  // "FSDP or DDP"; the set of a table's rows
  std::string job;
  std::string a, b;
  double said = 1;
  Interval interval;  // 80 %
  double measured = 1;
  bool fitted = false;  // true: a constant was fitted with this pair
  std::string source;

  bool contains_measured() const { return interval.low <= measured && measured <= interval.high; }
  Decision decision() const;
};

// Counts of decisions. The intervals' width is the median of upper end / ratio, in per cent.
struct PairSummary {
  std::size_t right = 0, open = 0, wrong = 0;
  std::optional<IntervalSummary> intervals;
};
PairSummary pair_summary(const std::vector<PairCase>& pairs);

// Reads the pairs of a list (scenarios/measured/pairs.json). Throws InputError naming file and
// place.
std::vector<PairCase> published_pairs(const std::string& file);

// Compares each published row of a study with its baseline at the same point of the sweep, if both
// differ by more than 0.5 %. A pair with a fitted row is fitted.
std::vector<PairCase> pairs_of(const Report& report, const std::string& set);

// Peak memory of a GPU, in bytes.
struct MemoryCase {
  std::string job;
  double said = 0;
  double measured = 0;
  bool fitted = false;
  std::string source;
  std::string left_out = {};  // why it is not predicted; empty: it is

  double error_percent() const { return 100 * (said / measured - 1); }
};

// Reads the cases of a list (scenarios/measured/memory.json).
std::vector<MemoryCase> published_memory(const std::string& file);

}  // namespace syncline::measure
