#include "core/plan/pipeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/index.h"
#include "core/base/internal_error.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/plan/builder.h"
#include "core/plan/fusion.h"
#include "core/plan/step_plan.h"

namespace syncline::plan {
namespace {

// Share of the weights' gradients in the backward pass: half of a matrix product's.
constexpr double kWeights = 0.5;

// Returns a stage's forward passes: groups of `pipeline` micro-batches, chunk after chunk.
std::vector<Pass> forward_passes(const Parallel& parallel, int micro_batches) {
  const bool in_groups = parallel.schedule == Schedule::kInterleaved;
  const int group = in_groups ? parallel.pipeline : micro_batches;
  std::vector<Pass> passes;
  for (int first = 0; first < micro_batches; first += group) {
    for (int chunk = 0; chunk < parallel.virtual_stages; ++chunk) {
      for (int m = first; m < std::min(first + group, micro_batches); ++m) {
        passes.push_back({Pass::Kind::kForward, chunk, m});
      }
    }
  }
  return passes;
}

// Returns the number of forward passes before the first backward pass.
std::size_t warmup(const Parallel& parallel, std::size_t passes, int stage) {
  const int behind = parallel.pipeline - 1 - stage;
  int count = behind;
  if (parallel.schedule == Schedule::kGpipe) return passes;
  if (parallel.schedule == Schedule::kInterleaved) {
    count = 2 * behind + (parallel.virtual_stages - 1) * parallel.pipeline;
  }
  return std::min(index(count), passes);
}

struct Some {
  Workload workload;
  std::vector<int> tensors;  // index in the whole, by own index
};

// Returns the tensors of one part, with their computation. `without`: the whole workload without
// its lists. `all`: bytes of the whole's gradients.
Some part_of(const Workload& whole, const Workload& without, const std::vector<Seconds>& forward,
             double all, int number) {
  Some part{without, {}};
  Workload& own = part.workload;
  own.forward = 0;
  for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
    if (whole.tensors[t].part != number) continue;
    part.tensors.push_back(static_cast<int>(t));
    own.tensors.push_back(whole.tensors[t]);
    own.tensors.back().forward = forward[t];
    own.forward += forward[t];
  }
  own.update *= static_cast<double>(gradient_bytes(own)) / std::max(1.0, all);
  return part;
}

// Returns dense gradients or an expert's, each with the time since the previous one of its kind.
Some kind_of(const Workload& whole, bool expert) {
  Some kind{without_lists(whole), {}};
  kind.workload.buffers = whole.buffers;
  Seconds skipped = 0;
  for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
    skipped += whole.tensors[t].backward;
    if (whole.tensors[t].expert != expert) continue;
    kind.workload.tensors.push_back(whole.tensors[t]);
    kind.workload.tensors.back().backward = std::exchange(skipped, 0);
    kind.tensors.push_back(static_cast<int>(t));
  }
  return kind;
}

// Moves groups to the ranks of one stage that sum a gradient: every `step`-th of the stage's.
void place_in_stage(collective::Collective& collective, const Cluster& cluster,
                    const Parallel& parallel, int stage, int step) {
  const int apart = step * (parallel.pipeline_inside ? parallel.pipeline : 1);
  const int base = stage * (parallel.pipeline_inside ? step : cluster.ranks() / parallel.pipeline);
  const collective::Groups seen = collective.groups;
  collective::Groups& groups = collective.groups;
  groups.base = base + seen.base * apart;
  groups.member_step = seen.member_step * apart;
  groups.count = seen.count * step;
  groups.group_step = step > 1 ? 1 : seen.group_step * apart;
  if (step > 1 && seen.count > 1) {
    groups.run = step;
    groups.run_step = seen.group_step * apart;
  }
  if (collective.nccl) collective::choose_algorithm(collective, collective::kNcclName, cluster);
}

// Returns how many of `neighbours` that sum a dense gradient sum one expert's too; one if they
// divide the ranks that share the experts. 0: uneven.
int experts_among(const Parallel& parallel, int neighbours) {
  const int block = neighbours * exchange_step(parallel, false);
  const int apart = exchange_step(parallel, true);
  if (block % apart == 0) return block / apart;
  return apart % block == 0 ? 1 : 0;
}

