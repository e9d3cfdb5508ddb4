// The parts of a scenario as JSON: what is written is read back as the same structs. Figures are
// rounded to so many significant digits, 17 of which lose nothing; what has its default is left
// out.
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

// What a cluster's JSON holds besides the fields of Cluster.
struct ClusterNotes {
  std::string about;
  // What stands behind Cluster::cost model: measured steps by tier, or a calibration.
  std::vector<cost::StepCurve> curves;
  std::optional<cost::MeasuredCostModel> calibration;
};

// The words of "fabric".
const std::vector<std::pair<std::string, Fabric>>& fabric_words();

Json cluster_json(const Cluster& cluster, int digits, const ClusterNotes& notes = {});

// One level of the network, without its name and place.
Json tier_json(const Tier& tier, const cost::StepCurve& curve, int digits);

// A device's figures that have a key each, in the order in which they are read and written.
struct DeviceFigure {
  const char* key;
  double Device::*figure;
  double unit;
  double most;  // in the file's unit
};
const std::vector<DeviceFigure>& device_figures();

Json device_json(const Device& device, int digits);

// Puts one figure into the JSON of a device, under its key and in its unit.
void set_device_figure(Json& device, double Device::*figure, double value, int digits);

// A workload of tensors, without the operators below them.
Json workload_json(const Workload& workload, int digits);

// A strategy in the keys of a scenario, ready to be pasted into one.

// Keys at their defaults are left out; read again on the same workload and cluster, the rest gives
// the same plan. What a dialect's own rule came to stands under "groups".
Json strategy_json(const Strategy& strategy);

}  // namespace syncline::input
