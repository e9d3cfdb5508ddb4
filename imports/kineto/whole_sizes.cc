// Finds the gradients of a stage, by chunk of the model.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/plan/pipeline.h"
#include "imports/kineto/whole_carried.h"
#include "imports/kineto/whole_rank.h"

namespace syncline::job::kineto {
namespace {

// Stores the gradients of a step as its backward passes make them: chunk, size, and true for the
// experts'.
class WholeSizes {
 public:
  WholeSizes(const Trace& trace, const std::vector<RankGroup>& groups, const Parallel& parallel,
             int stage, WholeStep& whole)
      : trace_(trace), groups_(groups), parallel_(parallel), stage_(stage), whole_(whole) {
    for (std::size_t i = 0; i < whole_.step.exchanges.size(); ++i) {
      // A loss is averaged between passes.
      const bool of_gradients = whole_.sent[i].engine || whole_.sent[i].behind;
      if (of_gradients && is_first_level(whole_.step.exchanges[i])) exchanges_.push_back(i);
    }
  }

  bool find() {
    for (const StagePass& pass : whole_.passes) {
      for (const int tensor : pass.tensors) {
        if (tensor < 0 || elements_of(tensor) == 0) return false;
      }
    }
    find_chunks();
    lay_down();
    cut_by_tensor();
    find_experts();
    find_carried(exchanges_, laid_, groups_, whole_);
    return true;
  }

 private:
  // Returns true for sums of gradients, not of shards that were summed already.
  bool is_first_level(const ObservedExchange& exchange) const {
    const Role role = role_of(exchange, groups_);
    const bool reduces = exchange.kind == "reduce_scatter" || exchange.kind == "all_reduce" ||
                         exchange.kind == "reduce";
    return reduces && exchange.elements > 0 &&
           (role == Role::kData || role == Role::kInner || role == Role::kExpertData);
  }

  std::int64_t elements_of(int tensor) const { return trace_.tensors[index(tensor)].elements; }

  // Finds the chunk of each pass. A stage of n chunks exchanges n times the gradients of one
  // backward pass.
  void find_chunks() {
    const auto passes = static_cast<int>(whole_.passes.size());
    std::set<std::size_t> exchanging;
    double carried = 0, made = 0;
    for (const std::size_t i : exchanges_) {
      carried += static_cast<double>(whole_.step.exchanges[i].elements);
      exchanging.insert(whole_.sent[i].pass);
    }
    for (const StagePass& pass : whole_.passes) {
      for (const int tensor : pass.tensors) made += static_cast<double>(elements_of(tensor));
    }
    const auto sets = static_cast<int>(std::lround(carried * passes / std::max(1.0, made)));
    const bool every = static_cast<int>(exchanging.size()) == passes;
    const bool chunked =
        parallel_.pipeline > 1 && sets > 1 && sets < passes && passes % sets == 0 && !every;
    whole_.chunks = chunked ? sets : 1;
    whole_.exchanging_passes = std::max(1, static_cast<int>(exchanging.size()) / whole_.chunks);
    Parallel layout = parallel_;
    layout.virtual_stages = whole_.chunks;
    layout.schedule = chunked ? Schedule::kInterleaved : Schedule::k1F1B;
    laid_.chunks.assign(whole_.passes.size(), 0);
    if (!chunked) return;
    std::size_t next = 0;
    for (const plan::Pass& pass : plan::passes_of(layout, passes / sets, stage_)) {
      const bool backward = pass.kind == plan::Pass::Kind::kBackward;
      if (backward && next < laid_.chunks.size()) laid_.chunks[next++] = pass.chunk;
    }
  }

  // Lists the last chunk's gradients first, in the order of the backward pass.
  void lay_down() {
    for (int chunk = whole_.chunks; chunk-- > 0;) {
      const StagePass* last = nullptr;
      double count = 0;
      for (std::size_t p = 0; p < whole_.passes.size(); ++p) {
        if (laid_.chunks[p] != chunk) continue;
        if (last != nullptr && last->tensors.size() != whole_.passes[p].tensors.size()) {
          throw InputError(trace_.path + ": a step's backward passes have " +
                           std::to_string(last->tensors.size()) + " and " +
                           std::to_string(whole_.passes[p].tensors.size()) +
                           " gradients: its micro-batches cannot be separated");
        }
        last = &whole_.passes[p];
        count += 1;
      }
      if (last == nullptr) continue;
      for (std::size_t i = 0; i < last->tensors.size(); ++i) {
        Gradient& gradient = whole_.step.gradients.emplace_back();
        const TracedTensor& tensor = trace_.tensors[index(last->tensors[i])];
        gradient.shape = tensor.shape;
        gradient.elements = elements_of(last->tensors[i]);
        gradient.dtype = tensor.dtype.value_or(whole_.gathered.value_or(DType::kFp32));
        gradient.chunk = chunk;
        for (std::size_t p = 0; p < whole_.passes.size(); ++p) {
          if (laid_.chunks[p] == chunk) gradient.wait += whole_.passes[p].waits[i] / count;
        }
        laid_.arrived.push_back(last->arrived[i]);
      }
    }
  }