// Returns the strategy for some of the tensors: groups list these, by their new indices.
Strategy among(const Strategy& strategy, const std::vector<int>& tensors) {
  Strategy own = strategy;
  const auto here = [&](int tensor) { return std::ranges::binary_search(tensors, tensor); };
  own.traits.kept_groups = static_cast<int>(std::count_if(
      own.gather_groups.begin(), own.gather_groups.begin() + strategy.traits.kept_groups,
      [&](const auto& group) { return std::ranges::any_of(group, here); }));
  for (auto* groups : {&own.fusion.groups, &own.gather_groups}) {
    for (auto& group : *groups) {
      std::erase_if(group, [&](int tensor) { return !here(tensor); });
      for (int& tensor : group) {
        tensor = static_cast<int>(std::ranges::lower_bound(tensors, tensor) - tensors.begin());
      }
    }
    std::erase_if(*groups, [](const std::vector<int>& group) { return group.empty(); });
  }
  return own;
}

using Lists = std::vector<std::vector<int>>;

// Returns, by part of the model, the part's tensors in each of these groups, by their indices in
// the part. Groups without any are left out.
std::vector<Lists> split_by_part(std::span<const std::vector<int>> groups,
                                 const Workload& workload) {
  const auto parts = index(workload.parallel.parts());
  std::vector<int> own, count(parts, 0);  // index in its part, by tensor; tensors, by part
  for (const Tensor& tensor : workload.tensors) own.push_back(count[index(tensor.part)]++);
  std::vector<Lists> split(parts);
  std::vector<const std::vector<int>*> last(parts, nullptr);  // group of a part's last list
  for (const std::vector<int>& group : groups) {
    for (const int tensor : group) {
      if (index(tensor) >= own.size()) continue;
      const auto part = index(workload.tensors[index(tensor)].part);
      if (std::exchange(last[part], &group) != &group) split[part].emplace_back();
      split[part].back().push_back(own[index(tensor)]);
    }
  }
  return split;
}

// Returns the strategy of each part: groups list its own tensors.
std::vector<Strategy> strategies_of_parts(const Strategy& strategy, const Workload& workload) {
  Strategy without = strategy;
  without.notes.clear();
  without.fusion.groups.clear();
  without.gather_groups.clear();
  const std::span gathered(strategy.gather_groups);
  const auto fused = split_by_part(strategy.fusion.groups, workload);
  const auto kept = split_by_part(gathered.first(index(strategy.traits.kept_groups)), workload);
  const auto gathers = split_by_part(gathered, workload);
  std::vector<Strategy> strategies(fused.size(), without);
  for (std::size_t part = 0; part < fused.size(); ++part) {
    strategies[part].fusion.groups = fused[part];
    strategies[part].gather_groups = gathers[part];
    strategies[part].traits.kept_groups = static_cast<int>(kept[part].size());
  }
  return strategies;
}

// The communication of a stage's gradients, between the ranks that hold them.
class StageExchanges {
 public:
  StageExchanges(const Cluster& cluster, const Parallel& parallel, const TrainingPoint& point)
      : cluster_(cluster), parallel_(parallel), point_(point) {}

  // Returns the communication of all gradients that a stage sums, in the order of readiness.
  // Requires that the strategy's groups list these tensors alone.
  Communication of_stage(const Workload& whole, const Strategy& strategy, int stage) {
    const auto experts = std::ranges::count_if(whole.tensors, &Tensor::expert);
    const bool all = experts == static_cast<std::ptrdiff_t>(whole.tensors.size());
    if (experts == 0 || all) {
      std::vector<int> tensors(whole.tensors.size());
      std::iota(tensors.begin(), tensors.end(), 0);
      return once_passed(of_kind(whole, tensors, strategy, stage, experts > 0), strategy, whole);
    }
    Communication both = of_some(whole, strategy, stage, false);
    Communication expert = of_some(whole, strategy, stage, true);
    if (both.fetching) {
      throw InternalError("strategy '" + strategy.name + "' fetches parameters beside experts");
    }
    both.shards = std::max(both.shards, expert.shards);
    merge(both.gradients, expert.gradients, true);
    merge(both.parameters, expert.parameters, strategy.cross_step);
    return both;
  }

