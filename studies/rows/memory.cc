//   weights      in their gradients' format: 4 bytes in fp32, 2 in fp16 and bf16
//   gradients    in the format of their sums, and fp32 copies that an update reads
//   optimizer    its states in fp32, and an fp32 copy of narrower weights
//                (an offload keeps these, and what else leaves the device, in the host's memory)
//   buffers      buckets that gradients are copied into, parameters gathered ahead of their layers,
//                keys and values gathered for ring attention, a codec's output and residuals,
//                parameters that LocalSGD averages
//   activations  values that the forward pass keeps for the backward pass, and copies of logits in
//                the loss (activations_of); an estimate, only for workloads with operators
#include "studies/rows/memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/index.h"
#include "core/codec.h"
#include "core/communication.h"
#include "core/plan/buckets.h"
#include "core/plan/fusion.h"
#include "core/plan/pipeline.h"
#include "formats/dialect/dialect.h"
#include "formats/text/digits.h"

namespace syncline::measure {
namespace {

using Groups = std::vector<std::vector<int>>;

constexpr double kFull = 4;  // bytes of an fp32 value

// Returns the bytes of a tensor's sum; a sparse one has the touched rows.
double one_sum(const Tensor& tensor, const Strategy& strategy) {
  auto values = static_cast<double>(tensor.elements);
  if (tensor.sparse && !tensor.shape.empty()) {
    values *= static_cast<double>(tensor.sparse_rows) / static_cast<double>(tensor.shape.front());
  }
  return values * static_cast<double>(size_of(plan::sum_format(tensor.dtype, strategy.fusion)));
}

double weights_of(const Tensor& tensor) { return static_cast<double>(tensor.bytes()); }

// Returns the bytes of the states, and of an fp32 copy of narrower weights.
double optimizer_of(const Tensor& tensor, double weights, const Workload& workload) {
  if (tensor.frozen) return 0;
  const auto elements = static_cast<double>(tensor.elements);
  const double copy = weights < kFull * elements ? kFull : 0;
  const double size = std::max(kFull, static_cast<double>(size_of(tensor.dtype)));
  return elements * (copy + size * workload.optimizer_states);
}

template <typename Of>
double sum_of(const Workload& workload, const std::vector<int>& group, Of of) {
  return std::accumulate(group.begin(), group.end(), 0.0,
                         [&](double sum, int t) { return sum + of(workload.tensors[index(t)]); });
}

// Returns the memory of the two largest groups: one computes while the other is exchanged.
template <typename Of>
double two_largest(const Workload& workload, const Groups& groups, Of of) {
  double most = 0, second = 0;
  for (const auto& group : groups) {
    const double bytes = sum_of(workload, group, of);
    second = std::max(second, std::min(most, bytes));
    most = std::max(most, bytes);
  }
  return most + second;
}

// Memory of a rank of one stage for its dense tensors or its experts', summed by `ranks` ranks.
class Accounts {
 public:
  Accounts(const Workload& workload, const Strategy& strategy, int ranks, int stage, bool expert)
      : workload_(workload), strategy_(strategy), ranks_(ranks) {
    if (ranks_ > 1 && shards_update(strategy)) {
      const bool groups = strategy.local_sgd.enabled && strategy.local_sgd.subgroup > 1;
      const int among = groups ? strategy.local_sgd.subgroup : ranks_;
      shard_ = shard_ranks(strategy, among);
    }
    if (shard_ > 1 || parameters_on_host(strategy))
      level_ = strategy.regather ? FrameworkTraits::Sharded::kParameters : strategy.traits.sharded;
    const Parallel& parallel = workload.parallel;
    for (const Tensor& tensor : workload.tensors) {
      const auto size = static_cast<double>(size_of(tensor.dtype));
      if (!tensor.frozen) {
        narrowest_ = std::min(narrowest_, size);
        widest_ = std::max(widest_, size);
      }
      const bool own = !parallel.whole_job() ||
                       (tensor.part % parallel.pipeline == stage && tensor.expert == expert);
      own_.push_back(own ? 1 : 0);
    }
    summed_.assign(workload.tensors.size(), 0);
    for (const int t : plan::summed_tensors(workload, strategy)) summed_[index(t)] = 1;
  }

