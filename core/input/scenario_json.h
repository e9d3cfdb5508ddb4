// The parts of a scenario as JSON: what is written is read back as the same structs. Figures are
// rounded to so many significant digits, 17 of which lose nothing; what has its default is left
// out.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/cost_model_provider.h"
#include "core/json/reader.h"
#include "core/scenario/cluster.h"
#include "core/scenario/workload.h"

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

Json device_json(const Device& device, int digits);

// Puts one figure into the JSON of a device, under its key and in its unit.
void set_device_figure(Json& device, double Device::*figure, double value, int digits);

// A workload of tensors, without the operators below them.
Json workload_json(const Workload& workload, int digits);

// A calibrated cost model: the object "calibration" of a cluster. The same cost model is written as
// the same bytes, with digits of its own.
Json cost_model_json(const cost::MeasuredCostModel& cost_model);
// Throws InputError about unknown keys and values out of bounds.
cost::MeasuredCostModel read_cost_model(Reader reader);

}  // namespace syncline::input