 private:
  // Adds exchanges to others, by readiness if they are `sorted`.
  static void merge(std::vector<BucketExchange>& into, std::vector<BucketExchange>& from,
                    bool sorted) {
    std::move(from.begin(), from.end(), std::back_inserter(into));
    if (!sorted) return;
    std::ranges::stable_sort(into, {}, [](const BucketExchange& one) { return one.bucket.ready; });
  }

  // Returns the communication of dense gradients, or of experts'.
  Communication of_some(const Workload& whole, const Strategy& strategy, int stage, bool expert) {
    const Some kind = kind_of(whole, expert);
    const Strategy own = among(strategy, kind.tensors);
    return once_passed(of_kind(kind.workload, kind.tensors, own, stage, expert), strategy, whole);
  }

  // Lets exchanges wait for the last gradient of all if the strategy sends after the passes.
  static Communication once_passed(Communication communication, const Strategy& strategy,
                                   const Workload& whole) {
    for (BucketExchange& exchange : communication.gradients) {
      if (!strategy.after_passes) break;
      exchange.bucket.ready = static_cast<int>(whole.tensors.size()) - 1;
    }
    return communication;
  }

  // Returns the communication of gradients of one kind, with the indices `tensors`.
  Communication of_kind(const Workload& kind, const std::vector<int>& tensors,
                        const Strategy& strategy, int stage, bool expert) {
    const int step = exchange_step(parallel_, expert);
    auto& view = views_.at(expert ? 1 : 0);
    if (!view) view = exchange_view(cluster_, parallel_, step);
    std::optional<Strategy> of_experts;
    if (expert) {
      of_experts = for_experts(strategy, parallel_, exchanging(cluster_, parallel_).ranks());
    }
    Communication communication =
        communication_of(kind, *view, expert ? *of_experts : strategy, point_);
    communication.ranks = cluster_.ranks();
    const auto place = [&](Route& route) {
      for (RouteStep& leg : route) place_in_stage(leg.collective, cluster_, parallel_, stage, step);
    };
    for (auto* list : {&communication.gradients, &communication.parameters}) {
      for (BucketExchange& exchange : *list) {
        for (int& tensor : exchange.bucket.tensors) tensor = tensors[index(tensor)];
        exchange.bucket.ready = tensors[index(exchange.bucket.ready)];
        exchange.needed = tensors[index(exchange.needed)];
        for (Route* route : {&exchange.reduce, &exchange.gather, &exchange.regather}) {
          place(*route);
        }
      }
    }
    for (Fetch& fetch : communication.fetches) {
      for (Moment* moment : {&fetch.asked, &fetch.needed}) {
        moment->tensor = tensors[index(moment->tensor)];
      }
      place(fetch.route);
    }
    return communication;
  }

  const Cluster& cluster_;
  const Parallel& parallel_;
  const TrainingPoint& point_;
  std::array<std::optional<Cluster>, 2> views_;  // of ranks that sum dense gradients, experts'
};

// The step of one part by itself; the stages' passes are cut from it.
struct Template {
  Plan plan;
  StepCut cut;
  Seconds forward = 0;
  Seconds backward = 0;  // without the weights' gradients if these are separate passes
  Seconds weights = 0;
  int first_tensor = 0;
  int first_bucket = 0;
  int stage = 0;
  std::vector<OpId> ids;  // by operation: its latest copy in the whole
};

// The whole plan; the stages' operations are added one by one.
class StagedPlan {
 public:
  // The operations of a part to add: all, its backward pass with that pass's gathers, or the
  // exchange of its gradients.
  enum class Which { kAll, kPass, kExchanges };

  // Prepares an empty plan. `streams`: of a stage, without those that send.
  StagedPlan(const Parallel& parallel, const Cluster& cluster, int streams)
      : parallel_(parallel),
        cluster_(cluster),
        streams_(streams),
        sending_(index(parallel.pipeline), -1),
        computed_(sending_) {
    plan_.ranks = cluster.ranks();
    plan_.roles = parallel_.pipeline;
    plan_.role_step = parallel_.pipeline_inside ? parallel_.tensor * parallel_.context
                                                : cluster.ranks() / parallel_.pipeline;
    plan_.streams = parallel_.pipeline * (streams_ + kSends);
  }

  void reserve(std::size_t operations) { plan_.ops.reserve(operations); }

  // Returns the last computation of a stage so far; -1: none.
  OpId computed(int stage) const { return computed_[index(stage)]; }
  // Makes the next computation of a stage wait for its send.
  void wait_for_send(int stage, OpId sent) { sending_[index(stage)] = sent; }