  // Returns the memory of the stage's parameters, gradients and optimizer states, and of buffers.
  Memory held() const {
    Memory memory;
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (own_[t] == 0) continue;
      const Tensor& tensor = workload_.tensors[t];
      const double shards = tensor.sparse ? 1 : shard_;
      const double of_parameters = shards_parameters() ? shards : 1;
      const double weights = held_weights(tensor);
      if (!parameters_on_host(strategy_)) memory.weights += weights / of_parameters;
      if (!gradients_leave()) {
        memory.gradients += shards_gradients() ? shard_of_gradient(tensor) : gradient_of(tensor);
      }
      double& states = states_on_host(strategy_) ? memory.on_host : memory.optimizer;
      states += optimizer_of(tensor, weights, workload_) / shards;
      memory.optimizer += outer_of(tensor) / of_parameters;
      if (strategy_.traits.fp32_copies && !states_on_host(strategy_)) {
        memory.gradients += copy_of(tensor) / shards;
      }
    }
    memory.buffers = gathered() + buckets() + encoded();
    return memory;
  }

 private:
  // Returns the bytes of a gradient's sum. A frozen parameter has none, unless FSDP1 sums its unit
  // as one.
  double gradient_of(const Tensor& tensor) const {
    const auto t = static_cast<std::size_t>(&tensor - workload_.tensors.data());
    return summed_[t] == 1 ? one_sum(tensor, strategy_) : 0;
  }
  // Returns the bytes of a gradient's shard. A sum in a half format is cast to the parameters'
  // format on arrival (torch 2.6, FSDP's post-backward hooks); whole gradients are not cast.
  double shard_of_gradient(const Tensor& tensor) const {
    const auto own = static_cast<double>(size_of(tensor.dtype));
    const auto summed =
        static_cast<double>(size_of(plan::sum_format(tensor.dtype, strategy_.fusion)));
    const double shards = tensor.sparse ? 1 : shard_;
    return gradient_of(tensor) * std::max(1.0, own / summed) / shards;
  }
  // Returns the bytes of the last outer step's parameters and of its momentum.
  double outer_of(const Tensor& tensor) const {
    const Outer& outer = strategy_.local_sgd.outer;
    if (ranks_ == 1 || !outer.any() || tensor.frozen) return 0;
    const bool momentum = outer.optimizer == Outer::Optimizer::kNesterov;
    return (momentum ? 2 : 1) * kFull * static_cast<double>(tensor.elements);
  }
  // Returns the bytes of weights. If gradients of all formats add up in fp32, all weights are as
  // narrow as the products' operands (Megatron's --bf16).
  double held_weights(const Tensor& tensor) const {
    const double own = weights_of(tensor);
    return strategy_.fusion.sums_in_fp32() && !tensor.frozen
               ? std::min(own, static_cast<double>(tensor.elements) * narrowest_)
               : own;
  }
  // Returns the bytes of a gradient's fp32 copy, which the update reads: of its touched rows, if it
  // is sparse; 0 if it adds up in fp32 or wider.
  double copy_of(const Tensor& tensor) const {
    const auto size = static_cast<double>(size_of(tensor.dtype));
    if (strategy_.fusion.sums_in_fp32() || size >= kFull) return 0;
    return gradient_of(tensor) * kFull / size;
  }
  // Returns true if gradients go to the host's memory bucket by bucket (ZeRO's stages 2 and 3).
  bool gradients_leave() const {
    return states_on_host(strategy_) &&
           strategy_.traits.sharded != FrameworkTraits::Sharded::kStates &&
           (strategy_.each_micro_batch || workload_.micro_batches == 1);
  }
  bool shards_parameters() const { return level_ == FrameworkTraits::Sharded::kParameters; }
  // Returns true if gradients are sharded: those that add up without an exchange are whole.
  bool shards_gradients() const {
    return level_ != FrameworkTraits::Sharded::kStates &&
           (strategy_.each_micro_batch || workload_.micro_batches == 1);
  }

