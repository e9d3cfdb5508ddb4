// What a device reaches on one model, from what its user measured on a single GPU: the backward
// pass, gradient by gradient, or just the throughput.
//
// The rate is FLOPs over time, all of the model's work in it: memory-bound layers, launches and
// gaps. It holds for that model alone: on one V100 the traces of three convolutional nets come to 8
// to 18 TFLOP/s.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/reader.h"
#include "core/units.h"

namespace syncline::calibrate {

// One gradient of a measured backward pass, in the order in which they became ready.
struct TraceRow {
  Seconds wait = 0;  // since the gradient before
  Bytes bytes = 0;
};

// CSV: lines of '#' are remarks, then the head "wait_us,bytes", then a gradient a line. Throws
// InputError naming the line.
std::vector<TraceRow> read_trace(const std::string& path);
std::vector<TraceRow> trace_from_text(const std::string& name, const std::string& text);

struct DeviceFit {
  std::string source;  // the trace, or "250 samples a second"
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
                            const std::vector<TraceRow>& trace, const std::string& source);
// Forward and backward pass; requires a throughput above 0.
DeviceFit device_from_throughput(const Json& workload, const std::string& file,
                                 double samples_per_second);

// The object "device" of a cluster.
Json device_json(const DeviceFit& fit);

}  // namespace syncline::calibrate