  OpId add(int stage, StreamId stream, const Work& work, std::vector<OpId> after) {
    if (stream == kComputeStream) {
      const OpId sent = std::exchange(sending_[index(stage)], -1);
      if (sent >= 0) after.push_back(sent);
    }
    plan_.ops.push_back({stage * (streams_ + kSends) + stream, std::move(after), work});
    const auto put = static_cast<OpId>(plan_.ops.size()) - 1;
    if (std::holds_alternative<Compute>(work)) computed_[index(stage)] = put;
    return put;
  }

  // Adds a collective between each rank of a stage and its peer in another. `forward`: on the
  // stream of activations, otherwise on that of their gradients.
  OpId add_pair(collective::CollectiveKind kind, int from, int to, Bytes bytes, bool forward,
                std::vector<OpId> after) {
    const auto [known, fresh] = pairs_.try_emplace({kind, from, to, bytes});
    if (fresh) {
      collective::Collective both{kind, nullptr, ranks_of(from), bytes, 1, -1};
      both.groups.size = 2;
      both.groups.member_step = (to - from) * plan_.role_step;
      collective::choose_algorithm(both, collective::library_algorithm(cluster_), cluster_);
      known->second = both;
    }
    return add(from, streams_ + (forward ? 0 : 1), known->second, std::move(after));
  }

  // Adds operations [begin, end) of a part's own step, or the selected ones. The first computation,
  // and each exchange added without its pass, waits for `input`. Returns the last computation.
  OpId put(Template& part, OpId begin, OpId end, OpId input, Which which = Which::kAll) {
    OpId last = input;
    for (OpId id = begin; id < end; ++id) {
      Op op = part.plan.ops[index(id)];
      if (!is_of(op, which)) continue;
      std::vector<OpId> after;
      for (const OpId before : op.after) {
        // A pass does not wait for exchanges that come after it.
        const bool later =
            which == Which::kPass && before >= begin && !is_of(part.plan.ops[index(before)], which);
        if (!later) after.push_back(part.ids[index(before)]);
      }
      const bool computes = std::holds_alternative<Compute>(op.work);
      if (which == Which::kExchanges && input >= 0) after.push_back(input);
      if (computes && input >= 0) after.push_back(std::exchange(input, -1));
      shift(op.work, part);
      const OpId put = add(part.stage, op.stream, op.work, std::move(after));
      plan_.ops.back().gathers = op.gathers;
      if (!op.after_previous.empty() && part.ids[index(id)] < 0) {
        waiting_.push_back({put, &part, id});
      }
      part.ids[index(id)] = put;
      if (computes) last = put;
    }
    return last;
  }

  // Makes operations wait for those of the previous step, and returns the plan.
  Plan finish(std::vector<Bucket> buckets) {
    for (const Waiting& one : waiting_) {
      for (const OpId before : one.part->plan.ops[index(one.op)].after_previous) {
        plan_.ops[index(one.put)].after_previous.push_back(one.part->ids[index(before)]);
      }
    }
    plan_.buckets = std::move(buckets);
    return std::move(plan_);
  }

 private:
  static constexpr int kSends = 2;  // streams: activations and their gradients

  // An operation that will wait for those of the previous step, once all are added.
  struct Waiting {
    OpId put = 0;
    const Template* part = nullptr;
    OpId op = 0;
  };

  static bool is_of(const Op& op, Which which) {
    const bool pass = std::holds_alternative<Compute>(op.work) || op.gathers;
    return which == Which::kAll || pass == (which == Which::kPass);
  }

  // Changes indices of tensors and buckets from the part's to the whole's.
  static void shift(Work& work, const Template& part) {
    if (auto* compute = std::get_if<Compute>(&work); compute != nullptr && compute->last >= 0) {
      compute->first += part.first_tensor;
      compute->last += part.first_tensor;
    }
    shift_bucket(work, part.first_bucket);
  }

  // Returns each rank of a stage as a group of its own.
  collective::Groups ranks_of(int stage) const {
    const int all = plan_.ranks / plan_.roles;
    collective::Groups groups{stage * plan_.role_step, all, 1, 1, 1};
    if (all > plan_.role_step) {
      groups.run = plan_.role_step;
      groups.run_step = plan_.role_step * plan_.roles;
    }
    return groups;
  }

