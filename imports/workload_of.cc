#include "imports/workload_of.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "formats/text/digits.h"
#include "studies/rows/uncertainty.h"

namespace syncline::job {
namespace {

// Rounds to nanoseconds, the resolution of clocks.
Seconds nanoseconds(Seconds seconds) { return std::round(seconds * 1e9) / 1e9; }

Tensor tensor_of(const Gradient& gradient, std::size_t place) {
  Tensor tensor;
  tensor.name = gradient.name.empty() ? "gradient " + std::to_string(place) : gradient.name;
  tensor.shape = gradient.shape;
  tensor.elements = gradient.elements;
  tensor.dtype = gradient.dtype;
  tensor.backward = nanoseconds(gradient.wait);
  tensor.copy_in = nanoseconds(gradient.copy_in);
  tensor.copy_out = nanoseconds(gradient.copy_out);
  return tensor;
}

// An optimizer and the number of values that it keeps for each parameter.
struct KnownOptimizer {
  std::string_view name;  // of its class, without Fused, Distributed, CPU and the like around it
  int states;
};
constexpr KnownOptimizer kOptimizers[] = {{"SGD", 1},      {"RMSprop", 1}, {"Adagrad", 1},
                                          {"Lion", 1},     {"LAMB", 2},    {"Lamb", 2},
                                          {"Adadelta", 2}, {"Adam", 2}};

const KnownOptimizer* known_optimizer(std::string_view name) {
  const auto found = std::ranges::find_if(kOptimizers, [&](const KnownOptimizer& known) {
    const bool narrow = name.find("8bit") != std::string_view::npos;
    return !narrow && name.find(known.name) != std::string_view::npos;
  });
  return found == std::end(kOptimizers) ? nullptr : found;
}

// Sets the optimizer; of several, the one that keeps most. Traces do not show SGD's momentum.
void add_optimizer(const Observed& observed, Workload& workload,
                   std::vector<std::string>& assumed) {
  const KnownOptimizer* most = nullptr;
  for (const std::string& name : observed.optimizers) {
    const KnownOptimizer* known = known_optimizer(name);
    if (known != nullptr && (most == nullptr || known->states > most->states)) most = known;
  }
  if (most == nullptr) return;
  workload.optimizer_given = true;
  workload.optimizer_states = most->states;
  if (most->name != "SGD") return;
  assumed.push_back(
      "the optimizer is SGD, taken with a momentum: the file does not tell whether it "
      "has one ('workload.optimizer': 'sgd' says that it has none)");
}

std::string mebibytes_text(Bytes bytes) {
  return short_text(static_cast<double>(bytes) / kMiB, 4) + " MiB";
}

// Adds a gradient, ready with the last of its bucket, so that the bucket has the size sent.
void add_to_bucket(Step& step, ObservedExchange& exchange, std::int64_t elements,
                   std::string name) {
  const int place = *std::max_element(exchange.gradients.begin(), exchange.gradients.end());
  const auto last = step.gradients.begin() + place;
  Gradient rest;
  rest.name = std::move(name);
  rest.elements = elements;
  rest.dtype = last->dtype;
  step.gradients.insert(last, rest);
  for (ObservedExchange& other : step.exchanges) {
    for (int& gradient : other.gradients) gradient += gradient >= place ? 1 : 0;
  }
  exchange.gradients.push_back(place);
  std::sort(exchange.gradients.begin(), exchange.gradients.end());
}

// Rated speeds of a device.
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

// Returns rates of a cluster's device, by its name or by its own figures.
std::optional<Rates> rates_of(const Device& device, bool half) {
  if (const auto* known = known_by(device.name)) return rates_of(*known, half);
  if (device.flops == 0 || device.memory == 0) return std::nullopt;
  const bool own = half && device.half_flops > 0;
  return Rates{own ? device.half_flops / hardware::reached_half_flops(device.compute_capability)
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

// Returns the factor. Work is bound by either rate, and idle time by none: the interval covers all
// of these. Four in five costs from data sheets are within 20 % (catalogue/hardware/device.h): the
// interval is no narrower.
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

// Rescales times; of the copies, only the kernels are the device's work.
void apply(const Rescaling& rescaling, const Step& step, Workload& workload) {
  constexpr double kPico = 1e12, kNano = 1e9;  // finer than any clock
  const auto scale = [](Seconds& time, double factor, double digits) {
    time = std::round(time * factor * digits) / digits;
  };
  const Seconds copies = step.copy_in + step.copy_out;
  const double own = copies > 0 ? std::min(1.0, step.copy_kernels / copies) : 0;
  const double copying = 1 + own * (rescaling.memory - 1);
  for (Tensor& tensor : workload.tensors) {
    scale(tensor.backward, rescaling.factor, kPico);
    scale(tensor.copy_in, copying, kPico);
    scale(tensor.copy_out, copying, kPico);
  }
  if (workload.copy_kernels > 0) scale(workload.copy_kernels, rescaling.memory, kNano);
  scale(workload.forward, rescaling.factor, kNano);
  scale(workload.update, rescaling.factor, kNano);
  constexpr double kThousand = 1000;
  workload.time_spread = std::round(rescaling.spread * kThousand) / kThousand;
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

// Adds the content of buckets beyond the known gradients. Notes both sums if they differ.
Step with_all_that_is_sent(Step step, std::vector<std::string>& assumed) {
  const Bytes listed = gradient_bytes(step);
  Bytes rest = 0;
  Bytes carried = 0;
  const std::size_t gradients = step.gradients.size();
  int added = 0;
  for (ObservedExchange& exchange : step.exchanges) {
    if (exchange.gradients.empty()) continue;
    std::int64_t missing = exchange.elements;
    for (const int place : exchange.gradients) {
      const Gradient& gradient = step.gradients[static_cast<std::size_t>(place)];
      missing -= gradient.elements;
      carried += gradient.bytes();
    }
    if (missing <= 0) continue;
    rest +=
        missing * size_of(step.gradients[static_cast<std::size_t>(exchange.gradients[0])].dtype);
    add_to_bucket(step, exchange, missing, "sent without a gradient " + std::to_string(++added));
  }
  const auto share = [](Bytes part, Bytes all) {
    return std::to_string(
               std::lround(100.0 * static_cast<double>(part) / static_cast<double>(all))) +
           " %";
  };
  if (rest > 0) {
    assumed.push_back("the buckets carry " + mebibytes_text(carried + rest) + ", the " +
                      std::to_string(gradients) + " the gradients given add up to " +
                      mebibytes_text(listed) + ": the other " + mebibytes_text(rest) + " (" +
                      share(rest, carried + rest) +
                      " of the traffic) travel too, as 'sent without a gradient' (parameters that "
                      "gave none, or one that the file does not tell)");
  }
  if (carried > 0 && carried < listed) {
    assumed.push_back("gradients of " + mebibytes_text(listed - carried) + " of " +
                      mebibytes_text(listed) + " (" + share(listed - carried, listed) +
                      ") are in no collective that was seen to carry gradients");
  }
  return step;
}

Workload workload_of(const Observed& observed, const Step& step, std::int64_t batch,
                     std::vector<std::string>& assumed) {
  Workload workload;
  workload.name = observed.name;
  workload.source = source_of(observed, step);
  workload.batch_given = batch > 0;
  if (workload.batch_given) workload.batch = batch;
  workload.buffer_broadcast = nanoseconds(step.broadcast);
  workload.forward = nanoseconds(step.forward);
  workload.update = nanoseconds(step.update);
  workload.host_gap = nanoseconds(step.host_gap + step.between);
  for (const Gradient& gradient : step.gradients) {
    workload.tensors.push_back(tensor_of(gradient, workload.tensors.size()));
    workload.copies_measured |= gradient.copy_in > 0 || gradient.copy_out > 0;
  }
  if (workload.copies_measured && step.copy_kernels > 0) {
    workload.copy_kernels = nanoseconds(step.copy_kernels);
  }
  add_optimizer(observed, workload, assumed);
  return workload;
}

bool rescale_times(const Observed& observed, const Step& step, const Device& device,
                   Workload& workload, std::vector<std::string>& assumed) {
  const hardware::KnownDevice* seen = known_by(observed.device);
  const hardware::KnownDevice* there = known_by(device.name);
  const bool half = !step.gradients.empty() && size_of(step.gradients.front().dtype) == 2;
  const bool same = observed.device == device.name || (seen != nullptr && seen == there);
  if (same && !observed.device.empty()) return false;
  const std::optional<Rates> to = rates_of(device, half);
  if (observed.device.empty() || (device.name.empty() && !to)) {
    assumed.push_back((observed.device.empty() ? "the file does not tell on which device it ran"
                                               : "the cluster names no device") +
                      std::string(", so computation takes as long as recorded" +
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
  const Rescaling found =
      rescaling(rates_of(*seen, half), *to, step.idle / (step.gpu - step.between));
  if (found.flops == 1 && found.memory == 1) return false;
  apply(found, step, workload);
  assumed.push_back(sentence(found, observed.device, there_name, half));
  return true;
}

}  // namespace syncline::job
