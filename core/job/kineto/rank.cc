#include "core/job/kineto/rank.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/job/kineto/sizes.h"
#include "core/job/kineto/warnings.h"
#include "core/job/kineto/windows.h"

namespace syncline::job::kineto {
namespace {

std::string stem_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".json", ".trace", ".pt"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

std::vector<std::int64_t> gradient_exchanges(const DerivedStep& derived) {
  std::vector<std::int64_t> elements;
  for (std::size_t i = 0; i < derived.sent.size(); ++i) {
    if (derived.sent[i].of_gradients) elements.push_back(derived.step.exchanges[i].elements);
  }
  return elements;
}

// Those with as many gradients and passes as most steps have, and one first step less where DDP had
// not yet rebuilt its buckets.
void leave_out_unusual(std::vector<DerivedStep>& steps, std::vector<std::string>& notes) {
  using Shape = std::pair<std::size_t, int>;
  const auto shape_of = [](const DerivedStep& derived) {
    return Shape(derived.step.gradients.size(), derived.passes);
  };
  std::map<Shape, std::size_t> counts;
  for (const DerivedStep& derived : steps) ++counts[shape_of(derived)];
  const Shape usual =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  std::vector<int> partial;
  std::erase_if(steps, [&](const DerivedStep& derived) {
    const bool other = shape_of(derived) != usual;
    if (other) partial.push_back(derived.step.number);
    return other;
  });
  if (!partial.empty()) {
    notes.push_back(
        "steps with other gradients or backward passes than most (cut off, or unused "
        "parameters) are left out: " +
        listed(partial));
  }
  if (steps.size() < 3) return;
  const auto second = gradient_exchanges(steps[1]);
  const bool rebuilt = gradient_exchanges(steps[0]) != second;
  if (!rebuilt || gradient_exchanges(steps[2]) != second) return;
  notes.push_back("the first step, " + std::to_string(steps[0].step.number) +
                  ", has other buckets than those behind it and is left out");
  steps.erase(steps.begin());
}

std::vector<DerivedStep> derive_all(const Trace& trace, const Timeline& timeline,
                                    const std::vector<Arrival>& arrivals, RankRead& read) {
  const std::vector<StepWindow> windows = windows_of(trace, timeline, arrivals, read.notes);
  std::vector<DerivedStep> steps;
  std::vector<int> idle;
  std::size_t profiled = 0;
  for (const StepWindow& window : windows) {
    DerivedStep derived = derive_step(trace, timeline, arrivals, window);
    profiled += static_cast<std::size_t>(window.profiled);
    if (derived.step.gpu > 0) {
      steps.push_back(std::move(derived));
    } else {
      idle.push_back(window.number);
    }
  }
  if (profiled > 0) read.operators_a_step = trace.operators / profiled;
  if (steps.empty()) {
    throw InputError(trace.path +
                     ": no step with gradients and work of a GPU in it: AccumulateGrad "
                     "was not recorded (inference, or compiled autograd), or no "
                     "kernels beside it");
  }
  if (!idle.empty()) {
    read.notes.push_back("steps without work of a GPU are left out: " + listed(idle));
  }
  leave_out_unusual(steps, read.notes);
  return steps;
}

void add_facts_of(const DerivedStep& typical, Observed& observed) {
  const Step& step = typical.step;
  bool exchanged = false;
  for (std::size_t i = 0; i < typical.sent.size(); ++i) {
    const Exchange& exchange = step.exchanges[i];
    exchanged = exchanged || typical.sent[i].of_gradients;
    for (const int place : exchange.gradients) {
      const bool other = step.gradients[static_cast<std::size_t>(place)].dtype != exchange.dtype;
      observed.comm_hook = observed.comm_hook || other;
    }
  }
  observed.comm_hook = observed.comm_hook || typical.hooked;
  observed.bucket_views = exchanged && !typical.copied_in && typical.copies_out.empty();
  observed.accumulation_steps = std::max(typical.passes / typical.exchanging_passes, 1);
  observed.ddp_modules = std::max(typical.forwards / typical.passes, 1);
}

void note_reading(const Trace& trace, const Timeline& timeline, RankRead& read) {
  if (trace.damaged > 0) {
    read.notes.push_back(std::to_string(trace.damaged) +
                         " events that cannot be read are left out");
  }
  if (timeline.devices > 1) {
    read.notes.push_back("kernels of " + std::to_string(timeline.devices) +
                         " GPUs in one trace; GPU " + std::to_string(timeline.device) +
                         ", which has most, is read");
  }
  if (timeline.kernels_alone > timeline.kernels_launched) {
    throw InputError(trace.path +
                     ": most kernels stand there without the call that launched them "
                     "(cuda_runtime), so nothing tells forward from backward; record "
                     "with ProfilerActivity.CPU and CUDA");
  }
  if (timeline.kernels_alone > 0) {
    read.notes.push_back(std::to_string(timeline.kernels_alone) +
                         " kernels that were launched before the profile began are left out");
  }
}

void note_passes(const DerivedStep& typical, RankRead& read) {
  if (read.observed.accumulation_steps > 1) {
    read.notes.push_back(std::to_string(read.observed.accumulation_steps) +
                         " backward passes for one exchange (no_sync): all but the last count as "
                         "forward");
  }
  if (typical.exchanging_passes > 1) {
    read.notes.push_back(std::to_string(typical.exchanging_passes) +
                         " backward passes of a step exchange gradients: taken as one, with the "
                         "forward passes between them");
  }
}

}  // namespace

RankRead read_rank(const std::string& path) {
  const Trace trace = read_trace(path);
  RankRead read;
  read.rank = trace.rank;
  read.world_size = trace.world_size;
  const std::vector<Arrival> arrivals = arrivals_of(trace);
  refuse_untrained(trace, arrivals);
  Timeline timeline(trace);
  mark_gradient_exchanges(timeline, arrivals);
  const bool reduced = std::ranges::any_of(
      timeline.collectives, [](const Collective& collective) { return collective.of_gradients; });
  const bool sharded = looks_sharded(trace, timeline);
  // Inference has reduce-scatters too.
  const bool trains = !arrivals.empty() || !trace.sharded.empty();
  const bool parallel = looks_parallel(trace, timeline);
  const bool named = !trace.parallel.empty() || !sharded;
  if (parallel && named && !reduced && !arrivals.empty()) refuse_parallel(trace, timeline);
  if (sharded && !reduced && trains) refuse_sharded(trace, timeline);
  note_reading(trace, timeline, read);
  read.collectives_on_device = timeline.collectives_on_device;
  std::vector<DerivedStep> steps = derive_all(trace, timeline, arrivals, read);

  Observed& observed = read.observed;
  observed.file = path;
  observed.framework = "pytorch";
  observed.version = trace.torch_version;
  observed.name = stem_of(path);
  observed.optimizers = trace.optimizers;
  observed.backend = trace.backend;
  observed.nccl_version = trace.nccl_version;
  observed.world_size = std::max(trace.world_size.value_or(1), 1);
  const auto device = static_cast<std::size_t>(timeline.device);
  if (device < trace.devices.size()) observed.device = trace.devices[device];
  observed.devices_a_node = static_cast<int>(trace.devices.size());
  Rank& rank = observed.ranks.emplace_back();
  rank.rank = trace.rank.value_or(0);
  bool assumed = false;
  bool carried = false;
  for (DerivedStep& derived : steps) {
    const Sizes sizes = find_sizes(trace, derived);
    if (sizes.from == SizesFrom::kNothing && sharded) refuse_sharded(trace, timeline);
    const bool shared = parallel && derived.forwards == 0;
    if (sizes.from == SizesFrom::kNothing && shared) refuse_parallel(trace, timeline);
    if (sizes.from == SizesFrom::kNothing) refuse_sizes(trace, derived);
    assumed = assumed || sizes.assumed_fp32;
    carried = carried || sizes.carried;
    rank.steps.push_back(derived.step);
  }
  // All-reduces of something else (HSDP's shards, tensor parallelism) carry none of them.
  if (sharded && !carried) refuse_sharded(trace, timeline);
  const auto typical = static_cast<std::size_t>(&typical_step(rank) - rank.steps.data());
  add_facts_of(steps[typical], observed);
  note_passes(steps[typical], read);
  if (assumed) {
    read.notes.push_back("no event tells the gradients' number format: taken as fp32");
  }
  return read;
}

}  // namespace syncline::job::kineto