  const Parallel& parallel_;
  const Cluster& cluster_;
  int streams_;
  Plan plan_;
  std::vector<OpId> sending_;  // by stage: the send that its next computation awaits
  // Collectives by kind, sender, receiver and bytes: each micro-batch sends the same.
  std::map<std::tuple<collective::CollectiveKind, int, int, Bytes>, collective::Collective> pairs_;
  std::vector<OpId> computed_;  // by stage: the last computation so far
  std::vector<Waiting> waiting_;
};

// Walks through the stages' passes; each is a part's pass cut from its step.
class PassWalk {
 public:
  PassWalk(const Workload& workload, const Strategy& strategy, StagedPlan& plan,
           std::vector<Template>& parts)
      : name_(strategy.name),
        parallel_(workload.parallel),
        micro_batches_(static_cast<int>(workload.micro_batches)),
        each_micro_batch_(strategy.each_micro_batch),
        late_(after_passes(strategy)),
        plan_(plan),
        parts_(parts),
        arrived_(index(parallel_.parts() * micro_batches_), -1),
        returned_(arrived_) {}

  // True if gradients are exchanged once a stage's passes are over.
  static bool after_passes(const Strategy& strategy) {
    return strategy.after_passes || !strategy.overlap;
  }

  // Adds all passes. Each stage goes on as soon as the input of its next pass is in the plan.
  void walk_passes() {
    std::vector<std::vector<Pass>> passes;
    for (int s = 0; s < parallel_.pipeline; ++s) {
      passes.push_back(passes_of(parallel_, micro_batches_, s));
    }
    std::vector<std::size_t> next(passes.size(), 0);
    for (bool moved = true; std::exchange(moved, false);) {
      for (std::size_t s = 0; s < passes.size(); ++s) {
        for (; next[s] < passes[s].size(); ++next[s]) {
          if (!walk(passes[s][next[s]], static_cast<int>(s))) break;
          moved = true;
        }
      }
    }
    for (std::size_t s = 0; s < passes.size(); ++s) {
      if (next[s] == passes[s].size()) continue;
      throw InternalError("strategy '" + name_ + "': stage " + std::to_string(s) + " of " +
                          std::to_string(parallel_.pipeline) + " waits for ever, " +
                          std::to_string(next[s]) + " of its " + std::to_string(passes[s].size()) +
                          " passes done");
    }
  }

 private:
  using Which = StagedPlan::Which;

  bool splits_backward() const { return parallel_.schedule == Schedule::kZeroBubble; }

  // Adds a pass; false: its input is not in the plan so far.
  bool walk(const Pass& pass, int stage) {
    const int part = pass.chunk * parallel_.pipeline + stage;
    const bool forward = pass.kind == Pass::Kind::kForward;
    const int from = forward ? part - 1 : part + 1;
    OpId input = -1;
    if (pass.kind != Pass::Kind::kWeights && from >= 0 && from < parallel_.parts()) {
      input = (forward ? arrived_ : returned_)[slot(from, pass.micro_batch)];
      if (input < 0) return false;
    }
    const OpId done = compute(pass, part, input);
    if (pass.kind != Pass::Kind::kWeights) send(pass, part, done);
    return true;
  }

  std::size_t slot(int part, int micro_batch) const {
    return index(part * micro_batches_ + micro_batch);
  }

  // Adds the computation of a pass of part `number`, after `input`. The first forward pass and
  // passes that exchange gradients are copied from the part's own step; any other is one operation.
  // Returns the last computation.
  OpId compute(const Pass& pass, int number, OpId input) {
    Template& part = parts_[index(number)];
    const bool last = pass.micro_batch == micro_batches_ - 1;
    const bool gradients =
        pass.kind == (splits_backward() ? Pass::Kind::kWeights : Pass::Kind::kBackward);
    if (pass.kind == Pass::Kind::kForward && pass.micro_batch == 0) {
      return plan_.put(part, 0, part.cut.backward, input);
    }
    if (gradients && (last || (each_micro_batch_ && !late_))) {
      return plan_.put(part, part.cut.backward, part.cut.rest, input,
                       late_ ? Which::kPass : Which::kAll);
    }
    const bool forward = pass.kind == Pass::Kind::kForward;
    const Seconds seconds = forward                              ? part.forward
                            : pass.kind == Pass::Kind::kBackward ? part.backward
                                                                 : part.weights;
    return plan_.add(part.stage, kComputeStream,
                     Compute{forward ? Phase::kForward : Phase::kBackward, seconds},
                     input < 0 ? std::vector<OpId>{} : std::vector{input});
  }