  template <typename Of>
  double all(Of of) const {
    double sum = 0;
    for (std::size_t t = 0; t < own_.size(); ++t) {
      const Tensor& tensor = workload_.tensors[t];
      sum += own_[t] == 0 || tensor.sparse ? 0 : of(tensor);
    }
    return sum;
  }

  Groups own_of(const Groups& groups) const {
    Groups all;
    for (const std::vector<int>& group : groups) {
      std::vector<int> own;
      std::ranges::copy_if(group, std::back_inserter(own),
                           [&](int t) { return own_[index(t)] != 0; });
      if (!own.empty()) all.push_back(std::move(own));
    }
    return all;
  }

  // Returns groups of gradients that share a bucket: the explicit groups, else the layers.
  Groups fused() const {
    if (strategy_.fusion.rule == Fusion::Rule::kGroups) return own_of(strategy_.fusion.groups);
    Groups groups;
    std::map<std::string, std::size_t> layers;
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (own_[t] == 0) continue;
      const std::string& name = workload_.tensors[t].name;
      const auto [place, fresh] =
          layers.try_emplace(plan::layer_of(name, strategy_.fusion.layer_key), groups.size());
      if (fresh) groups.emplace_back();
      groups[place->second].push_back(static_cast<int>(t));
    }
    return groups;
  }

  // Returns the bytes of whole parameters: all if they are kept between the passes. Else those of
  // the current layers, and those kept for the backward pass (ZeRO's stage 3).
  double gathered() const {
    if (!shards_parameters()) return 0;
    const auto in_place = [&](const Tensor& tensor) {
      const int bytes = strategy_.traits.gather_bytes == 1 && !plan::layer_matrix(tensor)
                            ? 2
                            : strategy_.traits.gather_bytes;
      return bytes > 0 ? static_cast<double>(bytes * tensor.elements) : weights_of(tensor);
    };
    if (!strategy_.regather) return all(in_place);
    const auto sum = [&](double total, const std::vector<int>& group) {
      return total + sum_of(workload_, group, in_place);
    };
    const double second =
        strategy_.traits.regather_group > 0 ? all(in_place) / strategy_.traits.regather_group : 0;
    Groups groups = own_of(strategy_.gather_groups);
    if (strategy_.traits.fetches.any()) {
      const double fetched = sum(0, plan::fetch_trace(workload_, strategy_).most);
      return second + std::accumulate(groups.begin(), groups.end(), fetched, sum);
    }
    if (groups.empty()) groups = fused();
    const auto kept =
        groups.begin() + std::min<std::ptrdiff_t>(strategy_.traits.kept_groups,
                                                  static_cast<std::ptrdiff_t>(groups.size()));
    const double stay = std::accumulate(groups.begin(), kept, 0.0, sum);
    return second + stay + two_largest(workload_, Groups(kept, groups.end()), in_place);
  }

  // Returns the bytes of copies of gradients in their buckets. Sharded gradients are whole only in
  // the current buckets; DeepSpeed allocates buffers of reduce_bucket_size, two if they overlap.
  double buckets() const {
    if (ranks_ == 1) return 0;
    const LocalSgd& local = strategy_.local_sgd;
    if (local.enabled) {
      const bool exchanges = local.subgroup > 1 || local.warmup_gradients;
      // The part averaged at one time.
      const auto trained = [](const Tensor& tensor) {
        return tensor.frozen ? 0 : weights_of(tensor);
      };
      const double sent = all(trained) / local.fragments / (shards_parameters() ? shard_ : 1);
      return sent + (exchanges && strategy_.bucket_copies ? copies() : 0);
    }
    if (shard_ == 1) return strategy_.bucket_copies ? copies() : 0;
    const double laid_out = strategy_.bucket_copies
                                ? static_cast<double>(strategy_.fusion.size) / kFull * widest_ *
                                      (strategy_.overlap && !shards_parameters() ? 2 : 1)
                                : 0;
    if (!shards_gradients()) return laid_out;
    return std::max(laid_out, two_largest(workload_, fused(), [&](const Tensor& tensor) {
                      return gradient_of(tensor);
                    }));
  }
  double copies() const {
    return all([&](const Tensor& tensor) { return gradient_of(tensor); });
  }

