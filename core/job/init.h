// A scenario to begin with: a model, by its name or its file, on so many nodes of a known kind, cut
// as its framework's settings or the options say. Nothing is asked that can be found; what was
// guessed is said, beside the answer and in the file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json/json.h"
#include "core/units.h"

namespace syncline::job {

struct InitOptions {
  std::string model;  // an architecture's name, a model file (core/job/models), or settings
  // A name of core/hardware's, or NCCL's topology file; empty: as gpu, gpus and net (own_node.h).
  std::string node;
  int nodes = 1;
  std::optional<std::int64_t> batch = {};     // samples a rank and step
  std::optional<std::int64_t> sequence = {};  // tokens a sample
  std::string dtype =
      {};                 // of products: "fp32", "tf32", "fp16", "bf16", "fp8"; empty: the device's
  bool compiled = false;  // by torch.compile; else its modules run as they come
  // A framework's own settings beside the model (core/job/frameworks): their file, or a line of
  // flags. Empty: none.
  std::string settings = {};
  Json parallel = nullptr;  // keys of workload.parallel, in place of what the settings say
  std::optional<std::int64_t> micro_batches = {};  // of a step
  std::string gpu = {};
  int gpus = 1;
  std::string net = {};
  // Steps that were measured: nodes, and seconds. One node's tells the rate of products, the others
  // tell the bandwidth between nodes, count by count.
  std::vector<std::pair<int, Seconds>> steps = {};
};

struct Begun {
  Json scenario;
  std::vector<std::string> assumed;  // one sentence each
};

// Throws InputError for a model or node that is not known, and options that do not fit the model.
Begun init_scenario(const InitOptions& options);

// Makes the workload's JSON that of another batch: FLOPs of its tensors grow with it.
void set_batch(Json& workload, std::int64_t batch);

}  // namespace syncline::job