  std::int64_t carried(bool expert) const {
    std::int64_t elements = 0;
    for (const std::size_t i : exchanges_) {
      const ObservedExchange& exchange = whole_.step.exchanges[i];
      if ((role_of(exchange, groups_) == Role::kExpertData) == expert)
        elements += exchange.elements;
    }
    return elements / std::max(1, whole_.exchanging_passes);
  }

  std::int64_t in_gradients() const {
    std::int64_t elements = 0;
    for (const Gradient& gradient : whole_.step.gradients) elements += gradient.elements;
    return elements;
  }

  using Shape = std::vector<std::int64_t>;

  // Divides gradients by the tensor group: torch's DTensors have the shape that all ranks of a
  // tensor group hold together. All weights are cut if that is as much as the collectives carry;
  // else those of the shapes with which it is.
  void cut_by_tensor() {
    const std::int64_t all = carried(false) + carried(true);
    if (parallel_.tensor == 1 || all == 0 || in_gradients() <= all) return;
    std::set<Shape> weights;
    std::map<Shape, std::int64_t> saved;
    std::int64_t cut = in_gradients();
    for (const Gradient& gradient : whole_.step.gradients) {
      if (gradient.elements % parallel_.tensor != 0) continue;
      const std::int64_t less = gradient.elements - gradient.elements / parallel_.tensor;
      saved[gradient.shape] += less;
      if (gradient.shape.size() < 2) continue;
      weights.insert(gradient.shape);
      cut -= less;
    }
    if (cut != all && carried(true) == 0) {
      const std::int64_t less = in_gradients() - all;
      const ShapeChoice choice = choose_shapes(saved, less, less);
      if (choice.equal == 1) {
        whole_.cut = {choice.shapes.begin(), choice.shapes.end()};
        cut_shapes(choice.shapes);
        return;
      }
    }
    if (cut <= all) cut_shapes(weights);
  }

  void cut_shapes(const std::set<Shape>& shapes) {
    for (Gradient& gradient : whole_.step.gradients) {
      if (!shapes.contains(gradient.shape)) continue;
      gradient.elements /= parallel_.tensor;
      gradient.shape = {gradient.elements};
    }
  }

  // Shapes with elements from `least` to `most`; the fewest shapes. `equal`: choices of as few.
  struct ShapeChoice {
    std::set<Shape> shapes;
    std::size_t equal = 0;
  };
  static ShapeChoice choose_shapes(const std::map<Shape, std::int64_t>& elements,
                                   std::int64_t least, std::int64_t most) {
    constexpr std::size_t kMaxShapes = 16;
    const std::vector<std::pair<Shape, std::int64_t>> list(elements.begin(), elements.end());
    const std::size_t sets = list.size() > kMaxShapes ? 0 : std::size_t{1} << list.size();
    std::size_t best = 0;
    ShapeChoice choice;
    for (std::size_t set = 1; set < sets; ++set) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < list.size(); ++i) sum += (set >> i & 1) != 0 ? list[i].second : 0;
      if (sum < least || sum > most) continue;
      const bool fewer = best == 0 || std::popcount(set) < std::popcount(best);
      choice.equal = fewer ? 1 : choice.equal + (std::popcount(set) == std::popcount(best) ? 1 : 0);
      if (fewer) best = set;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if ((best >> i & 1) != 0) choice.shapes.insert(list[i].first);
    }
    return choice;
  }

  // Chooses the experts' shapes. All gradients of either kind travel in its groups, so their sums
  // match the groups' up to padding. Among several choices, it takes the one of fewest shapes.
  void find_experts() {
    const std::int64_t most = carried(true);
    if (most == 0) return;
    std::map<Shape, std::int64_t> shapes;
    for (const Gradient& gradient : whole_.step.gradients) {
      shapes[gradient.shape] += gradient.elements;
    }
    const ShapeChoice choice = choose_shapes(shapes, in_gradients() - carried(false), most);
    if (choice.equal != 1) {
      throw InputError(trace_.path + ": " + (choice.equal == 0 ? "no" : "more than one") +
                       " choice of the gradients' shapes adds up to what the experts' groups "
                       "carry, so which are the experts' is not known");
    }
    for (Gradient& gradient : whole_.step.gradients) {
      if (choice.shapes.contains(gradient.shape)) gradient.expert = true;
    }
  }

  const Trace& trace_;
  const std::vector<RankGroup>& groups_;
  const Parallel& parallel_;
  int stage_;
  WholeStep& whole_;
  std::vector<std::size_t> exchanges_;  // exchanges of gradients: places in Step::exchanges
  LaidGradients laid_;
};

}  // namespace

bool find_whole_sizes(const Trace& trace, const std::vector<RankGroup>& groups,
                      const Parallel& parallel, int stage, WholeStep& whole) {
  return WholeSizes(trace, groups, parallel, stage, whole).find();
}

}  // namespace syncline::job::kineto
