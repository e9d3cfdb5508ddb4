// What varies between the rows of a report: the sweep's paths, with names short enough for a
// heading, and the rows of one sweep point.
#pragma once

#include <string>
#include <vector>

#include "core/measure/report.h"

namespace syncline::reports {

struct Axis {
  std::string path;  // "cluster.inter.bandwidth_gbps"
  std::string name;  // "bandwidth_gbps", or as many last components as keep the names distinct
};

// The sweep's paths in the order of the rows. A path below "strategies" keeps the strategy's name:
// the key is that strategy's alone, though it stands in every row.
std::vector<Axis> axes_of(const std::vector<measure::Row>& rows);

// The value that a row has on the axis; nullptr where the row does not name it.
const Json* value_on(const measure::Row& row, const Axis& axis);

// The same as a person writes it; empty where the row does not name it.
std::string value_text(const measure::Row& row, const Axis& axis);

// "bandwidth_gbps 10, streams 2"; empty without axes.
std::string point_text(const measure::Row& row, const std::vector<Axis>& axes);

// Whether two rows belong to the same sweep point.
bool same_point(const measure::Row& a, const measure::Row& b);

}  // namespace syncline::reports
