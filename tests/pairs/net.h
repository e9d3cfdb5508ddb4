// The net over pairs of capabilities: every fragment alone, every two and some three of them, over
// all shapes, each held against the laws in a process that may crash or hang without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/pairs/fragments.h"
#include "tests/pairs/laws.h"

namespace syncline::pairs {

struct Case {
  Shape shape;
  Chosen chosen;
};

// Fragments alone and with each other, but for values of one knob.
std::vector<Case> pair_cases();
// Drawn: `count` of so many fragments each.
std::vector<Case> drawn_cases(std::size_t count, std::size_t fragments, std::uint64_t seed);

// What came of a case.
struct Result {
  Case of;
  Verdict verdict;
};

struct NetOptions {
  int jobs = 1;
  unsigned seconds_each = 60;  // what takes longer hangs
  // Each so manieth case by its number; 0: none.
  std::size_t in_steps_every = 10;
  std::size_t tuned_every = 40;
  std::function<Verdict(const Json&, const Asked&)> judge = pairs::judge;
};

// One for each case, in order. A crash is a fault of the law "ends".
std::vector<Result> judged(const std::vector<Case>& cases, const NetOptions& options);

// A refusal without what is of this scenario alone: numbers, names in quotes, the file.
std::string kind_of_refusal(const std::string& text);

// Figures, kinds of refusals, and faults by law with the fragments that stand in most of them.
std::string report_of(const std::vector<Result>& results);

}  // namespace syncline::pairs
