#include "core/job/execution_trace/execution_trace.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/calibrate/gzip.h"
#include "core/error.h"
#include "core/job/execution_trace/nodes.h"
#include "core/job/execution_trace/steps.h"
#include "core/json/text.h"

namespace syncline::job::execution_trace {
namespace {

constexpr const char* kInstead =
    "record with torch.profiler and record_shapes=True, or run the job under `syncline record`";

// Two steps that send the same.
using Shape = std::vector<std::pair<std::string, std::int64_t>>;

Shape shape_of(const Step& step) {
  Shape shape = {{"gradients", static_cast<std::int64_t>(step.gradients.size())}};
  for (const Exchange& exchange : step.exchanges) {
    shape.emplace_back(exchange.kind, exchange.elements);
  }
  return shape;
}

// Steps without a backward pass, DDP's first one (whose buckets are not yet in ready order) and one
// that the recording cut off differ from the others: the shape that most steps have, of two that
// are as frequent the later one, stands for the job.
void keep_usual(std::vector<Step>& list, std::vector<std::string>& warnings) {
  std::map<Shape, int> counts;
  for (const Step& step : list) ++counts[shape_of(step)];
  Shape usual;
  int most = 0;
  for (const Step& step : list) {
    const bool trains = !step.gradients.empty() ||
                        std::none_of(list.begin(), list.end(),
                                     [](const Step& other) { return !other.gradients.empty(); });
    const Shape shape = shape_of(step);
    if (!trains || counts[shape] < most) continue;
    most = counts[shape];
    usual = shape;
  }
  std::erase_if(list, [&](const Step& step) {
    if (shape_of(step) == usual) return false;
    warnings.push_back("step " + std::to_string(step.number) + " is left out: it has " +
                       std::to_string(step.gradients.size()) + " gradients in " +
                       std::to_string(step.exchanges.size()) +
                       " collectives, other than most steps (the first one of a job, or cut off)");
    return true;
  });
}

// How many of the exchanges that carry gradients say which.
void warn_of_buckets(const Step& step, std::vector<std::string>& warnings) {
  std::size_t unknown = 0;
  bool any = false;
  for (const Exchange& exchange : step.exchanges) {
    if (exchange.kind != "all_reduce") continue;
    any = true;
    unknown += exchange.gradients.empty() ? 1 : 0;
  }
  if (!any) {
    warnings.emplace_back(
        "no all-reduce is in it: what a job on several GPUs would send is not known");
  } else if (unknown > 0) {
    warnings.push_back(std::to_string(unknown) +
                       " all-reduces of a step do not add up from whole gradients: they carry "
                       "something else, or a hook changed them");
  }
}

std::vector<std::string> warnings_of(const Steps& steps) {
  std::vector<std::string> list = {
      std::string("an execution trace holds no times: the order and sizes of gradients and "
                  "collectives are known, when they were ready and how long they took is not; for "
                  "times ") +
      kInstead};
  if (steps.other_types > 0) {
    list.push_back(std::to_string(steps.other_types) +
                   " collectives of integers or unknown types are left out");
  }
  return list;
}

void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& one : more) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
  }
}

}  // namespace

bool recognises(const Head& head) {
  const auto has = [&](std::string_view part) {
    return head.bytes.find(part) != std::string::npos;
  };
  const std::size_t first = head.bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || head.bytes[first] != '{' || !has("\"nodes\"")) return false;
  return has("\"ctrl_deps\"") || has("|profiler|execution_") || has("\"fw_parent\"");
}

Observed observed_from_text(const std::string& name, const std::string& text, int rank) {
  const Trace trace = trace_from_text(name, text);
  Steps steps = steps_of(trace);
  Observed observed;
  observed.file = name;
  observed.framework = "pytorch";
  observed.version = "execution trace " + (trace.schema.empty() ? "without schema" : trace.schema);
  observed.name = std::filesystem::path(name).filename().string();
  observed.name = observed.name.substr(0, observed.name.find('.'));
  observed.backend = steps.backend;
  for (const Node& node : trace.nodes) note_optimizer(node.name, observed.optimizers);
  observed.world_size = steps.world_size;
  observed.timed = false;
  observed.accumulation_steps = steps.accumulation;
  observed.comm_hook = steps.copies == Copies::kHook;
  observed.warnings = warnings_of(steps);
  keep_usual(steps.list, observed.warnings);
  if (steps.list.empty()) {
    throw InputError(name +
                     ": an execution trace without a gradient (torch::autograd::AccumulateGrad) or "
                     "a collective: record a step of training, backward pass included; or " +
                     kInstead);
  }
  const Step& step = steps.list.back();
  const bool reduces = std::any_of(step.exchanges.begin(), step.exchanges.end(),
                                   [](const auto& one) { return one.kind == "all_reduce"; });
  observed.bucket_views = steps.copies == Copies::kNone && reduces && !step.gradients.empty();
  warn_of_buckets(step, observed.warnings);
  observed.ranks.push_back({steps.rank < 0 ? rank : steps.rank, std::move(steps.list)});
  return observed;
}

Observed read(const std::vector<std::string>& files) {
  Observed all;
  for (const std::string& file : files) {
    Observed one = observed_from_text(
        file, calibrate::unpacked(file, read_text_file(file, "an execution trace")),
        static_cast<int>(all.ranks.size()));
    if (all.ranks.empty()) {
      all = std::move(one);
      continue;
    }
    Rank& rank = one.ranks.front();
    const auto same = std::find_if(all.ranks.begin(), all.ranks.end(),
                                   [&](const Rank& other) { return other.rank == rank.rank; });
    if (same != all.ranks.end()) {
      throw InputError(file + ": of rank " + std::to_string(rank.rank) +
                       ", as another of the files: expected one file a rank");
    }
    if (shape_of(rank.steps.back()) != shape_of(all.ranks.front().steps.back())) {
      throw InputError(file + ": its steps have other gradients or collectives than those of " +
                       files.front() + ": not of one job");
    }
    all.ranks.push_back(std::move(rank));
    append(all.warnings, one.warnings);
  }
  std::sort(all.ranks.begin(), all.ranks.end(),
            [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
  return all;
}

}  // namespace syncline::job::execution_trace
