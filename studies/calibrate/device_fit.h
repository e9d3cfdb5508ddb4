// Fits a cluster's device to measurements on a single GPU: one model's backward pass, gradient by
// gradient, its throughput, or the kernels.
// A model's rate is its FLOPs / its time, including memory-bound layers, launches and gaps. The
// rate holds only for that model: on one V100, traces of three convolutional nets give 8 to 18
// TFLOP/s.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cost/measured_table.h"
#include "formats/json/reader.h"
#include "formats/scenario/scenario.h"

namespace syncline::calibrate {

// Significant digits of a fitted figure in the output.
inline constexpr int kFittedDigits = 5;

// Reads the gradients of a measured backward pass, in order of readiness: size and time since the
// previous one. CSV: '#' lines are warnings, then the head "wait_us,bytes", then one gradient per
// line. Throws InputError naming the line.
std::vector<cost::MeasuredPoint> read_trace(const std::string& path);
std::vector<cost::MeasuredPoint> trace_from_text(const std::string& name, const std::string& text);

struct DeviceFit {
  std::string source;  // the trace, or "250 samples per second"
  std::string workload;
  double flops = 0;  // floating-point operations per second reached
  // Traces: a tenth of the gradients with a wait arrived within this time of the previous one. Each
  // gradient takes at least one kernel, so a launch costs no more.
  std::optional<Seconds> launch;
  // Traces: largest error of a gradient's place if the pass is divided by FLOPs, as a share of the
  // pass.
  std::optional<double> worst_place;
};

// Fits the device to a trace and the FLOPs of a workload, given as JSON; its times are ignored.
// Throws InputError if the workload has no FLOPs or its gradients differ from the trace's.
DeviceFit device_from_trace(const Json& workload, const std::string& file,
                            const std::vector<cost::MeasuredPoint>& trace,
                            const std::string& source);
// Fits the device to the throughput of forward and backward pass. Requires a throughput above 0.
DeviceFit device_from_throughput(const Json& workload, const std::string& file,
                                 double samples_per_second);

// Returns the object "device" of a cluster.
Json device_json(const DeviceFit& fit);

// Fits the device of a cluster to the costs of kernels on a GPU, as `make gpu-check` measured them.
// Model and simulation use it for the cost of encode, decode, pack and update.
//
// The device has one memory rate. Each kind of streaming kernel (dgc_step, pack, update) gets the
// rate at which the model's cost equals the measured time. The device's rate is their harmonic
// mean, so that all kinds weigh the same; the error of each kind is reported. Cases that fit into a
// cache are skipped. sparse_apply scatters its accesses, so it is listed, not fitted.

struct KernelTiming {
  std::string name;
  std::string kind;
  double evaluated_bytes = 0;  // traffic that the model assumes for this work
  Seconds measured = 0;
  bool fitted = false;
};

struct KernelCosts {
  std::string file;
  std::string gpu;
  std::string date;
  std::string git;
  Seconds launch = 0;      // time in which the host issues a kernel
  Seconds kernel_gap = 0;  // time from one kernel to the next
  BytesPerSecond memory = 0;
  std::vector<KernelTiming> timings;  // kernels that ran

  Seconds evaluated_seconds(const KernelTiming& timing) const {
    return timing.evaluated_bytes / memory;
  }
};

// Reads costs. Throws InputError for another file, a rehearsal's, or one without streaming kernels.
KernelCosts kernel_costs(const Json& check, const std::string& file);

// Returns the cluster, validated, with measured memory, launch and gap of its device and a
// "source". Other keys of the device are kept. Throws InputError naming `file`.
Json with_kernel_costs(Json cluster, const std::string& file, const KernelCosts& costs);

}  // namespace syncline::calibrate