  // Returns the bytes of DGC's momentum and residual, PowerSGD's error, or other codecs' payload.
  double encoded() const {
    const compress::Codec* codec = compress::find_codec(strategy_.compression.codec);
    if (codec == nullptr || ranks_ == 1) return 0;
    return all([&](const Tensor& tensor) {
      if (tensor.frozen || !codec->applies(tensor, strategy_.compression.min_elements)) return 0.0;
      const auto elements = static_cast<double>(tensor.elements);
      if (codec->sparse) return 2 * kFull * elements;
      if (codec->low_rank) return weights_of(tensor);
      return static_cast<double>(codec->encoded_bytes(tensor.elements, tensor.elements));
    });
  }

  const Workload& workload_;
  const Strategy& strategy_;
  int ranks_;
  int shard_ = 1;
  double narrowest_ = 8, widest_ = 0;  // bytes per value
  std::vector<char> own_;              // per tensor
  std::vector<char> summed_;           // per tensor: sums have room for it
  FrameworkTraits::Sharded level_ = FrameworkTraits::Sharded::kStates;
};

std::string optimizer_words(const Workload& workload) {
  const int states = workload.optimizer_states;
  const std::string name = states == 0 ? "SGD" : states == 1 ? "momentum" : "Adam";
  return name + (workload.optimizer_given ? "" : " (assumed)");
}

// Returns true if passes use parameters as gathered, narrower than they are stored: no cast then
// (FSDP's param_dtype).
bool gathers_narrow(const Strategy& strategy) {
  const int bytes = strategy.traits.gather_bytes;
  return strategy.traits.sharded == FrameworkTraits::Sharded::kParameters && bytes > 0 &&
         bytes < static_cast<int>(kFull);
}

// A value that the backward pass reads, and the first gradient that needs it.
struct Kept {
  double bytes = 0;
  int tensor = 0;
  bool scores = false;  // attention's, between its two products
  bool stays = false;   // under kProducts
};

// Values kept for the backward pass. A value that reuses another's memory counts as that memory.
// Narrow copies of parameters are the weights if gradients are narrow too; with fp32 gradients
// (autocast) they are kept for the backward pass.
class Keeping {
 public:
  Keeping(const Workload& workload, bool narrow)
      : list_(workload.operators),
        memory_(list_.values.size()),
        written_(list_.values.size(), 0),
        scores_(list_.values.size(), 0),
        stays_(list_.values.size(), 0) {
    if (workload.recompute == Workload::Recompute::kProducts) does_ = plan::again_or_kept(list_);
    std::iota(memory_.begin(), memory_.end(), 0);
    narrow_ = narrow || any_narrow(workload);
  }

  // Returns the values in the order of their reads in the backward pass.
  std::vector<Kept> kept() {
    std::vector<int> gradient_of(list_.values.size(), -1);
    for (std::size_t t = 0; t < list_.gradients.size(); ++t) {
      if (list_.gradients[t] >= 0) gradient_of[index(list_.gradients[t])] = static_cast<int>(t);
    }
    const int last = static_cast<int>(list_.gradients.size()) - 1;
    std::vector<Kept> kept;
    int tensor = 0;
    for (std::size_t o = 0; o < list_.operators.size(); ++o) {
      const Operator& op = list_.operators[o];
      if (op.part == StepPart::kForward && !(narrow_ && casts_parameter(op))) {
        write(op);
        if (!does_.empty() && does_[o] == plan::AgainOrKept::kKept) keep(op);
      }
      if (op.part != StepPart::kBackward) continue;
      for (const Operand& input : op.inputs) {
        read(input.value, tensor, kept);
        const auto output = output_of_.find(input.value);
        if (output != output_of_.end()) read(output->second, tensor, kept);
      }
      for (const Operand& output : op.outputs) {
        tensor = std::clamp(gradient_of[index(output.value)] + 1, tensor, std::max(0, last));
      }
    }
    return kept;
  }

