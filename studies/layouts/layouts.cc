#include "studies/layouts/layouts.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/fusion.h"
#include "core/plan/pipeline.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "studies/rows/row_evaluator.h"
#include "studies/rows/uncertainty.h"
#include "studies/study/study_calibration.h"
#include "studies/tune/evaluator.h"
#include "studies/warnings/warnings.h"

namespace syncline::tune {
namespace {

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> all;
  for (std::int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) all.push_back(static_cast<int>(d));
  }
  return all;
}

int extent_of(const Json& parallel, const char* key) { return parallel.value(key, 1); }

// Returns the document with only its baseline.
input::Document of_strategy(const input::Document& document, const Scenario& scenario) {
  input::Document own = document;
  const auto baseline = std::ranges::find(scenario.strategies, scenario.baseline, &Strategy::name);
  own.root["strategies"] = Json::array(
      {document.root.at("strategies").at(index(baseline - scenario.strategies.begin()))});
  for (const char* key : {"sweep", "published", "calibration", "search"}) own.root.erase(key);
  return own;
}

Scenario laid_out(input::Document document, const RankedLayout& layout) {
  Json& workload = document.root["workload"];
  workload.update(layout.keys());
  if (workload.value("activation_checkpointing", "none") != "full") {
    workload.erase("checkpointing_every");
  }
  return input::parse_scenario(document);
}

// Returns the keys of a layout that the given one has otherwise, as text.
std::string keys_beside(const RankedLayout& layout, const RankedLayout& given) {
  std::string text;
  const Json before = given.keys(), own = layout.keys();
  for (const auto& [key, value] : own.items()) {
    if (before.contains(key) && before[key] == value) continue;
    text += (text.empty() ? "" : ", ") + Json(key).dump() + ": " + dialect::on_one_line(value);
  }
  return text.empty() ? "" : "workload: " + text;
}

// All layouts that divide the cluster and the layers. The reader of scenarios refuses those that do
// not divide other parts of the model.
class LayoutSpace {
 public:
  LayoutSpace(const input::Document& document, const Scenario& scenario, const LayoutChoice& choice)
      : given_(document.root.at("workload").value("parallel", Json::object())),
        layouts_too_(choice.layouts),
        workload_(scenario.workload),
        ranks_(scenario.cluster.ranks()) {
    for (const Tensor& tensor : workload_.tensors) {
      layers_ = std::max(layers_, plan::layer_number(tensor.name) + 1);
    }
    const Json& operators = document.root.at("workload").at("operators");
    const auto* row = operators::find_architecture(operators.value("architecture", ""));
    experts_ =
        row->shaped ? operators.at("shape").value("experts", std::int64_t{0}) : row->shape.experts;
    samples_ = samples_of(workload_) * (ranks_ / workload_.parallel.model_ranks());
    sizes_.insert(workload_.batch);
    sizes_.insert(choice.batches.begin(), choice.batches.end());
    constexpr std::int64_t kMaxSamples = 256;  // nobody's micro-batch is larger
    for (std::int64_t size = 1; choice.micro_batches && size <= kMaxSamples; size *= 2) {
      if (samples_ % size == 0) sizes_.insert(size);
    }
    if (!choice.checkpointing) return;
    recomputed_ = {"none", "selective", "full"};
    own_ = document.root.at("workload").value("activation_checkpointing", "none");
    if (std::ranges::find(recomputed_, own_) == recomputed_.end()) recomputed_.push_back(own_);
  }

  RankedLayout given() const {
    return {{},
            given_,
            workload_.batch,
            workload_.micro_batches,
            ranks_ / workload_.parallel.model_ranks(),
            own_};
  }

  // Returns the layouts; those that cut less come first.
  std::vector<RankedLayout> all() {
    if (!layouts_too_) {
      const auto own = [&](const char* key) { return extent_of(given_, key); };
      for (const std::int64_t batch : sizes_) {
        add_sized(given_, batch, own("pipeline"), own("virtual_stages"));
      }
      return std::move(layouts_);
    }
    for (const int tensor : divisors(ranks_)) {
      for (const int context : divisors(ranks_ / tensor)) {
        for (const int pipeline : divisors(ranks_ / tensor / context)) {
          if (!divides_layers(pipeline, 1)) continue;
          add(tensor, context, pipeline);
        }
      }
    }
    return std::move(layouts_);
  }