  // Sends a pass's result to the next stage, or to the previous one. Unless sends overlap, this
  // stage's next pass waits for it.
  void send(const Pass& pass, int part, OpId done) {
    const bool forward = pass.kind == Pass::Kind::kForward;
    const int to = forward ? part + 1 : part - 1;
    OpId& there = (forward ? arrived_ : returned_)[slot(part, pass.micro_batch)];
    there = done;
    if (to < 0 || to >= parallel_.parts()) return;
    const int stage = parts_[index(part)].stage;
    there = plan_.add_pair(collective::CollectiveKind::kBroadcast, stage, parts_[index(to)].stage,
                           parallel_.activation, forward, {done});
    if (!parallel_.overlap_sends) plan_.wait_for_send(stage, there);
  }

  std::string name_;  // of the strategy
  const Parallel& parallel_;
  int micro_batches_;
  bool each_micro_batch_;
  bool late_;
  StagedPlan& plan_;
  std::vector<Template>& parts_;
  std::vector<OpId> arrived_;   // by part and micro-batch: when the next part may go on,
  std::vector<OpId> returned_;  // and the previous one
};

// Cuts the steps of a job's parts for the stages' passes.
class PartCuts {
 public:
  PartCuts(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
           const TrainingPoint& point)
      : parallel_(workload.parallel), exchanges_(cluster, parallel_, point) {
    Workload without = without_lists(workload);
    without.parallel = {};
    const std::vector<Seconds> forward = forward_times(workload);
    const auto all = static_cast<double>(gradient_bytes(workload));
    const std::vector<Strategy> strategies = strategies_of_parts(strategy, workload);
    for (int k = 0; k < parallel_.parts(); ++k) {
      parts.push_back(cut(part_of(workload, without, forward, all, k), strategies[index(k)], k));
    }
  }

  std::vector<Template> parts;
  std::vector<Bucket> buckets;  // of all parts, with the whole's indices

 private:
  // Returns the step of part `number`, planned by itself for one micro-batch. Its buckets go to
  // `buckets`, with the indices of the whole. `some`: the part's workload and its tensors.
  Template cut(Some some, const Strategy& strategy, int number) {
    Workload& own = some.workload;
    own.micro_batches = 1;
    // Once per stage, not per chunk.
    const bool last_chunk = number + parallel_.pipeline >= parallel_.parts();
    if (!last_chunk) own.host_gap = 0;
    Template made;
    made.stage = number % parallel_.pipeline;
    made.forward = own.forward;
    made.backward = backward_time(own);
    if (parallel_.schedule == Schedule::kZeroBubble) {
      made.weights = kWeights * made.backward;
      made.backward -= made.weights;
      for (Tensor& tensor : own.tensors) tensor.backward *= kWeights;
    }
    if (!some.tensors.empty()) made.first_tensor = some.tensors.front();
    made.first_bucket = static_cast<int>(buckets.size());
    Communication communication = exchanges_.of_stage(own, strategy, made.stage);
    communication.by_clock = false;  // other stages delay its passes
    if (number >= parallel_.pipeline) communication.step_begin = communication.buffer_broadcast = 0;
    made.plan = step_plan(own, std::move(communication), &made.cut);
    for (Bucket& bucket : made.plan.buckets) {
      for (int& tensor : bucket.tensors) tensor += made.first_tensor;
      bucket.ready += made.first_tensor;
      buckets.push_back(std::move(bucket));
    }
    made.ids.assign(made.plan.ops.size(), -1);
    return made;
  }

  const Parallel& parallel_;
  StageExchanges exchanges_;
};

// Returns the bytes of the tied gradient in the format of its sum.
Bytes tied_bytes(const Workload& workload, const Fusion& fusion) {
  const auto& tensors = workload.tensors;
  const DType own = tensors.empty() ? DType::kFp32 : tensors.back().dtype;
  return workload.parallel.tied * size_of(sum_format(own, fusion)) / size_of(own);
}

