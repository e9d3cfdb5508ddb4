#include "reports/plan_report.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/measure/metrics.h"
#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

std::string stream_name(const plan::Op& op) {
  if (plan::reason_of(op.work) == plan::Busy::Reason::kTick) return "ticks";
  return op.stream == plan::kComputeStream ? "compute"
                                           : "communication " + std::to_string(op.stream);
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

// What an operation is worth: one of these. None of what takes as long as the network says.
struct Amount {
  std::optional<Bytes> bytes;
  std::optional<std::int64_t> kept;
  std::optional<Seconds> seconds;
};

Amount amount_of(const plan::Op& op, const plan::Plan& plan) {
  Amount amount;
  if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
    amount.bytes = collective->bytes();
  } else if (plan::reason_of(op.work) == plan::Busy::Reason::kEncode) {
    const int bucket = std::get<plan::Busy>(op.work).bucket;
    amount.kept = plan.buckets[static_cast<std::size_t>(bucket)].kept;
  } else {
    amount.seconds = plan::seconds_of(op.work);
  }
  return amount;
}

std::string amount_text(const Amount& amount) {
  if (amount.bytes) return bytes_text(static_cast<double>(*amount.bytes));
  if (amount.kept) return std::to_string(*amount.kept) + " kept";
  return amount.seconds ? seconds_text(*amount.seconds) : "-";
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
  const Scenario& scenario = *planned.scenario;
  Page page{planned.strategy.name + " on " + scenario.cluster.name,
            summary(planned, planned.phases.front()),
            {}};
  for (const auto& phase : planned.phases) {
    if (&phase != &planned.phases.front()) page.blocks.emplace_back(summary(planned, phase));
    Grid grid{{{"op"}, {"stream", false}, {"what", false}, {"amount"}, {"after", false}}, {}};
    for (std::size_t i = 0; i < phase.plan.ops.size(); ++i) {
      const plan::Op& op = phase.plan.ops[i];
      grid.lines.push_back(
          {{std::to_string(i), stream_name(op), plan::describe(op, phase.plan, scenario.workload),
            amount_text(amount_of(op, phase.plan)), waits_for(op)},
           false});
    }
    page.blocks.emplace_back(std::move(grid));
  }
  return page;
}

CsvTable csv_of(const Planned& planned) {
  CsvTable table{{"plan", "op", "stream", "what", "step", "seconds", "bytes", "kept", "after",
                  "after_previous"},
                 {}};
  for (std::size_t p = 0; p < planned.phases.size(); ++p) {
    const plan::Plan& plan = planned.phases[p].plan;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const plan::Op& op = plan.ops[i];
      const Amount amount = amount_of(op, plan);
      table.lines.push_back({std::to_string(p), std::to_string(i), stream_name(op),
                             plan::describe(op, plan, planned.scenario->workload),
                             std::to_string(op.step),
                             amount.seconds ? exact(*amount.seconds).dump() : "",
                             amount.bytes ? std::to_string(*amount.bytes) : "",
                             amount.kept ? std::to_string(*amount.kept) : "", joined(op.after),
                             joined(op.after_previous)});
    }
  }
  return table;
}

Json operations_json(const plan::Plan& plan, const Workload& workload) {
  Json list = Json::array();
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const plan::Op& op = plan.ops[i];
    Json object{{"op", i},
                {"stream", stream_name(op)},
                {"what", plan::describe(op, plan, workload)},
                {"step", op.step},
                {"after", op.after},
                {"after_previous", op.after_previous}};
    const Amount amount = amount_of(op, plan);
    if (amount.seconds) object["seconds"] = exact(*amount.seconds);
    if (amount.bytes) object["bytes"] = *amount.bytes;
    if (amount.kept) object["kept"] = *amount.kept;
    list.push_back(std::move(object));
  }
  return list;
}

Json json_of(const Planned& planned) {
  Json plans = Json::array();
  for (const auto& phase : planned.phases) {
    plans.push_back({{"steps", phase.steps},
                     {"ranks", phase.plan.ranks},
                     {"streams", phase.plan.streams},
                     {"period", phase.plan.steps},
                     {"buckets", phase.plan.buckets.size()},
                     {"collectives", exact(measure::collectives_per_step(phase.plan))},
                     {"operations", operations_json(phase.plan, planned.scenario->workload)}});
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
          [&] { return csv_of(planned); }, [&] { return json_of(planned); }};
}

}  // namespace syncline::reports