 private:
  // Returns true if stages get equal layers. The layers at both ends may count as one each
  // (read_parallel.cc), but only if the stages are uneven without them.
  bool divides_layers(int pipeline, int chunks) const {
    const int parts = pipeline * chunks;
    const bool even = layers_ % pipeline == 0;
    return even ? layers_ % parts == 0 : parts <= layers_ + 2 && (layers_ + 2) % parts == 0;
  }

  // Adds the layouts with these sizes: all model chunks, experts and samples per micro-batch.
  void add(int tensor, int context, int pipeline) {
    const std::int64_t stage = ranks_ / pipeline;
    for (const int chunk : chunk_counts(pipeline)) {
      for (const int expert : divisors(std::max<std::int64_t>(1, experts_))) {
        const int tensor_of_expert = expert > 1 ? extent_of(given_, "expert_tensor") : 1;
        if (stage % (std::int64_t{expert} * tensor_of_expert) != 0) continue;
        Json parallel = cut(tensor, context, pipeline, expert);
        if (chunk > 1) parallel["virtual_stages"] = chunk;
        schedule(pipeline, chunk, parallel);
        for (const std::int64_t batch : sizes_) add_sized(parallel, batch, pipeline, chunk);
      }
    }
  }

  std::vector<int> chunk_counts(int pipeline) const {
    std::vector<int> counts;
    if (pipeline == 1) return {1};
    for (int chunk = 1; chunk * pipeline <= layers_ + 2; ++chunk) {
      if (divides_layers(pipeline, chunk)) counts.push_back(chunk);
    }
    return counts;
  }

  // Returns workload.parallel with these sizes, and the given layout's options that apply.
  Json cut(int tensor, int context, int pipeline, int expert) const {
    Json parallel = Json::object();
    if (tensor > 1) parallel["tensor"] = tensor;
    // Norms and residuals are cut too, unless the given layout's tensor groups do not cut them.
    const bool without = extent_of(given_, "tensor") > 1 && !given_.value("sequence", false);
    if (tensor > 1 && !without) parallel["sequence"] = true;
    if (context > 1) parallel["context"] = context;
    if (pipeline > 1) parallel["pipeline"] = pipeline;
    if (expert > 1) parallel["expert"] = expert;
    // Options of the given layout carry over to other layouts.
    const auto keep = [&](const char* key, bool fits) {
      if (fits && given_.contains(key)) parallel[key] = given_[key];
    };
    keep("expert_tensor", expert > 1);
    keep("overlap_tensor", parallel.contains("sequence"));
    keep("overlap_expert", expert > 1);
    keep("context_exchange", context > 1);
    if (context == 1 && expert == 1 && given_.contains("order"))
      parallel["order"] = given_["order"];
    return parallel;
  }

  // Keeps the given schedule, if it suits this kind of layout.
  void schedule(int pipeline, int chunk, Json& parallel) const {
    const std::string own = given_.value("schedule", "1f1b");
    if (pipeline > 1 && chunk == 1 && own != "interleaved") parallel["schedule"] = own;
    if (pipeline > 1 && given_.contains("overlap_sends")) {
      parallel["overlap_sends"] = given_["overlap_sends"];
    }
  }

  // Adds a layout of this size. Interleaved micro-batches come in groups as large as the pipeline.
  void add_sized(const Json& parallel, std::int64_t batch, int pipeline, int chunk) {
    const int replicas =
        ranks_ / (extent_of(parallel, "tensor") * extent_of(parallel, "context")) / pipeline;
    if (samples_ % (batch * replicas) != 0) return;
    const std::int64_t micro_batches = samples_ / (batch * replicas);
    if (chunk > 1 && micro_batches % pipeline != 0) return;
    for (const std::string& recompute : recomputed_) {
      layouts_.push_back({{}, parallel, batch, micro_batches, replicas, recompute});
    }
  }

