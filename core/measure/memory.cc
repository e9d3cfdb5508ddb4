#include "core/measure/memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <vector>

#include "core/compress/codec.h"
#include "core/digits.h"
#include "core/plan/fusion.h"

namespace syncline::measure {
namespace {

using Groups = std::vector<std::vector<int>>;

constexpr double kFull = 4;  // bytes of an fp32 value

const Tensor& tensor_of(const Workload& workload, int index) {
  return workload.tensors[static_cast<std::size_t>(index)];
}

// A gradient where it adds up: a sparse one has the rows that were touched.
double gradient_of(const Tensor& tensor, const Strategy& strategy) {
  auto values = static_cast<double>(tensor.elements);
  if (tensor.sparse && !tensor.shape.empty()) {
    values *= static_cast<double>(tensor.sparse_rows) / static_cast<double>(tensor.shape.front());
  }
  const auto size = static_cast<double>(size_of(tensor.dtype));
  return values * (strategy.fusion.to_fp32 ? std::max(kFull, size) : size);
}

double weights_of(const Tensor& tensor) { return static_cast<double>(tensor.bytes()); }

double optimizer_of(const Tensor& tensor, const Workload& workload) {
  const auto size = static_cast<double>(size_of(tensor.dtype));
  const double copy = size < kFull ? kFull : 0;
  return static_cast<double>(tensor.elements) *
         (copy + std::max(kFull, size) * workload.optimizer_states);
}

template <typename Of>
double sum_of(const Workload& workload, const std::vector<int>& group, Of of) {
  return std::accumulate(group.begin(), group.end(), 0.0,
                         [&](double sum, int t) { return sum + of(tensor_of(workload, t)); });
}

// What a rank holds at a time of groups of which two are in use: one that computes, and one that
// travels.
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

Groups groups_of(const Workload& workload, const Strategy& strategy) {
  if (strategy.fusion.rule == Fusion::Rule::kGroups) return strategy.fusion.groups;
  Groups groups;
  std::map<std::string, std::size_t> layers;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const std::string layer = plan::layer_of(workload.tensors[t].name, strategy.fusion.layer_key);
    const auto [place, fresh] = layers.try_emplace(layer, groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(static_cast<int>(t));
  }
  return groups;
}

class Accounts {
 public:
  Accounts(const Workload& workload, const Cluster& cluster, const Strategy& strategy)
      : workload_(workload), strategy_(strategy), ranks_(cluster.ranks()) {
    if (ranks_ > 1 && shards_update(strategy)) {
      level_ = strategy.regather ? Strategy::Sharded::kParameters : strategy.sharded;
      shard_ = shard_ranks(strategy, ranks_);
    }
  }

  Memory held() const {
    Memory memory;
    for (const Tensor& tensor : workload_.tensors) {
      const double own = tensor.sparse ? 1 : shard_;
      memory.weights += weights_of(tensor) / (shards_parameters() ? own : 1);
      memory.gradients += gradient_of(tensor, strategy_) / (shards_gradients() ? own : 1);
      memory.optimizer += optimizer_of(tensor, workload_) / own;
    }
    for (const Tensor& buffer : workload_.buffers) memory.weights += weights_of(buffer);
    memory.buffers = gathered() + buckets() + encoded();
    return memory;
  }

 private:
  bool shards_parameters() const { return level_ == Strategy::Sharded::kParameters; }
  // Gradients that add up over micro-batches without an exchange are whole until the last.
  bool shards_gradients() const {
    return level_ != Strategy::Sharded::kStates &&
           (strategy_.each_micro_batch || workload_.micro_batches == 1);
  }
  double gradient(const Tensor& tensor) const { return gradient_of(tensor, strategy_); }
  template <typename Of>
  double all(Of of) const {
    double sum = 0;
    for (const Tensor& tensor : workload_.tensors) sum += tensor.sparse ? 0 : of(tensor);
    return sum;
  }

