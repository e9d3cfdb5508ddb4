// A cluster as JSON: what is written is read back by read_cluster as the same cluster. Figures are
// rounded to so many significant digits; what has its default is left out.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/law.h"
#include "core/cost/step_curves.h"
#include "core/json/json.h"
#include "core/scenario/cluster.h"

namespace syncline::input {

// What a cluster's JSON holds besides the fields of Cluster.
struct ClusterNotes {
  std::string about;
  // What stands behind Cluster::law: measured steps by tier, or a calibration.
  std::vector<cost::StepCurve> curves;
  std::optional<cost::MeasuredLaw> calibration;
};

// 17 digits lose nothing.
Json cluster_json(const Cluster& cluster, int digits, const ClusterNotes& notes = {});

// One level of the network, without its name and place.
Json tier_json(const Tier& tier, const cost::StepCurve& curve, int digits);

// Puts one figure into the JSON of a device, under its key and in its unit.
void set_device_figure(Json& device, double Device::*figure, double value, int digits);

}  // namespace syncline::input
