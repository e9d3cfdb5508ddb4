#include "imports/whole_job.h"

#include <algorithm>
#include <map>

namespace syncline::job {
namespace {

// Returns the rank with the trace of a stage; the first rank if there is none.
const Rank& rank_of_stage(const Observed& observed, int stage) {
  const auto found = std::ranges::find(observed.ranks, stage, &Rank::stage);
  return found == observed.ranks.end() ? observed.ranks.front() : *found;
}

// A gradient in the whole model's backward order: its part of the model, and its place in the step
// that has it.
struct Piece {
  int part = 0;
  const Rank* rank = nullptr;
  std::size_t gradient = 0;
};

std::vector<Piece> pieces_of(const Observed& observed) {
  const Parallel& parallel = observed.whole->parallel;
  std::vector<Piece> pieces;
  for (int part = parallel.parts(); part-- > 0;) {
    const Rank& rank = rank_of_stage(observed, part % parallel.pipeline);
    const auto& gradients = typical_step(rank).gradients;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].chunk == part / parallel.pipeline) pieces.push_back({part, &rank, i});
    }
  }
  return pieces;
}

// Returns the format of a gradient in its exchange, if that is narrower, else its own.
DType format_of(const Step& step, std::size_t gradient) {
  const DType own = step.gradients[gradient].dtype;
  for (const ObservedExchange& exchange : step.exchanges) {
    const bool carries = std::ranges::find(exchange.gradients, static_cast<int>(gradient)) !=
                         exchange.gradients.end();
    if (carries && size_of(exchange.dtype) < size_of(own)) return exchange.dtype;
  }
  return own;
}

Seconds waits_of(const Step& step) {
  Seconds waits = 0;
  for (const Gradient& gradient : step.gradients) waits += gradient.wait;
  return waits;
}

Tensor tensor_of_piece(const Observed& observed, const Piece& piece) {
  const Whole& whole = *observed.whole;
  const Step& step = typical_step(*piece.rank);
  const Gradient& gradient = step.gradients[piece.gradient];
  Tensor tensor;
  const std::string place = "gradient " + std::to_string(piece.gradient);
  tensor.name =
      whole.parallel.parts() == 1 ? place : "part " + std::to_string(piece.part) + " " + place;
  tensor.shape = gradient.shape;
  tensor.elements = gradient.elements;
  tensor.dtype = format_of(step, piece.gradient);
  tensor.backward = gradient.wait;
  const Seconds backward = waits_of(step);
  const double share =
      backward > 0 ? gradient.wait / backward : 1.0 / static_cast<double>(step.gradients.size());
  tensor.forward = share * step.forward / whole.micro_batches;
  tensor.part = piece.part;
  tensor.expert = gradient.expert;
  return tensor;
}

void say_stages(const Observed& observed, std::vector<std::string>& assumed) {
  const Parallel& parallel = observed.whole->parallel;
  if (parallel.pipeline > 1 && parallel.activation == 0) {
    assumed.emplace_back(
        "what pipeline stages send each other is not given, so it costs nothing: "
        "'activation_bytes' of workload.parallel says it");
  }
  std::string untold;
  for (int stage = 0; stage < observed.whole->parallel.pipeline; ++stage) {
    if (rank_of_stage(observed, stage).stage == stage) continue;
    untold += (untold.empty() ? "" : ", ") + std::to_string(stage);
  }
  if (untold.empty()) return;
  assumed.push_back("no trace of a rank of pipeline stage " + untold +
                    ": taken as long, and with the gradients, of stage " +
                    std::to_string(observed.ranks.front().stage) +
                    "; give one trace of each stage");
}

// Returns buckets of all stages, in tensors of the whole model.
std::vector<std::vector<int>> buckets_of(const Observed& observed) {
  const std::vector<Piece> pieces = pieces_of(observed);
  std::vector<std::vector<int>> buckets;
  for (int stage = observed.whole->parallel.pipeline; stage-- > 0;) {
    const Step& step = typical_step(rank_of_stage(observed, stage));
    std::map<std::size_t, int> places;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool here = pieces[i].part % observed.whole->parallel.pipeline == stage;
      if (here) places[pieces[i].gradient] = static_cast<int>(i);
    }
    for (const ObservedExchange& exchange : step.exchanges) {
      std::map<int, std::vector<int>> by_part;
      for (const int gradient : exchange.gradients) {
        const int place = places.at(static_cast<std::size_t>(gradient));
        by_part[pieces[static_cast<std::size_t>(place)].part].push_back(place);
      }
      for (auto& [part, bucket] : by_part) {
        std::ranges::sort(bucket);
        buckets.push_back(std::move(bucket));
      }
    }
  }
  return buckets;
}