 private:
  // Returns true if an operator only narrows a parameter: no operator wrote its input.
  bool casts_parameter(const Operator& op) const {
    return op.kind == "cast" && op.inputs.size() == 1 &&
           written_[index(op.inputs.front().value)] == 0;
  }

  void write(const Operator& op) {
    // A product without a weight begins the scores, the next one ends them.
    const bool product = op.kind.ends_with("matmul_v2") && op.columns == 0;
    if (product) between_products_ = !between_products_;
    for (const Operand& output : op.outputs) {
      const auto value = index(output.value);
      written_[value] = 1;
      scores_[value] = between_products_ ? 1 : 0;
      if (output.passes == 0 && !op.inputs.empty()) {
        memory_[value] = memory_[index(op.inputs.front().value)];
      }
    }
  }

  // Keeps an output under kProducts, until the backward pass needs the operator's weight even if
  // nothing there reads the output.
  void keep(const Operator& op) {
    const int output = op.outputs.front().value;
    stays_[index(output)] = 1;
    if (op.columns > 0) output_of_[op.inputs[1].value] = output;
  }

  // Counts a value's memory once.
  void read(int value, int tensor, std::vector<Kept>& kept) {
    if (written_[index(value)] == 0) return;
    int& memory = memory_[index(value)];
    const auto own = index(memory);
    if (counted_.empty()) counted_.assign(list_.values.size(), 0);
    if (counted_[own] != 0) return;
    counted_[own] = 1;
    kept.push_back({static_cast<double>(list_.values[own].bytes), tensor, scores_[own] != 0,
                    stays_[own] != 0});
  }

  const OperatorList& list_;
  std::vector<int> memory_;  // per value: index of the value that owns its memory
  std::vector<char> written_, scores_, stays_, counted_;
  std::vector<plan::AgainOrKept> does_;  // per operator, under kProducts
  std::map<int, int> output_of_;         // of a weight's product that kProducts keeps
  bool narrow_ = false;
  bool between_products_ = false;
};

// Returns the bytes that the loss takes per word of the logits. Strategies of no framework have
// torch's.
double logit_bytes(const Strategy& strategy, const Parallel& parallel) {
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  if (own == nullptr) own = dialect::find_dialect("pytorch");
  return parallel.tensor > 1 ? own->cut_loss_bytes : own->loss_bytes;
}

// Returns the bytes of a loss beyond the value that is kept for the backward pass.
double loss_of(const Workload& workload, double per_logit) {
  double most = 0;
  for (const Operator& op : workload.operators->operators) {
    if (op.kind != "softmax_with_cross_entropy" || op.outputs.empty()) continue;
    const Bytes bytes = workload.operators->values[index(op.outputs.front().value)].bytes;
    const double logits = static_cast<double>(bytes) / static_cast<double>(size_of(op.dtype));
    most = std::max(most, logits * per_logit - static_cast<double>(bytes));
  }
  return most;
}

// Returns the keys and values of a layer that PyTorch's ring attention gathers from all ranks of a
// sequence, as torchtitan has it by default (context_parallel_rotate_method: allgather). Each of
// the queries' heads has its own there (repeat_kv).
double gathered_context(const Workload& workload, const Strategy& strategy) {
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  const int context = workload.parallel.context;
  if (context == 1 || own == nullptr || own->kernels != "pytorch") return 0;
  const OperatorList& list = *workload.operators;
  const auto attention = std::ranges::find(list.operators, "flash_attn", &Operator::kind);
  if (attention == list.operators.end()) return 0;
  const auto queries = list.values[index(attention->inputs.front().value)].bytes;
  return 2.0 * context * static_cast<double>(queries);
}

