// A scenario to begin with: a model, by its name or its file, on nodes of a known kind, partitioned
// as its framework's settings or the options say. Facts that can be found are not asked; guesses
// are named in the answer and in the file.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "catalogue/hardware/device.h"
#include "core/base/units.h"
#include "formats/json/json.h"

namespace syncline::job {

struct InitOptions {
  std::string model;     // an architecture's name, a model file (core/job/models), or settings
  bool tensors = false;  // the model is a list of its parameters
  // A name of catalogue/hardware's, or NCCL's topology file; empty: as gpu, gpus and net.
  std::string node;
  int nodes = 0;  // 0: those of `cluster`, as the settings start processes, else 1
  std::optional<std::int64_t> batch = {};     // samples a rank and step
  std::optional<std::int64_t> sequence = {};  // tokens a sample
  std::string dtype =
      {};                 // of products: "fp32", "tf32", "fp16", "bf16", "fp8"; empty: the device's
  bool compiled = false;  // by torch.compile; else its modules run as they come
  // A framework's own settings next to the model (imports/frameworks): their file, or a line of
  // flags. Empty: none.
  std::string settings = {};
  std::string flags = {};   // a line of flags that override those in a file of `settings`
  int launch = 0;           // of those that were captured, from 1; 0: the one that trains
  Json parallel = nullptr;  // keys of workload.parallel, in place of the settings'
  std::optional<std::int64_t> micro_batches = {};  // of a step
  std::string gpu = {};
  int gpus = 1;  // 0: those of the settings' launch, else of `cluster`, else one
  std::string net = {};
  // Measured steps: number of nodes, and seconds. The rate of products follows from the step of one
  // node, the bandwidth between nodes from the others, for each number by itself.
  std::vector<std::pair<int, Seconds>> steps = {};
  bool fsdp = false;             // PyTorch's FSDP2 in place of DDP
  std::optional<int> zero = {};  // DeepSpeed's stage
  std::string recompute = {};    // "none", "selective", "full"; empty: as memory asks for it
  // A cluster's file, as `calibrate` writes it: its links, with the nodes and GPUs of the options.
  std::string cluster = {};
};

struct Begun {
  Json scenario;
  std::vector<std::string> assumed;  // one sentence each
};

// Throws InputError for a model or node that is not known, and options that do not fit the model.
Begun init_scenario(const InitOptions& options);

// Makes the workload's JSON that of another batch: FLOPs of its tensors grow with it.
void set_batch(Json& workload, std::int64_t batch);

// A node that no list has: GPUs of a known kind and the port that leads out of it, in words or as
// NCCL found them.

// Returns a node of GPUs `gpu`, a name of catalogue/hardware. `net`: "25gbit", "8x400gbit",
// "4x100gbit:efa"; empty for one node. Without a fabric's name a port of up to 50 Gbit/s is
// Ethernet with TCP, and of others nothing is known. GPUs are joined as in their usual node, cards
// by PCIe, those of GeForce through host memory. Throws InputError by the options' names.
hardware::KnownNode own_node(const std::string& gpu, int gpus, const std::string& net);

// Returns the node of NCCL's topology file (NCCL_TOPO_DUMP_FILE writes it, NCCL_TOPO_FILE reads
// it): the GPUs, NVLink or PCIe between them as rated, and the fastest NICs. It does not name the
// GPUs: without `gpu` they are AMD's of that PCI device or the only known ones of their compute
// capability. `net`, if not empty, replaces the file's NICs. Throws InputError.
hardware::KnownNode nccl_node(const std::string& file, std::string gpu, std::string net);

// Returns true if --node names such a file, under any name, and no known node.
bool is_topology_file(const std::string& node);

}  // namespace syncline::job