// Adds the sum of the gradients of an embedding that the first and the last stage both hold. Their
// updates wait for it; replicas are summed before ends (Megatron's finalize_model_grads). -1: none.
OpId tie_ends(const Workload& workload, const Fusion& fusion, const std::vector<Template>& parts,
              StagedPlan& plan) {
  const int last = workload.parallel.pipeline - 1;
  if (workload.parallel.tied == 0 || last == 0) return -1;
  std::vector<OpId> summed;
  for (const Template* part : {&parts.front(), &parts.back()}) {
    for (OpId id = part->cut.backward; id < part->cut.rest; ++id) {
      if (!std::holds_alternative<Busy>(part->plan.ops[index(id)].work)) {
        summed.push_back(part->ids[index(id)]);
      }
    }
  }
  return plan.add_pair(collective::CollectiveKind::kAllReduce, 0, last,
                       tied_bytes(workload, fusion), true, std::move(summed));
}

// Returns the plan of a job with several stages: their passes, then exchanges that wait for the
// last of them, then the updates.
Plan pipelined_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                    const TrainingPoint& point) {
  PartCuts cuts(workload, cluster, strategy, point);
  std::vector<Template>& parts = cuts.parts;
  int streams = 1;
  for (const Template& part : parts) streams = std::max(streams, part.plan.streams);
  StagedPlan plan(workload.parallel, cluster, streams);
  constexpr std::size_t kOfMicroBatch = 4;  // a part's passes and sends
  plan.reserve(kOfMicroBatch * parts.size() * index(workload.micro_batches));
  PassWalk(workload, strategy, plan, parts).walk_passes();
  if (PassWalk::after_passes(strategy)) {
    for (Template& part : parts) {
      plan.put(part, part.cut.backward, part.cut.rest, plan.computed(part.stage),
               StagedPlan::Which::kExchanges);
    }
  }
  const OpId tied = tie_ends(workload, strategy.fusion, parts, plan);
  for (std::size_t k = parts.size(); k-- > 0;) {
    const bool holds = k == 0 || k + 1 == parts.size();
    const auto end = static_cast<OpId>(parts[k].plan.ops.size());
    plan.put(parts[k], parts[k].cut.rest, end, holds ? tied : -1);
  }
  Plan made = plan.finish(std::move(cuts.buckets));
  made.updates_by_bucket = strategy.update == Strategy::Update::kPerBucket;
  return made;
}

}  // namespace

// Names every field, so that it does not compile without a new one.
Workload without_lists(const Workload& whole) {
  const auto& [name, source, batch, batch_given, tokens, framework_version, micro_batches, parallel,
               forward, update, optimizer_states, optimizer_given, host_gap, buffer_broadcast,
               tensors, buffers, operators, rated_times, copies_measured, copy_kernels, time_spread,
               recompute, recompute_every, delayed_scaling, times_given] = whole;
  return {name,
          source,
          batch,
          batch_given,
          tokens,
          framework_version,
          micro_batches,
          parallel,
          forward,
          update,
          optimizer_states,
          optimizer_given,
          host_gap,
          buffer_broadcast,
          {},
          {},
          {},
          rated_times,
          copies_measured,
          copy_kernels,
          time_spread,
          recompute,
          recompute_every,
          delayed_scaling,
          times_given};
}

std::vector<Pass> passes_of(const Parallel& parallel, int micro_batches, int stage) {
  const std::vector<Pass> forward = forward_passes(parallel, micro_batches);
  const std::size_t ahead = warmup(parallel, forward.size(), stage);
  const bool splits = parallel.schedule == Schedule::kZeroBubble;
  std::vector<Pass> passes(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < forward.size(); ++i) {
    if (i + ahead < forward.size()) passes.push_back(forward[i + ahead]);
    Pass back = forward[i];
    back.kind = Pass::Kind::kBackward;
    back.chunk = parallel.virtual_stages - 1 - back.chunk;
    passes.push_back(back);
    // Weights' gradients lag by one micro-batch per earlier stage, so that earlier stages wait
    // less; the rest comes last.
    if (splits && back.micro_batch >= stage) {
      passes.push_back({Pass::Kind::kWeights, back.chunk, back.micro_batch - stage});
    }
  }
  for (int m = std::max(0, micro_batches - stage); splits && m < micro_batches; ++m) {
    passes.push_back({Pass::Kind::kWeights, 0, m});
  }
  return passes;
}

