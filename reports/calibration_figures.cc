#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reports/calibration.h"
#include "reports/chart/figure.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

using chart::Unit;
using LogTable = calibrate::ComparedTable;
using Row = calibrate::ComparedRow;

// Tables that are drawn with their bands; more of them would cover each other.
constexpr std::size_t kBands = 3;

// Returns true for a row outside the fit: out of range, or an outlier. Its dot is hollow.
bool set_apart(const LogTable& table, const Row& row) {
  return !row.in_range ||
         std::find(table.outliers.begin(), table.outliers.end(), row.bytes) != table.outliers.end();
}

std::string name_of(const LogTable& table) {
  const std::string file = table.file.substr(table.file.rfind('/') + 1);
  return table_test(table) + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + ", " + one_line(file);
}

template <typename Use>
void each_table(const calibrate::LogCalibration& calibration, Use use) {
  for (const auto& table : calibration.fitted) use(table, true);
  for (const auto& table : calibration.against) use(table, false);
}

// Draws measured dots and the cost model's line of every table; `of` converts a row's time to y.
template <typename Of>
chart::Figure over_size(const calibrate::LogCalibration& calibration, Of of) {
  chart::Figure figure;
  figure.across = {"payload", Unit::kBytes, true};
  const std::size_t tables = calibration.fitted.size() + calibration.against.size();
  int colour = 0;
  bool apart = false;
  each_table(calibration, [&](const LogTable& table, bool fitted) {
    chart::Series dots = chart::point_series("", colour);
    chart::Series line{name_of(table) + (fitted ? "" : ", predicted"), colour++};
    line.dashed = !fitted;
    for (const auto& row : table.rows) {
      const auto bytes = static_cast<double>(row.bytes);
      const double factor = std::exp(measure::kHeldDeviations * row.spread);
      const bool hollow = set_apart(table, row);
      apart = apart || hollow;
      (hollow ? dots.hollow : dots.points).push_back({bytes, of(table, row, row.measured)});
      line.points.push_back({bytes, of(table, row, row.predicted)});
      if (tables <= kBands) {
        const double one = of(table, row, row.predicted / factor);
        const double other = of(table, row, row.predicted * factor);
        line.band.push_back({bytes, std::min(one, other), std::max(one, other)});
      }
    }
    figure.series.push_back(std::move(dots));
    figure.series.push_back(std::move(line));
  });
  figure.note = "Dots: measured; lines: fitted" +
                std::string(calibration.against.empty() ? "" : ", dashed: predicted") +
                (tables <= kBands ? "; shaded: the 80 % interval" : "") +
                (apart ? "; hollow: out of range or left out of the fit" : "") + ".";
  return figure;
}

chart::Figure times(const calibrate::LogCalibration& calibration) {
  chart::Figure figure =
      over_size(calibration, [](const LogTable&, const Row&, Seconds time) { return time; });
  figure.id = "s-time";
  figure.title = "Time of a collective over its payload";
  figure.up = {"time", Unit::kSeconds, true};
  return figure;
}

chart::Figure bandwidths(const calibrate::LogCalibration& calibration) {
  chart::Figure figure =
      over_size(calibration, [](const LogTable& table, const Row& row, Seconds time) {
        return static_cast<double>(row.bytes) * bus_share(table) / time;
      });
  figure.id = "s-bandwidth";
  figure.title = "Bus bandwidth over payload, as nccl-tests counts it";
  figure.up = {"bus bandwidth", Unit::kBytesPerSecond, false, true};
  return figure;
}

chart::Figure residuals(const calibrate::LogCalibration& calibration) {
  chart::Figure figure{"s-residuals",
                       "Error over payload",
                       "",
                       {"payload", Unit::kBytes, true},
                       {"predicted above measured", Unit::kPercent, false, true}};
  int colour = 0;
  each_table(calibration, [&](const LogTable& table, bool fitted) {
    chart::Series dots =
        chart::point_series(name_of(table) + (fitted ? "" : ", predicted"), colour++);
    for (const auto& row : table.rows) {
      (set_apart(table, row) ? dots.hollow : dots.points)
          .push_back({static_cast<double>(row.bytes), (row.predicted / row.measured - 1) * 100});
    }
    figure.series.push_back(std::move(dots));
  });
  figure.rules.push_back({"as measured", false, 0, chart::kGrey});
  return figure;
}

}  // namespace

std::vector<Illustration> figures_of(const calibrate::LogCalibration& calibration) {
  std::size_t rows = 0;
  each_table(calibration, [&](const LogTable& table, bool) { rows += table.rows.size(); });
  if (calibration.fitted.empty() || rows < 2) return {};  // no chart of one point
  return {{times(calibration)}, {bandwidths(calibration)}, {residuals(calibration)}};
}

std::string calibration_svg(const calibrate::LogCalibration& calibration) {
  return chart::svg_file(times(calibration));
}

}  // namespace syncline::reports