  // Parameters that are whole: all between the passes where they are not given up, else those of
  // the layers at hand, and those that stay for the backward pass (ZeRO's stage 3).
  double gathered() const {
    if (!shards_parameters()) return 0;
    if (!strategy_.regather) return all(weights_of);
    const double second =
        strategy_.regather_group > 0 ? all(weights_of) / strategy_.regather_group : 0;
    Groups groups = strategy_.gather_groups;
    if (groups.empty()) groups = groups_of(workload_, strategy_);
    const auto kept =
        groups.begin() +
        std::min<std::ptrdiff_t>(strategy_.kept_groups, static_cast<std::ptrdiff_t>(groups.size()));
    double stay = 0;
    for (auto group = groups.begin(); group != kept; ++group) {
      stay += sum_of(workload_, *group, weights_of);
    }
    return second + stay + two_largest(workload_, Groups(kept, groups.end()), weights_of);
  }

  // Copies of gradients in their buckets. Where gradients are sharded they are whole in the buckets
  // at hand alone; DeepSpeed lays out buffers of reduce_bucket_size, two where they overlap.
  double buckets() const {
    if (ranks_ == 1) return 0;
    const LocalSgd& local = strategy_.local_sgd;
    if (local.enabled) {
      const bool exchanges = local.subgroup > 1 || local.warmup_gradients;
      return all(weights_of) + (exchanges && strategy_.bucket_copies ? copies() : 0);
    }
    if (shard_ == 1) return strategy_.bucket_copies ? copies() : 0;
    const double laid_out = strategy_.bucket_copies
                                ? static_cast<double>(strategy_.fusion.size) / kFull * widest() *
                                      (strategy_.overlap && !shards_parameters() ? 2 : 1)
                                : 0;
    if (!shards_gradients()) return laid_out;
    return std::max(laid_out, two_largest(workload_, groups_of(workload_, strategy_),
                                          [&](const Tensor& tensor) { return gradient(tensor); }));
  }
  double copies() const {
    return all([&](const Tensor& tensor) { return gradient(tensor); });
  }
  double widest() const {
    double size = 0;
    for (const Tensor& tensor : workload_.tensors) {
      size = std::max(size, static_cast<double>(size_of(tensor.dtype)));
    }
    return size;
  }

  // What is sent of it, and what is held back: DGC's momentum and residual, PowerSGD's error.
  double encoded() const {
    const compress::Codec* codec = compress::find_codec(strategy_.compression.codec);
    if (codec == nullptr || ranks_ == 1) return 0;
    return all([&](const Tensor& tensor) {
      if (!codec->applies(tensor, strategy_.compression.min_elements)) return 0.0;
      const auto elements = static_cast<double>(tensor.elements);
      if (codec->sparse) return 2 * kFull * elements;
      if (codec->low_rank) return weights_of(tensor);
      return static_cast<double>(size_of(codec->wire)) * elements;
    });
  }