std::optional<UnevenGroups> uneven_groups(const Strategy& strategy, const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  const bool apart = parallel.whole_job() && std::ranges::any_of(workload.tensors, &Tensor::expert);
  if (!apart) return std::nullopt;
  const int share = exchange_step(parallel, true);
  const int least = share / std::gcd(share, exchange_step(parallel, false));
  const auto judge = [&](const char* key, int size, bool whole) -> std::optional<UnevenGroups> {
    // Copies of an expert are in different groups, so no group holds one that is split.
    const bool even = whole ? size % least == 0 : experts_among(parallel, size) > 0;
    if (even) return std::nullopt;
    return UnevenGroups{
        key, "groups of " + std::to_string(size) + " ranks do not fit the experts, " + "which " +
                 std::to_string(least) +
                 " of those ranks share (workload.parallel): " + "expected a multiple of " +
                 std::to_string(least) + (whole ? "" : ", or a divisor")};
  };
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    const bool sharded =
        shards_update(strategy) && strategy.exchange != Strategy::Exchange::kShardedUpdate;
    auto uneven = judge("hierarchy.group_size", strategy.hierarchy.group_size, sharded);
    if (uneven) return uneven;
  }
  if (strategy.traits.regather_group == 0) return std::nullopt;
  return judge("regather_group", strategy.traits.regather_group, false);
}

Strategy for_experts(const Strategy& strategy, const Parallel& parallel, int ranks) {
  Strategy own = strategy;
  const auto fit = [&](int& size) {
    size = experts_among(parallel, size);
    if (size > 0) return;
    throw InternalError("strategy '" + strategy.name +
                        "' has groups of ranks that do not go with the experts' own");
  };
  if (own.hierarchy.form != Hierarchy::Form::kFlat) fit(own.hierarchy.group_size);
  if (own.traits.regather_group > 0) fit(own.traits.regather_group);
  // Padding to the ranks of a shard group (FSDP) becomes padding to those of the experts' group.
  const int shards = shard_ranks(strategy, ranks);
  const int theirs = shard_ranks(own, experts_among(parallel, ranks));
  for (std::int64_t* padding : {&own.traits.buckets.pad_rows, &own.traits.buckets.pad_elements}) {
    if (*padding == shards) *padding = theirs;
  }
  return own;
}

Plan whole_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point) {
  if (workload.parallel.pipeline > 1) return pipelined_plan(workload, cluster, strategy, point);
  std::vector<int> tensors(workload.tensors.size());
  std::iota(tensors.begin(), tensors.end(), 0);
  return step_plan(workload, StageExchanges(cluster, workload.parallel, point)
                                 .of_stage(workload, among(strategy, tensors), 0));
}

Seconds least_step(const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  const std::vector<Seconds> times = forward_times(workload);
  const auto parts = index(parallel.parts());
  std::vector<Seconds> forward(parts, 0), backward(parts, 0);
  std::vector<double> bytes(index(parallel.pipeline), 0);
  for (std::size_t t = 0; t < times.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    forward[index(tensor.part)] += times[t];
    backward[index(tensor.part)] += tensor.backward;
    bytes[index(tensor.part % parallel.pipeline)] += static_cast<double>(tensor.bytes());
  }
  const auto micro_batches = static_cast<double>(workload.micro_batches);
  const double all = std::max(1.0, static_cast<double>(gradient_bytes(workload)));
  // If weights' gradients are separate passes, no stage waits for a stage's last few.
  const bool splits = parallel.schedule == Schedule::kZeroBubble && parallel.pipeline > 1;
  const double awaited = splits ? 1 - kWeights : 1;
  Seconds least = 0, before = 0;  // of the first chunks of earlier stages
  for (int s = 0; s < parallel.pipeline; ++s) {
    Seconds passes = 0, own_backward = 0;
    for (auto k = index(s); k < parts; k += index(parallel.pipeline)) {
      passes += micro_batches * (forward[k] + backward[k]);
      own_backward += backward[k];
    }
    const double late = splits ? std::min<double>(micro_batches, s + 1) : 0;
    least = std::max({least, before + passes - late * kWeights * own_backward,
                      passes + workload.update * bytes[index(s)] / all});
    before += forward[index(s)] + awaited * backward[index(s)];
  }
  return least;
}

}  // namespace syncline::plan
