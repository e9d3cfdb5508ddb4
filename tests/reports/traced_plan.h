// A small plan with its workload and timeline, for the tests of trace and describe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/algorithm.h"
#include "core/codec.h"
#include "studies/rows/report.h"
#include "tests/reports/small_report.h"

namespace syncline::test {

inline Workload named_workload(int tensors) {
  Workload workload;
  for (int i = 0; i < tensors; ++i) {
    Tensor tensor;
    tensor.name = "layer" + std::to_string(i) + ".weight";
    tensor.elements = 1000;
    workload.tensors.push_back(tensor);
  }
  Tensor buffer;
  buffer.name = "bn.running_mean";
  workload.buffers.push_back(buffer);
  return workload;
}

inline plan::Op op(plan::StreamId stream, plan::Work work) {
  return {stream, {}, std::move(work), 0};
}

// Forward, backward, and a compressed exchange of all tensors on stream 1, then the update.
inline plan::Plan small_plan(int tensors) {
  plan::Plan plan;
  plan.ranks = 16;
  plan.streams = 2;
  plan::Bucket bucket;
  for (int i = 0; i < tensors; ++i) bucket.tensors.push_back(i);
  bucket.elements = 1000 * tensors;
  bucket.bytes = 4 * bucket.elements;
  bucket.codec = compress::find_codec("dgc");
  bucket.kept = 10;
  plan.buckets = {bucket};
  collective::Collective collective;
  collective.kind = collective::CollectiveKind::kAllGather;
  collective.algorithm = collective::find_algorithm("ring");
  collective.groups = collective::world_group(16);
  collective.elements = 160;
  collective.unit = 8;
  plan.ops = {op(0, plan::Compute{plan::Phase::kForward, 0.01, 0, -1}),
              op(0, plan::Compute{plan::Phase::kBackward, 0.02, 0, tensors - 1}),
              op(0, plan::Busy{plan::Busy::Reason::kEncode, 0, 0}),
              op(1, collective),
              op(1, plan::Busy{plan::Busy::Reason::kDecode, 0.001, 0}),
              op(0, plan::Busy{plan::Busy::Reason::kHost, 0.0005}),
              op(0, plan::Compute{plan::Phase::kUpdate, 0, 0, tensors - 1})};
  return plan;
}

// Every operation one millisecond after the other, on the given ranks.
inline run::Timeline even_timeline(const plan::Plan& plan, const std::vector<int>& ranks,
                                   int periods) {
  run::Timeline timeline;
  double now = 0;
  for (int period = 0; period < periods; ++period) {
    for (plan::OpId id = 0; id < static_cast<plan::OpId>(plan.ops.size()); ++id) {
      const double length = id == 2 ? 0 : 0.001;  // encoding takes no time here
      for (const int rank : ranks) timeline.spans.push_back({period, id, rank, now, now + length});
      now += length;
    }
    timeline.period_ends.push_back(now);
  }
  return timeline;
}

// Such plans, by the names of their strategies.
inline measure::Report traced_report(const std::vector<std::string>& strategies,
                                     const std::vector<int>& ranks, int periods, int tensors = 3) {
  measure::Report report = report_of({});
  report.traced_workload = named_workload(tensors);
  for (const auto& strategy : strategies) {
    const plan::Plan plan = small_plan(tensors);
    report.traced.push_back({strategy, plan, even_timeline(plan, ranks, periods)});
  }
  return report;
}

}  // namespace syncline::test
