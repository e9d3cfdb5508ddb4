// `init`: its arguments, as the command line and Python give them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "imports/init.h"
#include "studies/questions/arguments.h"

namespace syncline::job {

struct InitQuestion {
  std::string model;                // architecture, model file, settings, or a launch's first word
  std::string tensors;              // list of parameters, or safetensors, in place of a model
  std::vector<std::string> words;   // after it: files of settings, flags, the rest of a launch
  std::string node;                 // kind of node, or NCCL's topology file
  std::string gpu;                  // kind of GPU, in place of the node's
  std::optional<std::size_t> gpus;  // per node, with `gpu`; none: 1, or those of `cluster`
  std::string cluster;              // file of measured links, as `calibrate` writes it
  std::string net;                  // ports of a node, with `gpu`
  std::vector<std::string> steps;   // measured step times, NODES=SECONDS
  std::optional<std::size_t> nodes;
  std::optional<std::size_t> tensor, pipeline, virtual_stages, context, expert, expert_tensor;
  bool sequence_parallel = false;
  std::string schedule;  // of the pipeline; empty: the layout's
  std::optional<std::size_t> micro_batches;
  std::optional<std::size_t> batch;     // samples per GPU or micro-batch
  std::optional<std::size_t> sequence;  // tokens per sample
  std::optional<std::size_t> launch;    // captured, from 1; none: the one that trains
  std::string dtype;                    // of products; empty: the GPU's
  bool compiled = false;                // by torch.compile
  bool fsdp = false;                    // PyTorch's FSDP2
  std::string zero;                     // DeepSpeed's stage; empty: PyTorch's DDP
  std::string recompute;                // of activations; empty: as memory asks for it
};

// Lists the arguments but the model and the words after it.
questions::Arguments arguments_of(InitQuestion& question);

// Returns the scenario, read again as a user's file would be. Throws InputError as init_scenario
// does, and for arguments that do not go together.
Begun answer(const InitQuestion& question);

}  // namespace syncline::job