  const Json given_;
  bool layouts_too_;
  std::vector<std::string> recomputed_{""};
  std::string own_;  // of the given job; empty: nobody asks
  const Workload& workload_;
  int ranks_;
  int layers_ = 0;
  std::int64_t experts_ = 0;
  std::int64_t samples_ = 1;  // in a step
  std::set<std::int64_t> sizes_;
  std::vector<RankedLayout> layouts_;
};

// Knowledge of a layout before its evaluation.
struct Seen {
  enum class State { kRefused, kTooLarge, kFits } state = State::kRefused;
  Seconds least = 0;
  double needed = 0;  // bytes per rank
};

bool all_fits(const measure::Memory& memory) {
  return memory.available <= 0 || memory.total() <= memory.available;
}

class LayoutSearch {
 public:
  LayoutSearch(const input::Document& document, const measure::FitErrors& fit_errors,
               const LayoutChoice& choice, const TuneOptions& options, Layouts& found)
      : document_(of_strategy(document, found.scenario)),
        residuals_(fit_errors),
        options_(options),
        found_(found),
        cache_(found.scenario.cluster),
        executor_(options.make_executor(
            {found.scenario.cluster, found.scenario.simulation, found.scenario.seed})) {
    LayoutSpace space(document_, found.scenario, choice);
    found_.given = space.given();
    layouts_ = space.all();
    found_.layouts = layouts_.size();
  }

  void run() {
    cost(found_.given);
    look_at_all();
    evaluate_in_order();
    detail(found_.given);
    for (RankedLayout& one : found_.ranking) detail(one);
    if (!found_.ranking.empty()) add_changes(found_.ranking.front());
  }

 private:
  Scenario scenario_of(const RankedLayout& layout) const { return laid_out(document_, layout); }

  // Returns whether a layout is valid and fits into memory, and a lower bound of its step.
  Seen look_at(const RankedLayout& layout) const {
    Seen seen;
    try {
      const Scenario scenario = scenario_of(layout);
      const Strategy& strategy = scenario.strategies.front();
      const measure::Memory memory = measure::memory_of(scenario, strategy);
      seen.state = all_fits(memory) ? Seen::State::kFits : Seen::State::kTooLarge;
      seen.needed = memory.total();
      const auto fused =
          plan::fused_workload(scenario.workload, scenario.cluster.device, strategy.compute_fusion);
      seen.least = plan::least_step(fused ? *fused : scenario.workload);
    } catch (const InputError&) {
      seen.state = Seen::State::kRefused;
    }
    return seen;
  }

  // Examines the layouts in pieces of several: one takes a few milliseconds.
  void look_at_all() {
    constexpr std::size_t kPiece = 32;
    run::JobHooks hooks;
    hooks.interrupted = options_.interrupted;
    hooks.progress = options_.progress;
    hooks.name = [](std::size_t first) { return "layouts from " + std::to_string(first); };
    const auto look = [&](std::size_t i) {
      const Seen seen = look_at(layouts_[i]);
      return std::string(reinterpret_cast<const char*>(&seen), sizeof seen);
    };
    const std::string bytes =
        in_pieces(layouts_.size(), kPiece, options_.parallel_map, look, hooks);
    seen_.resize(bytes.size() / sizeof(Seen));
    std::memcpy(seen_.data(), bytes.data(), bytes.size());
    const auto count = [&](Seen::State state) {
      return static_cast<std::size_t>(std::ranges::count(seen_, state, &Seen::state));
    };
    found_.fitting = count(Seen::State::kFits);
    found_.too_large = count(Seen::State::kTooLarge);
    found_.complete = seen_.size() == layouts_.size();
    if (found_.fitting == 0 && found_.too_large > 0) note_least();
  }

  void note_least() {
    const auto needed = [](const Seen& seen) {
      return seen.state == Seen::State::kTooLarge ? seen.needed : 1e300;
    };
    const auto least = std::ranges::min_element(seen_, {}, needed);
    const RankedLayout& layout = layouts_[index(least - seen_.begin())];
    found_.least = "'" + layout.words() + "' needs least, " + measure::gigabytes(least->needed) +
                   " of the " + measure::gigabytes(found_.scenario.cluster.device.memory_size) +
                   " GB of a GPU";
  }

