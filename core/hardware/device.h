// Accelerators by name: what their data sheets promise. What training reaches of it is another
// matter (reached.h).
#pragma once

#include <span>
#include <string_view>

#include "core/units.h"

namespace syncline::hardware {

struct KnownDevice {
  std::string_view name;     // in a scenario: "h100-sxm"
  std::string_view summary;  // "NVIDIA H100 SXM5 80 GB"
  // Rated rates in floating-point operations per second, dense (data sheets also print twice as
  // many "with sparsity", which training does not have).
  double flops = 0;            // fp32 outside tensor cores
  double half_flops = 0;       // fp16 products, accumulated in fp32
  BytesPerSecond memory = 0;   // rated rate
  Bytes memory_size = 0;       // as sold
  int compute_capability = 0;  // 80 for an A100; 0: not NVIDIA's
  bool bf16 = true;            // products in bf16 are as fast as in fp16; false: as in fp32
  std::string_view words;      // all of them stand in what its driver reports
  std::string_view source;
};

// By name; each as often as it differs in a rate.
std::span<const KnownDevice> devices();

// The device of that name, or nullptr.
const KnownDevice* find_device(std::string_view name);

// The device that a driver reports by this name ("NVIDIA A100-SXM4-40GB", "AMD Instinct MI300X"),
// or nullptr. A part of a device (MIG) is none that is known.
const KnownDevice* recognise_device(std::string_view reported);

// Whether that name is another device's: "A100-SXM4-80GB" of a 40 GB one; "A100" is of both.
bool contradicts(std::string_view reported, const KnownDevice& device);

}  // namespace syncline::hardware