  const Workload& workload_;
  const Strategy& strategy_;
  int ranks_;
  int shard_ = 1;
  Strategy::Sharded level_ = Strategy::Sharded::kStates;
};

// Whether an operator only makes a parameter narrower: nobody wrote what it reads.
bool casts_parameter(const Operator& op, const std::vector<char>& written) {
  return op.kind == "cast" && op.inputs.size() == 1 &&
         written[static_cast<std::size_t>(op.inputs.front().value)] == 0;
}

// What the forward pass writes and the backward pass reads. A value that took over another's memory
// is that memory. Narrow copies of parameters are the weights where gradients are narrow too;
// beside fp32 gradients (autocast) they are kept for the backward pass.
double activations_of(const Workload& workload) {
  const OperatorList& list = workload.operators;
  const bool narrow =
      std::any_of(workload.tensors.begin(), workload.tensors.end(),
                  [](const Tensor& t) { return size_of(t.dtype) < size_of(DType::kFp32); });
  std::vector<int> memory_of(list.values.size());
  std::iota(memory_of.begin(), memory_of.end(), 0);
  std::vector<char> written(list.values.size(), 0), counted(list.values.size(), 0);
  double sum = 0;
  for (const Operator& op : list.operators) {
    if (op.part == StepPart::kForward && !(narrow && casts_parameter(op, written))) {
      for (const Operand& output : op.outputs) {
        const auto value = static_cast<std::size_t>(output.value);
        written[value] = 1;
        if (output.passes == 0 && !op.inputs.empty()) {
          memory_of[value] = memory_of[static_cast<std::size_t>(op.inputs.front().value)];
        }
      }
    }
    if (op.part != StepPart::kBackward) continue;
    for (const Operand& input : op.inputs) {
      if (written[static_cast<std::size_t>(input.value)] == 0) continue;
      const auto place = static_cast<std::size_t>(memory_of[static_cast<std::size_t>(input.value)]);
      if (counted[place] == 0) sum += static_cast<double>(list.values[place].bytes);
      counted[place] = 1;
    }
  }
  return sum;
}

std::string optimizer_words(const Workload& workload) {
  const int states = workload.optimizer_states;
  const std::string name = states == 0 ? "SGD" : states == 1 ? "momentum" : "Adam";
  return name + (workload.optimizer_given ? "" : " (assumed)");
}

// As a reader would shard it: every layer a unit.
Strategy fully_sharded() {
  Strategy strategy;
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.sharded = Strategy::Sharded::kParameters;
  strategy.regather = true;
  strategy.fusion.rule = Fusion::Rule::kLayer;
  return strategy;
}

std::string needs(const Scenario& scenario, const Memory& memory) {
  const std::string device =
      scenario.cluster.device.name.empty() ? "the device" : scenario.cluster.device.name;
  return "with " + optimizer_words(scenario.workload) + " needs " + gigabytes(memory.states()) +
         " GB a GPU before its activations, " + device + " has " + gigabytes(memory.available) +
         " GB";
}

}  // namespace

std::string gigabytes(double bytes) {
  constexpr double kGigabyte = 1e9;
  constexpr int kDigits = 3;
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(),
                                 significant(bytes / kGigabyte, kDigits), std::chars_format::fixed);
  return {text.data(), end.ptr};
}

Memory memory_of(const Scenario& scenario, const Strategy& strategy) {
  Memory memory = Accounts(scenario.workload, scenario.cluster, strategy).held();
  if (!scenario.workload.operators.empty()) memory.activations = activations_of(scenario.workload);
  memory.available = scenario.cluster.device.memory_size;
  return memory;
}

std::optional<std::string> memory_doubt(const Scenario& scenario, const Strategy& strategy) {
  const Memory memory = memory_of(scenario, strategy);
  if (!memory.fits()) return "does not fit: " + needs(scenario, memory);
  if (memory.available <= 0 || memory.total() <= memory.available) return std::nullopt;
  return "fits only with fewer activations: they take about " + gigabytes(memory.activations) +
         " GB beside " + gigabytes(memory.states()) + ", the device has " +
         gigabytes(memory.available) + " GB (a smaller batch, or recomputation)";
}

std::string memory_shortage(const Scenario& scenario) {
  std::vector<const Strategy*> large;
  const Strategy* small = nullptr;
  for (const Strategy& strategy : scenario.strategies) {
    if (!memory_of(scenario, strategy).fits()) {
      const bool first = strategy.name == scenario.baseline;
      large.insert(first ? large.begin() : large.end(), &strategy);
    } else if (small == nullptr) {
      small = &strategy;
    }
  }
  if (large.empty()) return "";
  std::string text =
      "'" + large.front()->name + "' " + needs(scenario, memory_of(scenario, *large.front()));
  if (large.size() > 1) text += "; so do " + std::to_string(large.size() - 1) + " more";
  if (small != nullptr) {
    return text + "; '" + small->name + "' needs " +
           gigabytes(memory_of(scenario, *small).states()) + " GB and fits";
  }
  if (scenario.cluster.ranks() == 1) return text;
  const Memory sharded = memory_of(scenario, fully_sharded());
  return text + "; FSDP's FULL_SHARD by layers needs " + gigabytes(sharded.states()) +
         (sharded.fits() ? " GB and fits" : " GB, which does not fit either");
}

}  // namespace syncline::measure
