// Small workloads and clusters put together by hand, and those that ship with the project, for the
// tests of plans and executors.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "formats/input/document.h"
#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"

namespace syncline::test {

inline Tensor tensor_of(std::string name, std::vector<std::int64_t> shape,
                        DType dtype = DType::kFp32) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                                    [](std::int64_t a, std::int64_t b) { return a * b; });
  tensor.dtype = dtype;
  return tensor;
}

inline Tensor sparse_tensor_of(std::string name, std::vector<std::int64_t> shape,
                               std::int64_t rows) {
  Tensor tensor = tensor_of(std::move(name), std::move(shape));
  tensor.sparse = true;
  tensor.sparse_rows = rows;
  return tensor;
}

inline Cluster cluster_of(int nodes, int gpus_per_node) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  if (gpus_per_node > 1) cluster.tiers.push_back({"intra", gpus_per_node, 1e-6, 1e11});
  if (nodes > 1) cluster.tiers.push_back({"inter", nodes * gpus_per_node, 1e-5, 1e10});
  return cluster;
}

// A file of scenarios/workloads.
inline Workload shipped_workload(const std::string& name) {
  const std::string file = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/workloads/" + name;
  const Json json = read_json_file(file);
  return input::read_workload(Reader(json, file, ""), Cluster{});
}

// PaddleFleetX's ResNet-50 with a head of so many classes.
inline Workload paddle_resnet50(std::int64_t classes) {
  Workload workload = shipped_workload("resnet50_paddle_class10.json");
  workload.tensors[0] = tensor_of("fc_0.b_0", {classes});
  workload.tensors[1] = tensor_of("fc_0.w_0", {2048 * classes});
  return workload;
}

inline std::vector<const Tensor*> pointers_to(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const auto& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

inline std::vector<int> indices_of(const std::vector<Tensor>& tensors) {
  std::vector<int> indices(tensors.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace syncline::test
