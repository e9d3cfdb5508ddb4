// What the kernels cost on a GPU, as `make gpu-check` measured it, turned into the device of a
// cluster that the model and the simulation price encode, decode, pack and update with.
//
// The device has one memory rate. For each kind of kernel that streams (dgc_step, pack, update) the
// rate is found at which the model's price equals the measured time; the device's is their harmonic
// mean, so that no kind weighs more than another, and the error of each kind is reported. Cases
// that fit into a cache are left out. sparse_apply scatters its accesses, which a streaming rate
// does not describe: it is listed, not fitted.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.h"
#include "core/units.h"

namespace syncline::calibrate {

struct KernelTiming {
  std::string name;
  std::string kind;
  double priced_bytes = 0;  // the traffic that the model assumes for this work
  Seconds measured = 0;
  bool fitted = false;
};

struct KernelCosts {
  std::string file;
  std::string gpu;
  std::string date;
  std::string git;
  Seconds launch = 0;      // the host issues a kernel
  Seconds kernel_gap = 0;  // from one kernel to the next
  BytesPerSecond memory = 0;
  std::vector<KernelTiming> timings;  // those that ran

  Seconds priced(const KernelTiming& timing) const { return timing.priced_bytes / memory; }
};

// Throws InputError: not such a file, a rehearsal's, or without a streaming kernel.
KernelCosts kernel_costs(const Json& check, const std::string& file);

// The cluster (checked as such) with memory, launch and gap of its device as measured; what else
// the device says stays, and "source" names the measurement. Throws InputError naming `file`.
Json with_kernel_costs(Json cluster, const std::string& file, const KernelCosts& costs);

}  // namespace syncline::calibrate
