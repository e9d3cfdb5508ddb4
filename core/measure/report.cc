#include "core/measure/report.h"

namespace syncline::measure {

bool is_trivial(const Row& row, const Report& report) {
  return row.strategy == report.baseline && row.published && row.published->speedup &&
         !row.published->step_time && !row.published->throughput;
}

}  // namespace syncline::measure
