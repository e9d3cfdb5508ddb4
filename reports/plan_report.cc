#include "reports/plan_report.h"

#include <nlohmann/json.hpp>

#include "core/measure/metrics.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string stream_of(const plan::Op& op, const plan::Plan& plan) {
  if (plan::reason_of(op.work) == plan::Busy::Reason::kTick) return "cycles";
  return plan::stream_name(plan, op.stream, "communication");
}

std::string joined(const std::vector<plan::OpId>& ids) {
  std::string text;
  for (const plan::OpId id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::string waits_for(const plan::Op& op) {
  std::string text = joined(op.after);
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

// What an operation is worth, in words; it is known in one of three ways, or takes as long as the
// network says.
std::string amount_text(const Cell& seconds, const Cell& bytes, const Cell& kept) {
  if (bytes.known()) return bytes_text(bytes.value.get<double>());
  if (kept.known()) return kept.value.dump() + " kept";
  return seconds.known() ? seconds_text(seconds.value.get<double>()) : "-";
}

Table operations() {
  using enum Kind;
  return {columns(kept("plan", Column::kCsv), both("op", "op", kInteger), both("stream", "stream"),
                  both("what", "what"), shown("amount", kCount), kept("step"),
                  kept("after", Column::kJson), kept("after_previous", Column::kJson),
                  kept("seconds"), kept("bytes"), kept("kept"), kept("after", Column::kCsv),
                  kept("after_previous", Column::kCsv), shown("after"))};
}

void add_operations(Table& table, const Planned& planned, std::size_t phase) {
  const plan::Plan& plan = planned.phases[phase].plan;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const plan::Op& op = plan.ops[i];
    Cell seconds, bytes, kept;
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      bytes = collective->bytes();
    } else if (plan::reason_of(op.work) == plan::Busy::Reason::kEncode) {
      const int bucket = std::get<plan::Busy>(op.work).bucket;
      kept = plan.buckets[static_cast<std::size_t>(bucket)].kept;
    } else {
      seconds = plan::seconds_of(op.work);
    }
    const Json after = op.after, previous = op.after_previous;
    table.add(phase, i, stream_of(op, plan), plan::describe(op, plan, planned.scenario->workload),
              shown_as({}, amount_text(seconds, bytes, kept)), op.step, after, previous, seconds,
              bytes, kept, after, previous, waits_for(op));
  }
}

Table operations_of(const Planned& planned, std::size_t phase) {
  Table table = operations();
  add_operations(table, planned, phase);
  return table;
}

std::string summary(const Planned& planned, const Planned::Phase& phase) {
  const plan::Plan& plan = phase.plan;
  std::string text = plural(static_cast<std::size_t>(plan.ranks), "rank") + ", " +
                     plural(static_cast<std::size_t>(plan.streams), "stream") + ", " +
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

Page page_of(const Planned& planned) {
  Page page{planned.strategy.name + " on " + planned.scenario->cluster.name,
            summary(planned, planned.phases.front()),
            {}};
  for (std::size_t p = 0; p < planned.phases.size(); ++p) {
    if (p > 0) page.blocks.emplace_back(summary(planned, planned.phases[p]));
    page.blocks.emplace_back(grid_of(operations_of(planned, p)));
  }
  return page;
}

Table rows_of(const Planned& planned) {
  Table table = operations();
  for (std::size_t p = 0; p < planned.phases.size(); ++p) add_operations(table, planned, p);
  return table;
}

Json json_of(const Planned& planned) {
  Json plans = Json::array();
  for (std::size_t p = 0; p < planned.phases.size(); ++p) {
    const auto& [plan, steps] = planned.phases[p];
    plans.push_back({{"steps", steps},
                     {"ranks", plan.ranks},
                     {"streams", plan.streams},
                     {"period", plan.steps},
                     {"buckets", plan.buckets.size()},
                     {"collectives", exact(measure::collectives_per_step(plan))},
                     {"operations", json_of(operations_of(planned, p))}});
  }
  return {{"strategy", planned.strategy.name},
          {"cluster", planned.scenario->cluster.name},
          {"plans", std::move(plans)}};
}

}  // namespace

Planned planned(const Scenario& scenario, const Strategy& strategy) {
  Planned planned{&scenario, strategy, {}};
  for (const auto& phase : plan::training_phases(strategy, scenario.training)) {
    if (phase.point.tick_phase > 0) continue;
    planned.phases.push_back(
        {plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point), phase.steps});
  }
  return planned;
}

Answer answer_of(const Planned& planned) {
  return {"plan", planned.scenario->name, [&] { return page_of(planned); },
          [&] { return rows_of(planned); }, [&] { return json_of(planned); }};
}

}  // namespace syncline::reports
