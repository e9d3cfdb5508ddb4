#include "reports/plan_report.h"

#include <nlohmann/json.hpp>

#include "core/metrics.h"
#include "core/plan.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

using questions::Planned;

std::string stream_of(const plan::Op& op, const plan::Plan& plan) {
  if (plan::reason_of(op.work) == plan::Busy::Reason::kTick) return "cycles";
  return plan::stream_name(plan, op.stream, "communication");
}

std::string waits_for(const plan::Op& op) {
  std::string text;
  for (const plan::OpId id : op.after) text += (text.empty() ? "" : ",") + std::to_string(id);
  constexpr std::size_t kLongest = 24;
  if (text.size() > kLongest) {
    text = std::to_string(op.after.front()) + ".." + std::to_string(op.after.back()) + " (" +
           std::to_string(op.after.size()) + ")";
  }
  if (!op.after_previous.empty()) {
    const plan::OpId first = op.after_previous.front();
    text += (text.empty() ? "" : "; ") + std::string("last period's ") + std::to_string(first);
    if (op.after_previous.size() > 1) {
      text += ".. (" + std::to_string(op.after_previous.size()) + ")";
    }
  }
  return text.empty() ? "-" : text;
}

// Returns the amount of an operation in words: bytes, kept elements or seconds.
std::string amount_text(const Cell& seconds, const Cell& bytes, const Cell& kept) {
  if (bytes.has_value()) return bytes_text(bytes.value.get<double>());
  if (kept.has_value()) return kept.value.dump() + " kept";
  return seconds.has_value() ? seconds_text(seconds.value.get<double>()) : "-";
}

// Makes the table of the phases [first, end).
Table operations_of(const Planned& planned, std::size_t first, std::size_t end) {
  using enum Kind;
  Table table{columns(data_column("plan", Column::kCsv), table_column("op", "op", kInteger),
                      table_column("stream", "stream"), table_column("what", "what"),
                      page_column("amount", kCount), table_column("ranks", "ranks", kInteger),
                      data_column("step"), data_column("after", Column::kJson),
                      data_column("after_previous", Column::kJson), data_column("seconds"),
                      data_column("bytes"), data_column("kept"), data_column("after", Column::kCsv),
                      data_column("after_previous", Column::kCsv), page_column("after"))};
  for (std::size_t phase = first; phase < end; ++phase) {
    const plan::Plan& plan = planned.phases[phase].plan;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const plan::Op& op = plan.ops[i];
      Cell seconds, bytes, left, ranks;
      if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
        bytes = collective->bytes();
        ranks = collective->groups.size;
      } else if (plan::reason_of(op.work) == plan::Busy::Reason::kEncode) {
        const int bucket = std::get<plan::Busy>(op.work).bucket;
        left = plan.buckets[static_cast<std::size_t>(bucket)].kept;
      } else {
        seconds = plan::seconds_of(op.work);
      }
      const Json after = op.after, previous = op.after_previous;
      table.add(phase, i, stream_of(op, plan), plan::describe(op, plan, planned.scenario.workload),
                show_as({}, amount_text(seconds, bytes, left)), ranks, op.step, after, previous,
                seconds, bytes, left, after, previous, waits_for(op));
    }
  }
  return table;
}

std::string summary(const Planned& planned, const Planned::Phase& phase) {
  const plan::Plan& plan = phase.plan;
  std::string text = plural(plan.ranks, "rank") + ", " + plural(plan.streams, "stream") + ", " +
                     plural(plan.ops.size(), "operation") + ", " +
                     plural(plan.buckets.size(), "bucket") + ", " +
                     collectives_text(measure::collectives_per_step(plan));
  if (plan.steps > 1) text += ", one period of " + std::to_string(plan.steps) + " steps";
  if (planned.strategy.fusion.cycle > 0) {
    text += ", at the first of " + std::to_string(plan::kTickPhases) + " moments of a cycle";
  }
  if (planned.phases.size() > 1) {
    text += "; " + std::to_string(phase.steps) + " steps of the run are like this";
  }
  return text;
}

Page plan_page(const Planned& planned) {
  Page page{planned.strategy.name + " on " + planned.scenario.cluster.name,
            summary(planned, planned.phases.front()),
            {}};
  for (std::size_t p = 0; p < planned.phases.size(); ++p) {
    if (p > 0) page.add(summary(planned, planned.phases[p]));
    page.add(operations_of(planned, p, p + 1));
  }
  return page;
}

Json plan_json(const Planned& planned) {
  Json plans = Json::array();
  for (std::size_t p = 0; p < planned.phases.size(); ++p) {
    const auto& [plan, steps] = planned.phases[p];
    plans.push_back({{"steps", steps},
                     {"ranks", plan.ranks},
                     {"streams", plan.streams},
                     {"period", plan.steps},
                     {"buckets", plan.buckets.size()},
                     {"collectives", exact(measure::collectives_per_step(plan))},
                     {"operations", json_of(operations_of(planned, p, p + 1))}});
  }
  return {{"strategy", planned.strategy.name},
          {"cluster", planned.scenario.cluster.name},
          {"plans", std::move(plans)}};
}

}  // namespace

Answer answer_of(const Planned& planned) {
  return {"plan",
          planned.scenario.name,
          [&] { return plan_page(planned); },
          [&] { return operations_of(planned, 0, planned.phases.size()); },
          [&] { return plan_json(planned); },
          planned.warnings};
}

}  // namespace syncline::reports