  // Evaluates layouts by ascending bound, until the others' bounds exceed the best few.
  void evaluate_in_order() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].state == Seen::State::kFits) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return seen_[i].least; });
    const bool stopped = !found_.complete;  // a few layouts are still an answer
    for (const std::size_t i : order) {
      const bool full = places_.size() == options_.top;
      const bool pruned = full && options_.method != TuneOptions::Method::kExhaustive &&
                          seen_[i].least > places_.rbegin()->first.first;
      if (pruned || (stopped && full)) break;
      if (full && (options_.interrupted() || at_budget())) {
        found_.complete = false;
        break;
      }
      RankedLayout one = layouts_[i];
      cost(one);
      ++found_.evaluated;
      places_.emplace(std::pair(one.metrics.step_time, i), std::move(one));
      if (places_.size() > options_.top) places_.erase(std::prev(places_.end()));
      tell_progress(order);
    }
    for (auto& [place, one] : places_) found_.ranking.push_back(std::move(one));
  }

  // Reports progress over the layouts that are not excluded yet.
  void tell_progress(const std::vector<std::size_t>& order) const {
    const bool full = places_.size() == options_.top;
    const Seconds most = full ? places_.rbegin()->first.first : 1e300;
    const auto left =
        std::ranges::count_if(order, [&](std::size_t i) { return seen_[i].least <= most; });
    options_.progress(layouts_.size() + found_.evaluated,
                      layouts_.size() + std::max(found_.evaluated, static_cast<std::size_t>(left)));
  }

  bool at_budget() const { return options_.budget > 0 && found_.evaluated >= options_.budget; }

  void cost(RankedLayout& one) {
    const Scenario scenario = scenario_of(one);
    const Strategy& strategy = scenario.strategies.front();
    one.memory = measure::memory_of(scenario, strategy);
    one.metrics = measure::evaluate_strategy(scenario, strategy, *executor_, cache_).metrics;
    const auto tokens = static_cast<double>(scenario.workload.tokens);
    one.tokens = one.metrics.throughput * tokens / scenario.cluster.ranks();
    one.mfu = measure::rated_seconds(scenario) / one.metrics.step_time;
  }

  // Returns a layout in place of the given one, as a decision.
  measure::Advice decision_of(const std::string& words, const RankedLayout& layout) const {
    measure::Advice row{layout, words, keys_beside(layout, found_.given),
                        *find_strategy(found_.scenario, found_.strategy)};
    row.speedup = found_.speedup(layout);
    return row;
  }

  // Adds the given job, the best, and each of the best's changes alone: the layout with the given
  // micro-batches and as many as then make a step, the micro-batches, the recomputation.
  void add_changes(const RankedLayout& best) {
    const RankedLayout& given = found_.given;
    if (best.same_job(given)) return;
    found_.changes = {decision_of(given.words(), given), decision_of(best.words(), best)};
    const std::int64_t samples = given.batch * given.micro_batches * given.replicas;
    const auto add = [&](const std::string& words, RankedLayout alone) {
      measure::Advice& row = found_.changes.emplace_back();
      row.change = words;
      row.set_with = "only with the other changes";
      const std::int64_t pass = alone.batch * alone.replicas;
      if (samples % pass != 0) return;
      alone.micro_batches = samples / pass;
      try {
        cost(alone);
        detail(alone);
        row = decision_of(words, alone);
      } catch (const InputError&) {
        // It does not divide the model without the others.
      }
    };
    if (best.parallel != given.parallel) {
      RankedLayout alone = given;
      alone.parallel = best.parallel;
      alone.replicas = best.replicas;
      add(best.cut_words() + " in place of " + given.cut_words(), alone);
    }
    if (best.batch != given.batch) {
      RankedLayout alone = given;
      alone.batch = best.batch;
      add("micro-batches of " + std::to_string(best.batch) + " in place of " +
              std::to_string(given.batch),
          alone);
    }
    if (best.recompute != given.recompute) {
      RankedLayout alone = given;
      alone.recompute = best.recompute;
      add("recomputation " + best.recompute + " in place of " + given.recompute, alone);
    }
    // The only change is the best itself.
    constexpr std::size_t kOne = 3;
    if (found_.changes.size() == kOne) found_.changes.pop_back();
  }

  // Adds bottleneck and interval to a layout that is shown.
  void detail(RankedLayout& one) {
    const Scenario scenario = scenario_of(one);
    const Strategy& strategy = scenario.strategies.front();
    const auto evaluated = measure::evaluate_strategy(scenario, strategy, *executor_, cache_);
    one.bottleneck = measure::bottleneck_of(evaluated, scenario, cache_);
    measure::Uncertainties uncertainties(scenario, residuals_);
    const measure::Sensitivity sensitivity = uncertainties.sensitivity(strategy);
    if (&one == &found_.given) given_sensitivity_ = sensitivity;
    one.step = measure::interval_of(one.metrics.step_time, sensitivity);
    one.gain = one.same_job(found_.given)
                   ? measure::Interval{1, 1}
                   : measure::ratio_interval(found_.speedup(one), given_sensitivity_, sensitivity);
  }

  input::Document document_;
  const measure::FitErrors& residuals_;
  const TuneOptions& options_;
  Layouts& found_;
  collective::CostCache cache_;
  std::unique_ptr<run::Executor> executor_;
  std::vector<RankedLayout> layouts_;
  std::vector<Seen> seen_;
  std::map<std::pair<Seconds, std::size_t>, RankedLayout> places_;  // the best so far
  measure::Sensitivity given_sensitivity_;
};

