#include "reports/run_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json/text.h"

namespace syncline::reports {
namespace {

constexpr std::string_view kStrategies = "strategies.";

// The last `count` components of a dotted path.
std::string tail(const std::string& path, std::size_t count) {
  if (path.starts_with(kStrategies)) return path.substr(kStrategies.size());
  std::size_t dot = path.size();
  for (; count > 0; --count) {
    dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1);
    if (dot == std::string::npos) return path;
  }
  return path.substr(dot + 1);
}

// Takes one more component wherever names clash, until they do not or paths are used up.
void name_axes(std::vector<Axis>& axes) {
  std::vector<std::size_t> length(axes.size(), 1);
  for (std::size_t round = 0; round < 64; ++round) {
    std::multiset<std::string> names;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].name = tail(axes[i].path, length[i]);
      names.insert(axes[i].name);
    }
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (names.count(axes[i].name) > 1) ++length[i];
    }
  }
}

}  // namespace

std::vector<Axis> axes_of(const std::vector<measure::Row>& rows) {
  std::vector<Axis> axes;
  for (const auto& row : rows) {
    for (const auto& [path, value] : row.sweep) {
      const bool known = std::any_of(axes.begin(), axes.end(),
                                     [&path = path](const Axis& a) { return a.path == path; });
      if (!known) axes.push_back({path, path});
    }
  }
  name_axes(axes);
  return axes;
}

const Json* value_on(const measure::Row& row, const Axis& axis) {
  const auto found = std::find_if(row.sweep.begin(), row.sweep.end(),
                                  [&](const auto& entry) { return entry.first == axis.path; });
  return found == row.sweep.end() ? nullptr : &found->second;
}

std::string value_text(const measure::Row& row, const Axis& axis) {
  const Json* value = value_on(row, axis);
  return value == nullptr ? "" : plain_text(*value);
}

std::string point_text(const measure::Row& row, const std::vector<Axis>& axes) {
  std::string text;
  for (const auto& axis : axes) {
    if (!text.empty()) text += ", ";
    text += axis.name + " " + value_text(row, axis);
  }
  return text;
}

bool same_point(const measure::Row& a, const measure::Row& b) {
  return a.executor == b.executor && a.sweep == b.sweep;
}

}  // namespace syncline::reports
