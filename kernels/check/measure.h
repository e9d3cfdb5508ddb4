// Results of the kernels' checks, and times of copies (with the kernels' mixes of reads and
// writes), launches and kernels. Each kernel has the bytes that it must move; a fused one also has
// the kernels that it replaces.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syncline::kernels {

struct CheckedCase {
  std::string name;
  bool passed = false;
  std::string detail;  // the error, or the number of wrong elements
};

class Checks {
 public:
  // `large`: sizes that occupy a GPU, too slow for a CPU.
  explicit Checks(bool large) : large_(large) {}

  std::size_t size(std::size_t on_gpu, std::size_t on_cpu) const {
    return large_ ? on_gpu : on_cpu;
  }

  void line(const std::string& name, bool passed, const std::string& detail = {}) {
    cases_.push_back({name, passed, detail});
  }

  const std::vector<CheckedCase>& cases() const { return cases_; }

 private:
  bool large_;
  std::vector<CheckedCase> cases_;
};

// Checks a family of kernels; check_all() checks every one.
void check_blocks(Checks& checks);
void check_dgc(Checks& checks);
void check_pack(Checks& checks);
void check_update(Checks& checks);
void check_layers(Checks& checks);
void check_gemm(Checks& checks);
void check_orthogonalise(Checks& checks);
inline void check_all(Checks& checks) {
  for (const auto check : {check_pack, check_blocks, check_dgc, check_update, check_layers,
                           check_orthogonalise, check_gemm}) {
    check(checks);
  }
}

struct TimeRange {
  double low = 0;
  double median = 0;
  double high = 0;  // a quarter of the runs is below `low`, another above `high`
};

// Time of reading and writing equal arrays at the memory's speed.
struct Ceiling {
  int reads = 1;
  int writes = 1;
  double bytes = 0;
  double seconds = 0;
};

struct TimedCase {
  std::string name;
  std::string kind;  // the kernel's: pack, blocks, update, dgc_step, sparse_apply, layer, product
  double elements = 0;
  double kept = 0;
  double bytes = 0;  // bytes that the kernel must move
  TimeRange seconds = {};
  // The separate kernels that it replaces; 0: none.
  double unfused_bytes = 0;
  TimeRange unfused_seconds = {};
  std::string failed = {};  // the reason why there are no times
};

struct Measurements {
  double submit_seconds = 0;  // the host issues a kernel
  double gap_seconds = 0;     // time between two kernels
  std::vector<Ceiling> ceilings;
  std::vector<TimedCase> cases;
};

Measurements measure_kernels(bool large);

// Returns the JSON of `calibrate kernels`. `rehearsal`: the times are not a GPU's.
std::string as_json(const Measurements& measured, const Checks& checks, const std::string& machine,
                    const std::string& date, const std::string& commit, bool rehearsal);

}  // namespace syncline::kernels
