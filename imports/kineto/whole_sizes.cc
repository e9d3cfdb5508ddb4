// Which gradients a stage has, by chunk of the model, and which of them its exchanges carry.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/plan/pipeline.h"
#include "imports/kineto/whole_rank.h"

namespace syncline::job::kineto {
namespace {

// Buckets are padded to whole shards: by less than this share, where they are no small ones.
constexpr double kPadding = 0.1;

class WholeSizes {
 public:
  WholeSizes(const Trace& trace, const std::vector<RankGroup>& groups, const Parallel& parallel,
             int stage, WholeStep& whole)
      : trace_(trace), groups_(groups), parallel_(parallel), stage_(stage), whole_(whole) {
    for (std::size_t i = 0; i < whole_.step.exchanges.size(); ++i) {
      // A loss is averaged between passes.
      const bool told = whole_.sent[i].engine || whole_.sent[i].behind;
      if (told && is_first_level(whole_.step.exchanges[i])) exchanges_.push_back(i);
    }
  }

  bool find() {
    for (const BackwardPass& pass : whole_.passes) {
      for (const int tensor : pass.tensors) {
        if (tensor < 0 || elements_of(tensor) == 0) return false;
      }
    }
    find_chunks();
    lay_down();
    cut_by_tensor();
    find_experts();
    before_.resize(whole_.step.gradients.size());
    std::iota(before_.begin(), before_.end(), 0);
    find_last_passes();
    for (const std::size_t exchange : exchanges_) assign(exchange);
    return true;
  }

 private:
  Role role_of(const ObservedExchange& exchange) const {
    return exchange.in < 0 ? Role::kUnknown : groups_[index(exchange.in)].role;
  }

  // Sums of gradients, not of shards that were summed already.
  bool is_first_level(const ObservedExchange& exchange) const {
    const Role role = role_of(exchange);
    const bool reduces = exchange.kind == "reduce_scatter" || exchange.kind == "all_reduce" ||
                         exchange.kind == "reduce";
    return reduces && exchange.elements > 0 &&
           (role == Role::kData || role == Role::kInner || role == Role::kExpertData);
  }

  std::int64_t elements_of(int tensor) const { return trace_.tensors[index(tensor)].elements; }

  // A stage of several chunks exchanges as many times what one backward pass makes.
  void find_chunks() {
    const auto passes = static_cast<int>(whole_.passes.size());
    std::set<std::size_t> exchanging;
    double carried = 0, made = 0;
    for (const std::size_t i : exchanges_) {
      carried += static_cast<double>(whole_.step.exchanges[i].elements);
      exchanging.insert(whole_.sent[i].pass);
    }
    for (const BackwardPass& pass : whole_.passes) {
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
    chunk_of_.assign(whole_.passes.size(), 0);
    if (!chunked) return;
    std::size_t next = 0;
    for (const plan::Pass& pass : plan::passes_of(layout, passes / sets, stage_)) {
      const bool backward = pass.kind == plan::Pass::Kind::kBackward;
      if (backward && next < chunk_of_.size()) chunk_of_[next++] = pass.chunk;
    }
  }

  // The last chunk's gradients first, as the backward pass goes.
  void lay_down() {
    for (int chunk = whole_.chunks; chunk-- > 0;) {
      const BackwardPass* last = nullptr;
      double count = 0;
      for (std::size_t p = 0; p < whole_.passes.size(); ++p) {
        if (chunk_of_[p] != chunk) continue;
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
          if (chunk_of_[p] == chunk) gradient.wait += whole_.passes[p].waits[i] / count;
        }
        arrived_.push_back(last->arrived[i]);
      }
    }
  }

  std::int64_t carried(bool expert) const {
    std::int64_t elements = 0;
    for (const std::size_t i : exchanges_) {
      const ObservedExchange& exchange = whole_.step.exchanges[i];
      if ((role_of(exchange) == Role::kExpertData) == expert) elements += exchange.elements;
    }
    return elements / std::max(1, whole_.exchanging_passes);
  }

  std::int64_t told() const {
    std::int64_t elements = 0;
    for (const Gradient& gradient : whole_.step.gradients) elements += gradient.elements;
    return elements;
  }

  // torch's DTensors tell the shape that all ranks of a tensor group hold together.
  void cut_by_tensor() {
    const std::int64_t all = carried(false) + carried(true);
    if (parallel_.tensor == 1 || all == 0 || told() <= all) return;
    std::int64_t cut = 0;
    const auto is_cut = [&](const Gradient& gradient) {
      return gradient.shape.size() > 1 && gradient.elements % parallel_.tensor == 0;
    };
    for (const Gradient& gradient : whole_.step.gradients) {
      cut += is_cut(gradient) ? gradient.elements / parallel_.tensor : gradient.elements;
    }
    if (cut > all) return;
    for (Gradient& gradient : whole_.step.gradients) {
      if (!is_cut(gradient)) continue;
      gradient.elements /= parallel_.tensor;
      gradient.shape = {gradient.elements};
    }
  }

