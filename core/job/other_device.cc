#include "core/job/other_device.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/hardware/device.h"
#include "core/hardware/reached.h"
#include "core/measure/doubt.h"

namespace syncline::job {
namespace {

// As rated.
struct Rates {
  double flops = 0;
  BytesPerSecond memory = 0;
};

const hardware::KnownDevice* known_by(const std::string& name) {
  for (const hardware::KnownDevice& device : hardware::devices()) {
    if (device.name == name || device.summary == name) return &device;
  }
  return hardware::recognise_device(name);
}

Rates rates_of(const hardware::KnownDevice& device, bool half) {
  return {half ? device.half_flops : device.flops, device.memory};
}

// Of a device that a cluster describes, by its name or by its own figures.
std::optional<Rates> rates_of(const Device& device, bool half) {
  if (const auto* known = known_by(device.name)) return rates_of(*known, half);
  if (device.flops == 0 || device.memory == 0) return std::nullopt;
  const bool own = half && device.half_flops > 0;
  return Rates{own ? device.half_flops / hardware::kReachedHalfFlops
                   : device.flops / hardware::kReachedFlops,
               device.memory / hardware::kReachedMemory};
}

// The factor, and the standard deviation of its logarithm.
struct Rescaling {
  double flops = 1;
  double memory = 1;
  double factor = 1;
  double spread = 0;
};

// Work is bound by either rate, and while nothing runs by none: the interval holds all of these. Of
// prices from data sheets four in five are within 20 % (core/hardware/reached.h): it is no
// narrower.
Rescaling rescaling(const Rates& from, const Rates& to, double idle) {
  constexpr double kWithin = 1.2;
  Rescaling rescaling{from.flops / to.flops, from.memory / to.memory};
  rescaling.factor = std::sqrt(rescaling.flops * rescaling.memory);
  double reach = std::log(kWithin);
  for (const double ratio : {rescaling.flops, rescaling.memory}) {
    for (const double bound : {ratio, idle + (1 - idle) * ratio}) {
      reach = std::max(reach, std::fabs(std::log(bound / rescaling.factor)));
    }
  }
  rescaling.spread = std::min(reach / measure::kHeldDeviations, 1.0);
  return rescaling;
}

void scale(Json& object, const char* key, double factor) {
  constexpr double kDigits = 1e6;
  if (!object.contains(key)) return;
  object[key] = std::round(object[key].get<double>() * factor * kDigits) / kDigits;
}

// Of the copies the kernels alone are the device's.
void apply(const Rescaling& rescaling, const Step& step, Json& workload) {
  const Seconds copies = step.copy_in + step.copy_out;
  const double own = copies > 0 ? std::min(1.0, step.copy_kernels / copies) : 0;
  const double copying = 1 + own * (rescaling.memory - 1);
  for (Json& tensor : workload["tensors"]) {
    scale(tensor, "backward_us", rescaling.factor);
    scale(tensor, "copy_in_us", copying);
    scale(tensor, "copy_out_us", copying);
  }
  scale(workload, "copy_kernels_ms", rescaling.memory);
  scale(workload, "forward_ms", rescaling.factor);
  scale(workload, "update_ms", rescaling.factor);
  constexpr double kThousand = 1000;
  workload["time_spread"] = std::round(rescaling.spread * kThousand) / kThousand;
}

std::string sentence(const Rescaling& rescaling, const std::string& from, const std::string& to,
                     bool half) {
  std::ostringstream text;
  text.precision(3);
  const double reach = std::exp(measure::kHeldDeviations * rescaling.spread);
  text << "the times are of " << from << ", the cluster has " << to
       << ": computation is rescaled by " << rescaling.factor
       << " (80 %: " << rescaling.factor / reach << " to " << rescaling.factor * reach
       << "), as FLOPs in " << (half ? "half precision" : "fp32") << " take " << rescaling.flops
       << " and memory " << rescaling.memory
       << " times as long there; what the host takes stays. The measured step is compared with no "
          "row. A trace of that device is more accurate";
  return text.str();
}

}  // namespace

bool rescale_times(const Observed& observed, const Step& step, const Device& device, Json& workload,
                   std::vector<std::string>& assumed) {
  const hardware::KnownDevice* seen = known_by(observed.device);
  const hardware::KnownDevice* there = known_by(device.name);
  const bool half = !step.gradients.empty() && size_of(step.gradients.front().dtype) == 2;
  const bool same = observed.device == device.name || (seen != nullptr && seen == there);
  if (same && !observed.device.empty()) return false;
  const std::optional<Rates> to = rates_of(device, half);
  if (observed.device.empty() || (device.name.empty() && !to)) {
    assumed.push_back((observed.device.empty() ? "the file does not tell on which device it ran"
                                               : "the cluster names no device") +
                      std::string(": computation takes what it took" +
                                  (observed.device.empty() ? "" : " on " + observed.device)));
    return false;
  }
  const std::string there_name = device.name.empty() ? "a device without a name" : device.name;
  if (seen == nullptr || !to) {
    throw InputError(observed.file + ": its times are of " + observed.device +
                     ", the cluster has " + there_name +
                     ": they cannot be rescaled, as the rates of " +
                     (seen == nullptr ? observed.device : there_name) +
                     " are not known; give tflops and memory_gbytes_per_s of the cluster's device "
                     "and a trace of a device that `syncline list` names, or no cluster.device");
  }
  const Rescaling found = rescaling(rates_of(*seen, half), *to, step.idle / step.gpu);
  if (found.flops == 1 && found.memory == 1) return false;
  apply(found, step, workload);
  assumed.push_back(sentence(found, observed.device, there_name, half));
  return true;
}

}  // namespace syncline::job
