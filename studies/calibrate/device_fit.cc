#include "studies/calibrate/device_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/codec.h"
#include "formats/input/document.h"
#include "formats/input/read_cluster.h"
#include "formats/input/read_workload.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

constexpr const char* kHead = "wait_us,bytes";

// Returns the workload on a device of 1 FLOP/s: its times are FLOPs.
Workload flops_of(Json json, const std::string& file) {
  if (!json.is_object()) throw InputError(file + ": expected a workload, an object");
  for (const char* key : {"backward_ms", "forward_ms", "update_ms"}) json.erase(key);
  if (json.contains("tensors") && json["tensors"].is_array()) {
    for (Json& tensor : json["tensors"]) {
      if (!tensor.is_object()) continue;
      for (const char* key : {"backward_us", "forward_us"}) tensor.erase(key);
    }
  }
  if (json.contains("operators")) {
    throw InputError(file + ": operators: expected a workload of tensors with their FLOPs");
  }
  Cluster cluster;
  cluster.device.flops = 1;
  Workload workload = input::read_workload(Reader(json, file, ""), cluster);
  if (backward_time(workload) <= 0) {
    throw InputError(file + ": tensors: none has backward_flops, which a rate is reckoned from");
  }
  return workload;
}

constexpr const char* kFormat = "syncline gpu-check 1";
// Four times the L2 cache of the largest GPUs: smaller cases do not measure memory.
constexpr double kStreamedBytes = 256e6;

constexpr Bytes kFp32 = 4;

bool streams(const std::string& kind) {
  return kind == "dgc_step" || kind == "pack" || kind == "update";
}

// Returns the traffic of a case: by its codec for DGC, else the bytes that the kernel must move.
double evaluated_bytes(Reader& row, const std::string& kind, double counted) {
  if (kind != "dgc_step") return counted;
  constexpr std::int64_t kMax = std::int64_t{1} << 40;
  const std::int64_t elements = row.integer("elements", 1, kMax);
  return compress::find_codec("dgc")->encode_traffic(elements, row.integer("kept", 0, elements),
                                                     kFp32);
}

KernelTiming timing_of(Reader& row) {
  KernelTiming timing;
  timing.name = row.text("case");
  timing.kind = row.text("kind");
  const double counted = row.number("counted_bytes", {0, 1e15, true});
  timing.evaluated_bytes = evaluated_bytes(row, timing.kind, counted);
  timing.measured = row.number("us", {0, 1e12, true}) * kMicrosecond;
  timing.fitted = streams(timing.kind) && counted >= kStreamedBytes;
  return timing;
}

// Returns the harmonic mean of the kinds' rates, each by the median of its cases.
BytesPerSecond memory_rate(const std::vector<KernelTiming>& timings) {
  std::map<std::string, std::vector<double>> by_kind;
  for (const auto& timing : timings) {
    if (timing.fitted) by_kind[timing.kind].push_back(timing.measured / timing.evaluated_bytes);
  }
  double sum = 0;
  for (const auto& [kind, costs] : by_kind) sum += median(costs);
  return by_kind.empty() ? 0 : static_cast<double>(by_kind.size()) / sum;
}

}  // namespace

std::vector<cost::MeasuredPoint> trace_from_text(const std::string& name, const std::string& text) {
  std::vector<cost::MeasuredPoint> rows;
  std::istringstream lines(text);
  std::string line;
  bool head = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::string place = name + ": line " + std::to_string(number) + ": ";
    if (!head) {
      if (line != kHead) {
        throw InputError(place + "expected the head \"" + kHead + "\", found \"" +
                         line.substr(0, 40) + "\"");
      }
      head = true;
      continue;
    }
    const auto comma = line.find(',');
    const auto wait = amount_of(std::string_view(line).substr(0, comma));
    std::optional<Bytes> bytes;
    if (comma != std::string::npos) {
      bytes = number_of<Bytes>(std::string_view(line).substr(comma + 1));
    }
    constexpr double kLongest = 1e11;
    if (!wait || *wait > kLongest || !bytes || *bytes <= 0) {
      throw InputError(place + "expected microseconds and bytes, found \"" + line.substr(0, 40) +
                       "\"");
    }
    rows.push_back({*bytes, *wait * kMicrosecond});
  }
  if (rows.empty()) {
    throw InputError(name + ": expected the head \"" + kHead + "\" and a gradient a line");
  }
  return rows;
}

std::vector<cost::MeasuredPoint> read_trace(const std::string& path) {
  return trace_from_text(path, read_text_file(path, "trace"));
}

