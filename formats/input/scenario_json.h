// Writes parts of a scenario as JSON that is read back as the same structs. Figures are rounded to
// `digits` significant digits (17 are lossless); defaults are left out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/cluster.h"
#include "core/cost/cost_model.h"
#include "core/cost/cost_model_provider.h"
#include "core/job.h"
#include "core/strategy.h"
#include "formats/json/json.h"

namespace syncline::input {

// Content of a cluster's JSON besides the fields of Cluster.
struct ClusterNotes {
  std::string about;
  // Sources of Cluster::cost model: measured steps by tier, or a calibration.
  std::vector<cost::StepCurve> curves;
  std::optional<cost::MeasuredCostModel> calibration;
};

// Returns the words of "fabric".
const std::vector<std::pair<std::string, Fabric>>& fabric_words();

Json cluster_json(const Cluster& cluster, int digits, const ClusterNotes& notes = {});

// Returns one level of the network, without its name and place.
Json tier_json(const Tier& tier, const cost::StepCurve& curve, int digits);

// A figure of a device that has its own key; in the order of reading and writing.
struct DeviceFigure {
  const char* key;
  double Device::*figure;
  double unit;
  double most;  // upper limit in the file's unit
};
const std::vector<DeviceFigure>& device_figures();

Json device_json(const Device& device, int digits);

// Sets one figure in the JSON of a device, under its key and in its unit.
void set_device_figure(Json& device, double Device::*figure, double value, int digits);

// Returns a workload of tensors, without the operators below them.
Json workload_json(const Workload& workload, int digits);

// Writes a strategy in the keys of a scenario, ready to be pasted into one.

// Returns the keys that are not at their defaults; read again on the same workload and cluster,
// they give the same plan. Buckets made by a dialect's own rule are under "groups".
Json strategy_json(const Strategy& strategy);

}  // namespace syncline::input