  // Gradients of one shape are experts' or not, and what travels in either kind of group holds them
  // all: that leaves as much room as the padding takes. Of the choices that fit, the one of fewest
  // shapes.
  void find_experts() {
    const std::int64_t most = carried(true);
    if (most == 0) return;
    const std::int64_t least = told() - carried(false);
    constexpr std::size_t kMostShapes = 16;
    std::map<std::vector<std::int64_t>, std::int64_t> shapes;
    for (const Gradient& gradient : whole_.step.gradients) {
      shapes[gradient.shape] += gradient.elements;
    }
    const std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> list(shapes.begin(),
                                                                               shapes.end());
    const std::size_t sets = list.size() > kMostShapes ? 0 : std::size_t{1} << list.size();
    std::size_t best = 0, equal = 0;
    for (std::size_t set = 1; set < sets; ++set) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < list.size(); ++i) sum += (set >> i & 1) != 0 ? list[i].second : 0;
      if (sum < least || sum > most) continue;
      const bool fewer = best == 0 || std::popcount(set) < std::popcount(best);
      equal = fewer ? 1 : equal + (std::popcount(set) == std::popcount(best) ? 1 : 0);
      if (fewer) best = set;
    }
    if (equal != 1) {
      throw InputError(trace_.path + ": " + (equal == 0 ? "no" : "more than one") +
                       " choice of the gradients' shapes adds up to what the experts' groups "
                       "carry, so which are the experts' is not known");
    }
    for (Gradient& gradient : whole_.step.gradients) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const bool chosen = (best >> i & 1) != 0;
        if (chosen && gradient.shape == list[i].first) gradient.expert = true;
      }
    }
  }

  void find_last_passes() {
    is_last_pass_.assign(chunk_of_.size(), false);
    std::set<int> chunks;
    for (std::size_t pass = chunk_of_.size(); pass-- > 0;) {
      is_last_pass_[pass] = chunks.insert(chunk_of_[pass]).second;
    }
  }

  // The latest gradient, from this one back, that no exchange has taken; -1: none.
  int free_from(int gradient) {
    int found = gradient;
    while (found >= 0 && before_[index(found)] != found) found = before_[index(found)];
    while (gradient > found) gradient = std::exchange(before_[index(gradient)], found);
    return found;
  }

  // Gradients that may be in an exchange: those of its chunk that had arrived, or all.
  struct Range {
    int first = 0;
    int last = -1;
  };
  Range range_of(const WholeSent& sent) const {
    const auto& gradients = whole_.step.gradients;
    const auto count = static_cast<int>(gradients.size());
    if (sent.behind) return {0, count - 1};
    // Chunks fall along the gradients.
    const auto begin = [&](int chunk) {
      const auto at =
          std::ranges::lower_bound(gradients, chunk, std::greater<>{}, &Gradient::chunk);
      return static_cast<int>(at - gradients.begin());
    };
    const int first = begin(chunk_of_[sent.pass]);
    const int end = begin(chunk_of_[sent.pass] - 1);
    const auto behind =
        std::upper_bound(arrived_.begin() + first, arrived_.begin() + end, sent.launched);
    return {first, static_cast<int>(behind - arrived_.begin()) - 1};
  }

  // The latest ones that it has room for, as a module's own come behind those of the modules around
  // it: where nothing is left over, all that arrived since the exchange before.
  void assign(std::size_t place_of_exchange) {
    ObservedExchange& exchange = whole_.step.exchanges[place_of_exchange];
    const WholeSent& sent = whole_.sent[place_of_exchange];
    if (!is_last_pass_[sent.pass]) return;
    const bool expert = role_of(exchange) == Role::kExpertData;
    const Range range = range_of(sent);
    std::vector<int> places;
    std::int64_t sum = 0;
    int looked = 0;  // a trace where none fits shall not take for ever
    for (int i = free_from(range.last); i >= range.first && looked < kMost; i = free_from(i - 1)) {
      ++looked;
      const Gradient& gradient = whole_.step.gradients[index(i)];
      if (gradient.expert != expert) continue;
      if (sum + gradient.elements > exchange.elements) break;
      sum += gradient.elements;
      places.push_back(i);
    }
    // A small bucket is padded by more.
    const double least = (1 - kPadding) * static_cast<double>(exchange.elements);
    if (sum == 0 || (static_cast<double>(sum) < least && exchange.elements > kSmall)) return;
    for (const int i : places) before_[index(i)] = i - 1;
    std::ranges::reverse(places);
    exchange.gradients = std::move(places);
  }

  static constexpr std::int64_t kSmall = 1 << 16;
  static constexpr int kMost = 20'000;

  const Trace& trace_;
  const std::vector<RankGroup>& groups_;
  const Parallel& parallel_;
  int stage_;
  WholeStep& whole_;
  std::vector<std::size_t> exchanges_;  // of gradients: places in Step::exchanges
  std::vector<int> chunk_of_;           // by pass
  std::vector<Nanoseconds> arrived_;    // by gradient, in its chunk's last pass
  std::vector<int> before_;             // itself, or for one that is taken an earlier one
  std::vector<bool> is_last_pass_;      // by pass: of its chunk
};

}  // namespace

bool find_whole_sizes(const Trace& trace, const std::vector<RankGroup>& groups,
                      const Parallel& parallel, int stage, WholeStep& whole) {
  return WholeSizes(trace, groups, parallel, stage, whole).find();
}

}  // namespace syncline::job::kineto