DeviceFit device_from_trace(const Json& json, const std::string& file,
                            const std::vector<cost::MeasuredPoint>& trace,
                            const std::string& source) {
  const Workload workload = flops_of(json, file);
  if (trace.size() != workload.tensors.size()) {
    throw InputError(source + ": " + std::to_string(trace.size()) + " gradients, " + file +
                     " has " + std::to_string(workload.tensors.size()) + " tensors");
  }
  Seconds pass = 0;
  std::vector<Seconds> waits;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Tensor& tensor = workload.tensors[i];
    if (trace[i].size != tensor.bytes()) {
      throw InputError(source + ": gradient " + std::to_string(i + 1) + " has " +
                       std::to_string(trace[i].size) + " bytes, tensors[" + std::to_string(i) +
                       "] of " + file + " (" + tensor.name + ") has " +
                       std::to_string(tensor.bytes()));
    }
    pass += trace[i].time;
    if (trace[i].time > 0) waits.push_back(trace[i].time);
  }
  if (pass <= 0) throw InputError(source + ": every wait is 0");
  const double flops = backward_time(workload);
  DeviceFit fit{source, workload.name, flops / pass, std::nullopt, 0};
  const auto tenth = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 10);
  std::nth_element(waits.begin(), tenth, waits.end());
  fit.launch = *tenth;
  Seconds measured = 0;
  Seconds shared = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    measured += trace[i].time;
    shared += workload.tensors[i].backward / fit.flops;
    fit.worst_place = std::max(*fit.worst_place, std::abs(shared - measured) / pass);
  }
  return fit;
}

DeviceFit device_from_throughput(const Json& json, const std::string& file,
                                 double samples_per_second) {
  const Workload workload = flops_of(json, file);
  if (workload.forward <= 0) {
    throw InputError(file + ": tensors: none has forward_flops: a throughput is of both passes");
  }
  const double step = static_cast<double>(workload.batch) / samples_per_second;
  std::array<char, 48> source{};
  std::snprintf(source.data(), source.size(), "%.6g samples per second", samples_per_second);
  return {source.data(), workload.name, (workload.forward + backward_time(workload)) / step,
          std::nullopt, std::nullopt};
}

Json device_json(const DeviceFit& fit) {
  Json json = {{"name", "calibrated on " + fit.workload + ": " + fit.source}};
  input::set_device_figure(json, &Device::flops, fit.flops, kFittedDigits);
  if (fit.launch) input::set_device_figure(json, &Device::launch, *fit.launch, kFittedDigits);
  return json;
}

KernelCosts kernel_costs(const Json& check, const std::string& file) {
  if (!check.is_object())
    throw InputError(file + ": expected what make gpu-check wrote, an object");
  Reader reader(check, file, "");
  const std::string format = reader.text("format");
  if (format != kFormat) {
    reader.fail("format", "found '" + format + "', expected '" + kFormat + "'");
  }
  if (reader.boolean_or("rehearsal", false)) {
    reader.fail("rehearsal",
                "the times of a rehearsal are made up: expected a file measured on a GPU");
  }
  KernelCosts costs;
  costs.file = file;
  Reader machine = reader.object("machine");
  costs.gpu = machine.text("name");
  const auto text_at = [&](const char* key) {
    const Json* value = machine.find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  };
  costs.date = text_at("date");
  costs.git = text_at("git");
  if (reader.require("launch").is_null()) {
    reader.fail("launch", "the launch was not measured: expected submit_us and gap_us");
  }
  Reader launch = reader.object("launch");
  costs.launch = launch.number("submit_us", {0, 1e6}) * kMicrosecond;
  costs.kernel_gap = launch.number("gap_us", {0, 1e6}) * kMicrosecond;
  for (auto& row : reader.objects("timings")) {
    if (!row.has("failed")) costs.timings.push_back(timing_of(row));
  }
  costs.memory = memory_rate(costs.timings);
  if (costs.memory == 0) {
    reader.fail("timings",
                "expected a dgc_step, pack or update of 256 MB or more that was measured");
  }
  return costs;
}

Json with_kernel_costs(Json cluster, const std::string& file, const KernelCosts& costs) {
  if (!cluster.is_object()) throw InputError(file + ": expected a cluster, an object");
  // A node given by its name has its own source.
  std::string source = input::read_cluster(Reader(cluster, file, "")).source;
  Json& device = cluster["device"];
  if (device.is_string()) device = Json{{"base", device}};  // a device by its name
  if (!device.is_object()) device = Json::object();
  if (!device.contains("name")) device["name"] = costs.gpu;
  input::set_device_figure(device, &Device::memory, costs.memory, kFittedDigits);
  input::set_device_figure(device, &Device::launch, costs.launch, kFittedDigits);
  input::set_device_figure(device, &Device::kernel_gap, costs.kernel_gap, kFittedDigits);
  if (!source.empty()) source += "; ";
  source += "memory, launch and gap of the device measured by make gpu-check on " + costs.gpu;
  if (!costs.date.empty()) source += ", " + costs.date;
  if (!costs.git.empty()) source += ", commit " + costs.git.substr(0, 12);
  cluster["source"] = source;
  return cluster;
}

}  // namespace syncline::calibrate