// Memory of one part of the model and one micro-batch.
struct OfPart {
  double held = 0;   // kept until its backward pass
  double again = 0;  // recomputed there, a layer at a time
};

// Returns memory per part: activations of the forward pass that it keeps for the backward pass.
// These are values that forward operators write and backward operators read. Recomputation is
// Megatron's (Korthikanti et al. 2022, 5): selective drops attention's scores, full keeps only each
// layer's input, read last in backward. kProducts is torchtitan's. `narrow`: parameters have the
// width of the products' operands, even if their gradients are wider. Requires the workload's
// operators.
std::vector<OfPart> by_part(const Workload& workload, bool narrow, double per_logit) {
  using Recompute = Workload::Recompute;
  std::vector<OfPart> parts(index(workload.parallel.parts()));
  const std::vector<Kept> all = Keeping(workload, narrow).kept();
  const bool all_kept = workload.recompute == Recompute::kNone;
  const auto layer_at = [&](std::size_t i) {
    return all_kept ? -1 : plan::layer_number(workload.tensors[index(all[i].tensor)].name);
  };
  double layer = 0;  // bytes so far of the current layer, which are dropped
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tensor& tensor = workload.tensors[index(all[i].tensor)];
    OfPart& part = parts[index(tensor.part)];
    const int number = layer_at(i);
    const bool last = i + 1 == all.size() || layer_at(i + 1) != number;
    const bool drops = workload.recompute == Recompute::kSelective ? all[i].scores
                       : workload.recompute == Recompute::kProducts
                           ? !all[i].stays && !last
                           : plan::recomputes_layer(workload, tensor) && !last;
    (drops && number >= 0 ? layer : part.held) += all[i].bytes;
    if (!last) continue;
    part.again = std::max(part.again, layer);
    layer = 0;
  }
  parts.back().again += loss_of(workload, per_logit);
  return parts;
}

// Returns the activations on a rank of that stage at a step's fullest moment, of the micro-batches
// under way (plan::passes_of).
double activations_of(const std::vector<OfPart>& parts, const Workload& workload, int stage) {
  const Parallel& parallel = workload.parallel;
  const bool splits = parallel.schedule == Schedule::kZeroBubble && parallel.pipeline > 1;
  const int batches = parallel.pipeline > 1 ? static_cast<int>(workload.micro_batches) : 1;
  double held = 0, most = 0;
  for (const plan::Pass& pass : plan::passes_of(parallel, batches, stage)) {
    const OfPart& part = parts[index(pass.chunk * parallel.pipeline + stage)];
    using Kind = plan::Pass::Kind;
    if (pass.kind == Kind::kForward) held += part.held;
    most = std::max(most, held + (pass.kind == Kind::kBackward ? part.again : 0));
    if (pass.kind == (splits ? Kind::kWeights : Kind::kBackward)) held -= part.held;
  }
  return most;
}

// The memory of a job's ranks under one strategy, stage by stage.
class Stages {
 public:
  Stages(const Scenario& scenario, const Strategy& strategy)
      : scenario_(scenario), workload_(scenario.workload), strategy_(strategy) {
    const Parallel& parallel = workload_.parallel;
    const bool experts = std::ranges::any_of(workload_.tensors, &Tensor::expert);
    if (parallel.whole_job() && experts) {
      of_experts_ = plan::for_experts(strategy, parallel, ranks() / exchange_step(parallel, false));
    }
    if (workload_.operators->empty()) return;
    parts_ = by_part(workload_, gathers_narrow(strategy), logit_bytes(strategy, parallel));
  }

