// Fitting the law of one table (size_law.h): every candidate by least squares of relative errors,
// and of the candidates the one that predicts best the sizes it has not seen.
#pragma once

#include <vector>

#include "core/cost/measured_table.h"
#include "core/cost/size_law.h"

namespace syncline::calibrate {

struct SizeFit {
  cost::SizeLaw law;
  std::vector<cost::MeasuredPoint> points;    // what was fitted, by ascending size
  std::vector<cost::MeasuredPoint> outliers;  // what was left out as disturbed
  // Means of |fitted / measured - 1| over the points: with all sizes seen, and for each size with
  // that size left out of the fit (of more than 64 sizes, 64 evenly spread ones are left out in
  // turn). The second is the honest one; with fewer than three sizes it is not known (negative).
  double in_sample = 0;
  double left_out = -1;
  // How far the law is off around each size, from the same left-out sizes and `noise`; and a
  // thousand times below and above them, where the table leaves open how the time goes on. Empty
  // with fewer than three sizes that leave nothing open.
  std::vector<cost::SizeSpread> spreads;
  // Standard deviation of the logarithm of one measured time: from repeated tables, and from the
  // two times of each size where the table is not clean. 0: nothing speaks of it.
  double noise = 0;
};

// The table's points: out of place, or in place for sizes that have no good out-of-place time.
// Disturbed are a first row that is slower than the next size by a quarter (the test's warm-up),
// and rows whose two times differ by 30 % where only the other one lies near the neighbours.
SizeFit points_of(const cost::MeasuredTable& table);

// Fits the points. Requires at least one.
SizeFit fit_sizes(SizeFit measured);

}  // namespace syncline::calibrate
