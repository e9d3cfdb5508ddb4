// A cluster's device from what its user measured on a single GPU: one model's backward pass,
// gradient by gradient, its throughput, or the kernels.
// A model's rate is FLOPs over time, all of the model's work in it: memory-bound layers, launches
// and gaps. It holds for that model alone: on one V100 the traces of three convolutional nets come
// to 8 to 18 TFLOP/s.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cost/measured_table.h"
#include "formats/json/reader.h"
#include "formats/scenario/scenario.h"

namespace syncline::calibrate {

// Significant digits of a fitted figure in what is written.
inline constexpr int kFittedDigits = 5;

// The gradients of a measured backward pass, in the order in which they became ready: their sizes,
// and the time since the gradient before. CSV: lines of '#' are warnings, then the head
// "wait_us,bytes", then a gradient a line. Throws InputError naming the line.
std::vector<cost::MeasuredPoint> read_trace(const std::string& path);
std::vector<cost::MeasuredPoint> trace_from_text(const std::string& name, const std::string& text);

struct DeviceFit {
  std::string source;  // the trace, or "250 samples per second"
  std::string workload;
  double flops = 0;  // reached, floating-point operations per second
  // Traces: the tenth part of the gradients that were waited for at all came within this of the one
  // before. A gradient takes a kernel at least: the launch costs no more.
  std::optional<Seconds> launch;
  // Traces: how far a gradient of the model is from the trace's when the pass is shared out by
  // FLOPs, at worst, as a share of the pass.
  std::optional<double> worst_place;
};

// The workload as its JSON stands in a file; times in it are not looked at, only its FLOPs. Throws
// InputError where it has none, or its gradients are not the trace's.
DeviceFit device_from_trace(const Json& workload, const std::string& file,
                            const std::vector<cost::MeasuredPoint>& trace,
                            const std::string& source);
// Forward and backward pass; requires a throughput above 0.
DeviceFit device_from_throughput(const Json& workload, const std::string& file,
                                 double samples_per_second);

// The object "device" of a cluster.
Json device_json(const DeviceFit& fit);

// What the kernels cost on a GPU, as `make gpu-check` measured it, turned into the device of a
// cluster that the model and the simulation cost encode, decode, pack and update with.
//
// The device has one memory rate. For each kind of kernel that streams (dgc_step, pack, update) the
// rate is found at which the model's cost equals the measured time; the device's is their harmonic
// mean, so that no kind weighs more than another, and the error of each kind is reported. Cases
// that fit into a cache are left out. sparse_apply scatters its accesses, which a streaming rate
// does not describe: it is listed, not fitted.

struct KernelTiming {
  std::string name;
  std::string kind;
  double evaluated_bytes = 0;  // the traffic that the model assumes for this work
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

  Seconds evaluated(const KernelTiming& timing) const { return timing.evaluated_bytes / memory; }
};

// Throws InputError: not such a file, a rehearsal's, or without a streaming kernel.
KernelCosts kernel_costs(const Json& check, const std::string& file);

// The cluster (checked as such) with memory, launch and gap of its device as measured; what else
// the device says stays, and "source" names the measurement. Throws InputError naming `file`.
Json with_kernel_costs(Json cluster, const std::string& file, const KernelCosts& costs);

}  // namespace syncline::calibrate