  // Returns the memory of a rank of that stage.
  Memory held_by(int stage) const {
    Memory memory = kind(strategy_, stage, false);
    if (of_experts_) {
      const Memory more = kind(*of_experts_, stage, true);
      for (const auto part :
           {&Memory::weights, &Memory::gradients, &Memory::optimizer, &Memory::buffers}) {
        memory.*part += more.*part;
      }
    }
    for (const Tensor& buffer : workload_.buffers) memory.weights += weights_of(buffer);
    if (!parts_.empty()) memory.buffers += gathered_context(workload_, strategy_);
    if (!parts_.empty()) memory.activations = activations_of(parts_, workload_, stage);
    memory.recompute = workload_.recompute;
    memory.available = scenario_.cluster.device.memory_size;
    if (workload_.parallel.whole_job()) memory.stage = stage;
    return memory;
  }

 private:
  int ranks() const { return scenario_.cluster.ranks() / workload_.parallel.pipeline; }

  // Returns the memory for dense tensors, or for experts'.
  Memory kind(const Strategy& strategy, int stage, bool expert) const {
    const int summing = ranks() / exchange_step(workload_.parallel, expert);
    return Accounts(workload_, strategy, summing, stage, expert).held();
  }

  const Scenario& scenario_;
  const Workload& workload_;
  const Strategy& strategy_;
  std::optional<Strategy> of_experts_;  // if some tensors are experts'
  std::vector<OfPart> parts_;           // empty: operators are not known
};

}  // namespace

std::string gigabytes(double bytes) {
  constexpr double kGigabyte = 1e9;
  constexpr int kDigits = 3;
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(),
                                 significant(bytes / kGigabyte, kDigits), std::chars_format::fixed);
  return {text.data(), end.ptr};
}

bool Memory::fits() const { return available <= 0 || total() <= available; }

std::vector<Memory> memory_by_stage(const Scenario& scenario, const Strategy& strategy) {
  const Stages job(scenario, strategy);
  std::vector<Memory> stages;
  for (int stage = 0; stage < scenario.workload.parallel.pipeline; ++stage) {
    stages.push_back(job.held_by(stage));
  }
  return stages;
}

Memory memory_of(const Scenario& scenario, const Strategy& strategy) {
  const std::vector<Memory> stages = memory_by_stage(scenario, strategy);
  return *std::ranges::max_element(stages, {}, &Memory::total);
}

std::string memory_needs(const Scenario& scenario, const Memory& memory) {
  const Parallel& parallel = scenario.workload.parallel;
  const std::string device =
      scenario.cluster.device.name.empty() ? "the device" : scenario.cluster.device.name;
  std::string text = "with " + optimizer_words(scenario.workload) +
                     (memory.on_host > 0 ? " in the host's memory needs " : " needs ") +
                     gigabytes(memory.total()) + " GB per GPU";
  if (!memory.counts_activations()) text += " before its activations";
  if (parallel.pipeline > 1) {
    text +=
        " in stage " + std::to_string(memory.stage) + " of " + std::to_string(parallel.pipeline);
  }
  if (memory.counts_activations()) {
    text += ", " + gigabytes(memory.activations) + " of them activations";
  }
  return text + ", " + device + " has " + gigabytes(memory.available) + " GB";
}

std::optional<std::string> memory_uncertainty(const Scenario& scenario, const Strategy& strategy) {
  const Memory memory = memory_of(scenario, strategy);
  if (memory.fits()) return std::nullopt;
  return "does not fit: " + memory_needs(scenario, memory);
}

std::optional<std::string> loss_words(const Scenario& scenario, const Strategy& strategy) {
  const double bytes = logit_bytes(strategy, scenario.workload.parallel);
  constexpr double kDecidesNothing = 1 << 26;  // bytes of a batch's logits
  if (loss_of(scenario.workload, bytes) <= kDecidesNothing) return std::nullopt;
  return "the loss takes " + std::to_string(static_cast<int>(bytes)) +
         " bytes per word of the logits, as the framework's own loss does; a fused or chunked "
         "one takes fewer";
}

}  // namespace syncline::measure
