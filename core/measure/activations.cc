#include "core/measure/memory.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/plan/fusion.h"
#include "core/plan/pipeline.h"

namespace syncline::measure {
namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }

// A value that the backward pass reads, and for which gradient it does so first.
struct Kept {
  double bytes = 0;
  int tensor = 0;
  bool scores = false;  // of attention, between its two products
};

// A value that took over another's memory is that memory. Narrow copies of parameters are the
// weights where gradients are narrow too; beside fp32 gradients (autocast) they are kept for the
// backward pass.
class Keeping {
 public:
  explicit Keeping(const Workload& workload)
      : list_(workload.operators),
        memory_(list_.values.size()),
        written_(list_.values.size(), 0),
        scores_(list_.values.size(), 0) {
    std::iota(memory_.begin(), memory_.end(), 0);
    narrow_ = std::ranges::any_of(workload.tensors, [](const Tensor& tensor) {
      return size_of(tensor.dtype) < size_of(DType::kFp32);
    });
  }

  // In the order in which the backward pass reads them.
  std::vector<Kept> kept() {
    std::vector<int> gradient_of(list_.values.size(), -1);
    for (std::size_t t = 0; t < list_.gradients.size(); ++t) {
      if (list_.gradients[t] >= 0) gradient_of[place(list_.gradients[t])] = static_cast<int>(t);
    }
    const int last = static_cast<int>(list_.gradients.size()) - 1;
    std::vector<Kept> kept;
    int tensor = 0;
    for (const Operator& op : list_.operators) {
      if (op.part == StepPart::kForward && !(narrow_ && casts_parameter(op))) write(op);
      if (op.part != StepPart::kBackward) continue;
      for (const Operand& input : op.inputs) read(input.value, tensor, kept);
      for (const Operand& output : op.outputs) {
        tensor = std::clamp(gradient_of[place(output.value)] + 1, tensor, std::max(0, last));
      }
    }
    return kept;
  }

 private:
  // Whether an operator only makes a parameter narrower: nobody wrote what it reads.
  bool casts_parameter(const Operator& op) const {
    return op.kind == "cast" && op.inputs.size() == 1 &&
           written_[place(op.inputs.front().value)] == 0;
  }

  void write(const Operator& op) {
    // A product without a weight begins the scores, the next one ends them.
    const bool product = op.kind.ends_with("matmul_v2") && op.columns == 0;
    if (product) between_products_ = !between_products_;
    for (const Operand& output : op.outputs) {
      const auto value = place(output.value);
      written_[value] = 1;
      scores_[value] = between_products_ ? 1 : 0;
      if (output.passes == 0 && !op.inputs.empty()) {
        memory_[value] = memory_[place(op.inputs.front().value)];
      }
    }
  }

  // Counts a value's memory once.
  void read(int value, int tensor, std::vector<Kept>& kept) {
    if (written_[place(value)] == 0) return;
    int& memory = memory_[place(value)];
    const auto own = place(memory);
    if (counted_.empty()) counted_.assign(list_.values.size(), 0);
    if (counted_[own] != 0) return;
    counted_[own] = 1;
    kept.push_back({static_cast<double>(list_.values[own].bytes), tensor, scores_[own] != 0});
  }

  const OperatorList& list_;
  std::vector<int> memory_;  // by value: whose memory it is
  std::vector<char> written_, scores_, counted_;
  bool narrow_ = false;
  bool between_products_ = false;
};

// Of one part of the model and one micro-batch.
struct OfPart {
  double held = 0;   // until its backward pass
  double again = 0;  // recomputed there, a layer at a time
};

// With full recomputation a layer keeps what its backward pass reads last: its input.
std::vector<OfPart> by_part(const Workload& workload) {
  using Recompute = Workload::Recompute;
  std::vector<OfPart> parts(place(workload.parallel.parts()));
  const std::vector<Kept> all = Keeping(workload).kept();
  const bool all_kept = workload.recompute == Recompute::kNone;
  const auto layer_at = [&](std::size_t i) {
    return all_kept ? -1 : plan::layer_number(workload.tensors[place(all[i].tensor)].name);
  };
  double layer = 0;  // of the one at hand, so far: what is dropped
  for (std::size_t i = 0; i < all.size(); ++i) {
    OfPart& part = parts[place(workload.tensors[place(all[i].tensor)].part)];
    const int number = layer_at(i);
    const bool last = i + 1 == all.size() || layer_at(i + 1) != number;
    const bool drops = workload.recompute == Recompute::kSelective ? all[i].scores
                       : workload.recompute == Recompute::kFull    ? !last
                                                                   : false;
    (drops && number >= 0 ? layer : part.held) += all[i].bytes;
    if (!last) continue;
    part.again = std::max(part.again, layer);
    layer = 0;
  }
  return parts;
}

}  // namespace

double activations_of(const Workload& workload, int stage) {
  const Parallel& parallel = workload.parallel;
  const std::vector<OfPart> parts = by_part(workload);
  const bool splits = parallel.schedule == Schedule::kZeroBubble && parallel.pipeline > 1;
  const int batches = parallel.pipeline > 1 ? static_cast<int>(workload.micro_batches) : 1;
  double held = 0, most = 0;
  for (const plan::Pass& pass : plan::passes_of(parallel, batches, stage)) {
    const OfPart& part = parts[place(pass.chunk * parallel.pipeline + stage)];
    using Kind = plan::Pass::Kind;
    if (pass.kind == Kind::kForward) held += part.held;
    most = std::max(most, held + (pass.kind == Kind::kBackward ? part.again : 0));
    if (pass.kind == (splits ? Kind::kWeights : Kind::kBackward)) held -= part.held;
  }
  return most;
}

}  // namespace syncline::measure
