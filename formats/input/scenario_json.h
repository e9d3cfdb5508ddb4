// The parts of a scenario as JSON: what is written is read back as the same structs. Figures are
// rounded to so many significant digits, 17 of which lose nothing; what has its default is left
// out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "catalogue/hardware/device.h"
#include "core/cluster.h"
#include "core/cost/cost_model.h"
#include "core/cost/cost_model_provider.h"
#include "core/job.h"
#include "core/strategy.h"
#include "formats/json/json.h"
#include "formats/json/reader.h"

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

// A calibrated cost model: the object "calibration" of a cluster. The same cost model is written as
// the same bytes, with digits of its own.
Json cost_model_json(const cost::MeasuredCostModel& cost_model);
// Throws InputError about unknown keys and values out of bounds.
cost::MeasuredCostModel read_cost_model(Reader reader);

// A strategy in the keys of a scenario, ready to be pasted into one.

// Keys at their defaults are left out; read again on the same workload and cluster, the rest gives
// the same plan. What a dialect's own rule came to stands under "groups".
Json strategy_json(const Strategy& strategy);

// Hardware by name, as JSON: "device": "h100-sxm", "node": "dgx-h100". Keys next to the name
// replace the figures of the catalogue (catalogue/hardware).

// The device's object with its rates as reached (catalogue/hardware/device.h), or as rated where
// the share that is reached is given beside it.
Json known_device_json(const hardware::KnownDevice& device, bool rated = false);

// A cluster's keys for nodes of this kind, all but their number.
Json known_node_json(const hardware::KnownNode& node);

// As did_you_mean, of nodes by their names and their devices': "H100" fits all that have one.
std::string did_you_mean_node(const std::string& word);

// A cluster's object without names: `node` and `device` filled in. Throws InputError for a name
// that is not known, with the nearest.
Json with_known_hardware(Reader& cluster);

}  // namespace syncline::input
