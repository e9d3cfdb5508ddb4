// One machine as other tools describe it: NCCL's topology file and log, `nvidia-smi topo -m`,
// `rocm-smi --showtopo`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catalogue/hardware/device.h"
#include "core/job.h"
#include "formats/json/json.h"

namespace syncline::job {

struct FoundGpu {
  std::string bus;
  std::map<std::string, int> links;  // NVLinks by the bus of the other end, "" for switches
  BytesPerSecond slot = 0;           // the slowest PCIe link up to its processor; 0: not known
  std::string number;                // NCCL's, or "": not said
  std::string bridge;                // the uppermost above it: others are reached by a processor
};

struct FoundNic {
  std::string name;
  double megabits = 0;  // a second
  bool direct = false;  // reaches the GPUs' memory
};

class FoundMachine {
 public:
  std::string tool = "NCCL's topology file";  // that wrote it
  std::string amd;                            // "gfx942"; "": NVIDIA's, or not said
  std::string product;                        // PCI device of its GPUs, "0x74a1"; "": several
  std::vector<FoundGpu> gpus;
  std::vector<FoundNic> nics;
  NcclHints::Cpu cpu = NcclHints::Cpu::kOther;
  bool through_processor = false;  // PCIe joins some GPUs by a processor's bridges
  bool by_xgmi = false;            // AMD's tool wrote it
  int capability = 0;              // 90 of an H100; 0: unknown, as in files of virtual machines

  // Returns true if NVLinks alone lead from one GPU to all.
  bool joins_gpus() const;
  // Returns the NVLinks of the GPU that has the fewest, to GPUs of this machine and its switches.
  int links() const;
  // Returns the rate of the slowest slot; 0: not known.
  BytesPerSecond slot() const;
};

// Reads a machine; without GPUs if the text is of none of the tools. NCCL's log and nvidia-smi do
// not name the device: `capability` is that of --gpu. Throws InputError.
FoundMachine found_machine(const std::string& file, const std::string& text, int capability);

// Returns true if a text is of a tool that does not say which GPUs these are.
bool lacks_device(const std::string& text);

// Returns the device that lines of nvidia-smi name ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: ...)");
// empty if none or several do.
std::string device_in_lines(const std::string& text);

// Returns GB/s of one NVLink, each direction.
double nvlink_rate(int capability);

}  // namespace syncline::job