// Returns all gradients of each number format together: an update in shards gathers them at once.
std::vector<std::vector<int>> gathered_at_once(const Observed& observed) {
  const std::vector<Piece> pieces = pieces_of(observed);
  const Step& step = typical_step(observed.ranks.front());
  std::map<DType, std::vector<int>> formats;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    formats[step.gradients[pieces[i].gradient].dtype].push_back(static_cast<int>(i));
  }
  std::vector<std::vector<int>> groups;
  for (auto& [format, places] : formats) groups.push_back(std::move(places));
  return groups;
}

// Returns true if gradients are summed in a wider format than that of the parameters.
bool sums_in_fp32(const Step& step) {
  return std::ranges::any_of(step.exchanges, [&](const ObservedExchange& exchange) {
    return exchange.dtype == DType::kFp32 &&
           std::ranges::any_of(exchange.gradients, [&](int place) {
             return size_of(step.gradients[static_cast<std::size_t>(place)].dtype) < 4;
           });
  });
}

}  // namespace

std::string layout_text(const Whole& whole, int world_size) {
  const Parallel& parallel = whole.parallel;
  std::string text;
  const auto add = [&](const std::string& name, int size) {
    if (size > 1) text += (text.empty() ? "" : " x ") + name + " " + std::to_string(size);
  };
  add("tensor", parallel.tensor);
  add("context", parallel.context);
  add("pipeline", parallel.pipeline);
  const int data = world_size / parallel.model_ranks();
  add("data", data);
  if (parallel.expert > 1) text += ", experts over " + std::to_string(parallel.expert);
  const int replicas = data * parallel.context;
  if (whole.shards > 0) {
    text += whole.shards < replicas ? ", shards in groups of " + std::to_string(whole.shards)
                                    : ", sharded";
  }
  if (parallel.virtual_stages > 1) {
    text += ", " + std::to_string(parallel.virtual_stages) + " chunks a stage";
  }
  if (whole.micro_batches > 1)
    text += ", " + std::to_string(whole.micro_batches) + " micro-batches";
  return text;
}

void cut_as_observed(const Observed& observed, Workload& workload,
                     std::vector<std::string>& assumed) {
  const Whole& whole = *observed.whole;
  const Step& first = typical_step(observed.ranks.front());
  workload.micro_batches = whole.micro_batches;
  workload.parallel = whole.parallel;
  workload.tensors.clear();
  workload.forward = 0;
  for (const Piece& piece : pieces_of(observed)) {
    workload.tensors.push_back(tensor_of_piece(observed, piece));
    workload.forward += workload.tensors.back().forward;
  }
  // A workload's update covers all its parameters, not a shard.
  const auto own = static_cast<double>(std::max<Bytes>(1, gradient_bytes(first)));
  workload.update = first.update * std::max(1, whole.shards) *
                    static_cast<double>(gradient_bytes(workload)) / own;
  say_stages(observed, assumed);
}

BucketRule whole_rule(const Observed& observed) {
  const Whole& whole = *observed.whole;
  const Step& step = typical_step(observed.ranks.front());
  const int replicas = observed.world_size / (whole.parallel.tensor * whole.parallel.pipeline);
  const bool scatters = whole.shards > 0 && !whole.all_reduced;
  BucketRule rule;
  const auto buckets = buckets_of(observed);
  const auto own = std::ranges::count_if(
      step.exchanges, [](const ObservedExchange& exchange) { return !exchange.gradients.empty(); });
  rule.words =
      std::to_string(own) + (own == 1 ? " bucket" : " buckets") + " of this stage, " +
      (scatters ? "scattered over " + std::to_string(whole.shards) + " ranks" : "all-reduced");
  if (whole.all_reduced) rule.words += ", parameters updated in shards and gathered";
  if (whole.behind) rule.words += ", after the backward pass";
  if (whole.regather) rule.words += ", parameters gathered for both passes";
  Json& json = rule.strategy;
  json["fusion"] = {{"rule", "groups"}, {"groups", buckets}};
  if (sums_in_fp32(step)) json["fusion"]["cast"] = "fp32";
  if (whole.behind) json["overlap"] = false;
  if (whole.shards > 0) json["exchange"] = whole.all_reduced ? "sharded_update" : "sharded";
  if (whole.all_reduced) {
    json["gather_groups"] = gathered_at_once(observed);
  } else if (whole.shards > 0 && sums_in_fp32(step)) {
    json["gather_groups"] = buckets;
  }
  if (scatters && whole.gathers_late) json["cross_step"] = true;
  if (scatters && whole.regather) json["regather"] = true;
  if (scatters && whole.shards < replicas) {
    json["hierarchy"] = {{"form", "sharded"}, {"group_size", whole.shards}};
    if (whole.regather) json["hierarchy"]["across_stream"] = true;
  }
  if (whole.each_pass) json["each_micro_batch"] = true;
  return rule;
}

}  // namespace syncline::job