void expect_architecture(const input::Document& document, const Scenario& scenario) {
  const Json& workload = document.root.at("workload");
  const bool architecture =
      workload.contains("operators") && workload["operators"].contains("architecture");
  if (architecture && !scenario.workload.times_given && !workload.contains("tensors")) return;
  throw InputError(document.file +
                   ": workload: its times are those of one job; --layouts, --micro-batches and "
                   "--checkpointing need a model by "
                   "operators.architecture, without times and tensors of its own");
}

}  // namespace

std::string RankedLayout::cut_words() const {
  std::string text;
  const auto size = [&](const char* key) { return extent_of(parallel, key); };
  const auto name = [&](const char* key, const char* word) {
    if (size(key) > 1) text += (text.empty() ? "" : ", ") + (word + std::to_string(size(key)));
  };
  name("tensor", "tp=");
  if (parallel.value("sequence", false)) text += " sp";
  name("context", "cp=");
  name("pipeline", "pp=");
  if (size("virtual_stages") > 1) text += " vp=" + std::to_string(size("virtual_stages"));
  name("expert", "ep=");
  name("expert_tensor", "etp=");
  return text + (text.empty() ? "" : ", ") + "dp=" + std::to_string(replicas);
}

std::string RankedLayout::words() const {
  return cut_words() + ", " + std::to_string(micro_batches) +
         (micro_batches == 1 ? " micro-batch" : " micro-batches") + " of " + std::to_string(batch) +
         (recompute.empty() ? "" : ", recompute " + recompute);
}

Json RankedLayout::keys() const {
  Json keys{{"parallel", parallel}, {"batch", batch}, {"micro_batches", micro_batches}};
  if (!recompute.empty()) keys["activation_checkpointing"] = recompute;
  return keys;
}

Scenario with_layout(const input::Document& document, const RankedLayout& layout) {
  return laid_out(of_strategy(document, input::parse_scenario(document)), layout);
}

Layouts tune_layouts(const input::Document& document, const LayoutChoice& choice,
                     const TuneOptions& options) {
  const auto [fitted, fit_errors] = measure::calibrate_document(document);
  Layouts found;
  found.scenario = input::parse_lone_scenario(fitted);
  expect_architecture(fitted, found.scenario);
  found.strategy = found.scenario.baseline;
  found.executor = options.executor;
  found.warnings = measure::warnings_of(fitted, found.scenario);
  LayoutSearch(fitted, fit_errors, choice, options, found).run();
  return found;
}

}  // namespace syncline::tune
