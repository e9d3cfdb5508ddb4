#include "core/calibrate/kernel_costs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/calibrate/fitted_digits.h"
#include "core/compress/codec.h"
#include "core/error.h"
#include "core/input/parts.h"
#include "core/input/scenario_json.h"
#include "core/json/reader.h"

namespace syncline::calibrate {
namespace {

constexpr const char* kFormat = "syncline gpu-check 1";
// Four times the L2 cache of the largest GPUs: below, memory is not what is measured.
constexpr double kStreamedBytes = 256e6;

constexpr Bytes kFp32 = 4;

// A device is read by people.

bool streams(const std::string& kind) {
  return kind == "dgc_step" || kind == "pack" || kind == "update";
}

// DGC is priced by its codec, everything else by the bytes that the kernel has to move.
double priced_bytes(Reader& row, const std::string& kind, double counted) {
  if (kind != "dgc_step") return counted;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::int64_t elements = row.integer("elements", 1, kMost);
  return compress::find_codec("dgc")->encode_traffic(elements, row.integer("kept", 0, elements),
                                                     kFp32);
}

KernelTiming timing_of(Reader& row) {
  KernelTiming timing;
  timing.name = row.text("case");
  timing.kind = row.text("kind");
  const double counted = row.number("counted_bytes", {0, 1e15, true});
  timing.priced_bytes = priced_bytes(row, timing.kind, counted);
  timing.measured = row.number("us", {0, 1e12, true}) * kMicrosecond;
  timing.fitted = streams(timing.kind) && counted >= kStreamedBytes;
  return timing;
}

// Seconds a byte of each kind: the median of its cases.
BytesPerSecond memory_rate(const std::vector<KernelTiming>& timings) {
  std::map<std::string, std::vector<double>> by_kind;
  for (const auto& timing : timings) {
    if (timing.fitted) by_kind[timing.kind].push_back(timing.measured / timing.priced_bytes);
  }
  double sum = 0;
  for (auto& [kind, costs] : by_kind) {
    std::sort(costs.begin(), costs.end());
    const std::size_t middle = costs.size() / 2;
    sum += costs.size() % 2 == 1 ? costs[middle] : (costs[middle - 1] + costs[middle]) / 2;
  }
  return by_kind.empty() ? 0 : static_cast<double>(by_kind.size()) / sum;
}

}  // namespace

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
  // A node by its name brings its own source.
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
