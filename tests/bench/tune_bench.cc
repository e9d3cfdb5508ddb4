// The tuner's claims of speed (make bench). Each iteration tunes a joint search of 1,000 points:
// sizes x streams x algorithms x hierarchies x compressions.

#include <benchmark/benchmark.h>

#include <cmath>

#include "core/collective/critical_path.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "studies/layouts/layouts.h"
#include "studies/study/study.h"
#include "studies/tune/tuner.h"
#include "studies/tune/tuning.h"
#include "tests/support/one_stream.h"

namespace syncline {
namespace {

// 64 ranks: 8 nodes of 8 GPUs.
input::Document joint_search() {
  std::string sizes;
  for (int i = 1; i <= 25; ++i) sizes += (i > 1 ? ", " : "") + std::to_string(2 * i);
  return input::document_from_text(
      "bench", R"({"name": "bench", "workload": ")" SYNCLINE_SOURCE_DIR
               R"(/scenarios/workloads/resnet50_v100.json", "cluster": {
      "name": "bench", "nodes": 8, "gpus_per_node": 8,
      "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 8, "bandwidth_gbps": 25}, "collective_overhead_us": 10},
      "strategies": [{"name": "base"}], "search": {"fusion": {"size_mb": [)" +
                   sizes + R"(]}, "streams": [1, 2], "algorithm": ["ring", "halving_doubling"],
      "hierarchy": ["flat", {"form": "sharded"}],
      "compression": ["none", {"codec": "fp16"}, {"codec": "dgc", "sparsity": [0.99]},
                      {"codec": "dgc", "sparsity": [0.999]},
                      {"codec": "dgc", "sparsity": [0.9999]}], "confirm": 0}})");
}

void tune_jointly(benchmark::State& state, const tune::TuneOptions& options) {
  const input::Document document = joint_search();
  const Scenario scenario = input::parse_scenario(document);
  const Search search = *input::parse_search(document, scenario);
  tune::Tuned tuned;
  for (auto _ : state) tuned = tune::tune(scenario, search, options);
  state.counters["points"] = static_cast<double>(tuned.points);
  state.counters["priced"] = static_cast<double>(tuned.evaluations);
}

// Goal: under 1 s, every point evaluated.
void tune_1000_points_on_model(benchmark::State& state) {
  tune::TuneOptions options;
  options.method = tune::TuneOptions::Method::kExhaustive;
  tune_jointly(state, options);
}
BENCHMARK(tune_1000_points_on_model)->Unit(benchmark::kMillisecond)->UseRealTime();

void tune_1000_points_pruned(benchmark::State& state) {
  tune::TuneOptions options;
  options.method = tune::TuneOptions::Method::kPruned;
  tune_jointly(state, options);
}
BENCHMARK(tune_1000_points_pruned)->Unit(benchmark::kMillisecond)->UseRealTime();

// Goal: under 60 s, every point simulated.
void tune_1000_points_on_sim(benchmark::State& state) {
  tune::TuneOptions options;
  options.executor = "sim";
  options.make_executor = sim::make_sim_executor;
  tune_jointly(state, options);
}
BENCHMARK(tune_1000_points_on_sim)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

void tune_1000_points_on_sim_by_two_processes(benchmark::State& state) {
  tune::TuneOptions options;
  options.executor = "sim";
  options.make_executor = sim::make_sim_executor;
  options.parallel_map = run::over_processes(2);
  tune_jointly(state, options);
}
BENCHMARK(tune_1000_points_on_sim_by_two_processes)
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

// Llama 3 70B on 2,048 GPUs, five sizes of a micro-batch. Goal: 5,765 layouts in 10 s, by one
// process.
void tune_5000_layouts(benchmark::State& state) {
  input::Document document =
      input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/llama3_70b_layouts.json");
  input::set_key(document, "cluster.nodes", 256);
  tune::TuneOptions options;
  options.top = 10;
  options.parallel_map = run::over_processes(static_cast<int>(state.range(0)));
  tune::Layouts found;
  for (auto _ : state)
    found = tune::tune_layouts(document, {.layouts = true, .batches = {2, 4, 8, 16}}, options);
  state.counters["layouts"] = static_cast<double>(found.layouts);
  state.counters["priced"] = static_cast<double>(found.evaluated);
}
BENCHMARK(tune_5000_layouts)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

// A transformer of so many gradients on 4 nodes of 8 GPUs, as `tune` searches it by itself: the
// best few simulated, the verdicts evaluated. Goals: 5,000 in 10 s, 20,000 in 60 s and under 1 GB.
input::Document transformer(std::int64_t gradients) {
  constexpr std::int64_t kWidth = 1024;
  const std::pair<const char*, std::int64_t> kLayer[] = {
      {"fc2.bias", kWidth},     {"fc2.weight", 4 * kWidth * kWidth},
      {"fc1.bias", 4 * kWidth}, {"fc1.weight", 4 * kWidth * kWidth},
      {"ln2.bias", kWidth},     {"ln2.weight", kWidth},
      {"proj.bias", kWidth},    {"proj.weight", kWidth * kWidth},
      {"qkv.bias", 3 * kWidth}, {"qkv.weight", 3 * kWidth * kWidth},
      {"ln1.bias", kWidth},     {"ln1.weight", kWidth}};
  std::string tensors;
  for (std::int64_t i = 0; i < gradients; ++i) {
    const auto& [name, elements] = kLayer[static_cast<std::size_t>(i) % std::size(kLayer)];
    const std::int64_t layer = i / static_cast<std::int64_t>(std::size(kLayer));
    // No two take quite the same time.
    const double time = 2 + 6e-5 * static_cast<double>(elements) * (1 + 0.1 * std::sin(i));
    tensors += (i > 0 ? ", " : "") + std::string(R"({"name": "layers.)") + std::to_string(layer) +
               "." + name + R"(", "shape": [)" + std::to_string(elements) +
               R"(], "backward_us": )" + std::to_string(time) + "}";
  }
  return input::document_from_text(
      "transformer", R"({"name": "transformer", "workload": {"name": "transformer", "batch": 8,
      "forward_ms": 100, "tensors": [)" +
                         tensors + R"(]}, "cluster": {
      "name": "4 x 8, 10 GbE", "nodes": 4, "gpus_per_node": 8,
      "intra": {"latency_us": 6, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 25, "bandwidth_gbps": 10, "efficiency": 0.9},
      "device": {"memory_gbytes_per_s": 900, "launch_us": 5}},
      "strategies": [{"name": "base", "fusion": {"rule": "size", "size_mb": 25}}]})");
}

void tune_transformer(benchmark::State& state) {
  const input::Document document = transformer(state.range(0));
  tune::TuneOptions options;
  options.budget = 3000;
  options.work = options.budget * tune::kMaxExact;
  options.confirm = sim::make_sim_executor;
  options.confirm_work = 10000;
  tune::Tuning tuning;
  for (auto _ : state) tuning = tune::tune_document(document, options, "sim", nullptr);
  state.counters["points"] = static_cast<double>(tuning.tuned.points);
  state.counters["priced"] = static_cast<double>(tuning.tuned.evaluations);
}
BENCHMARK(tune_transformer)
    ->Arg(5000)
    ->Arg(20000)
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

// Gradients of as many sizes, whose buckets are hardly ever alike, on links of two kinds: costs
// follow the messages of each size. 500 are few enough for every bucket of the dynamic programme to
// be evaluated; of 1,000 the candidates have the most buckets. Goals: 10 s each and under 300 MB.
input::Document many_sizes(std::int64_t gradients) {
  std::string tensors;
  for (std::int64_t i = 0; i < gradients; ++i) {
    tensors += (i > 0 ? ", " : "") + std::string(R"({"name": "t)") + std::to_string(i) +
               R"(", "shape": [)" + std::to_string(1000 + i) + R"(, 100], "backward_us": 50})";
  }
  return input::document_from_text("many_sizes",
                                   R"({"name": "many sizes", "workload": {"name": "many sizes",
      "forward_ms": 100, "tensors": [)" +
                                       tensors + R"(]}, "cluster": {
      "name": "16 x 8", "nodes": 16, "gpus_per_node": 8,
      "intra": {"latency_us": 2, "bandwidth_gbps": 2400},
      "inter": {"latency_us": 5, "bandwidth_gbps": 400}}, "strategies": [{"name": "base"}]})");
}

void tune_many_sizes(benchmark::State& state) {
  const input::Document document = many_sizes(state.range(0));
  tune::TuneOptions options;
  options.budget = 3000;
  options.work = options.budget * tune::kMaxExact;
  const std::size_t before = collective::walks();
  tune::Tuning tuning;
  for (auto _ : state) tuning = tune::tune_document(document, options, "", nullptr);
  state.counters["priced"] = static_cast<double>(tuning.tuned.evaluations);
  state.counters["walks"] = static_cast<double>(collective::walks() - before);
}
BENCHMARK(tune_many_sizes)
    ->Arg(500)
    ->Arg(1000)
    ->Arg(2000)
    ->Arg(5000)
    ->Arg(20000)
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

// Llama 3.1 405B on 2,048 GPUs in Megatron, with a pipeline of 64 parts. Goals: the search in 20 s,
// its own strategy in 1 s.
input::Document llama_405b() {
  input::Document document = input::read_document(
      SYNCLINE_SOURCE_DIR "/scenarios/published/whole_jobs/dgxc_llama3.1_405b.json");
  for (const char* key : {"sweep", "published", "calibration"}) document.root.erase(key);
  input::set_key(document, "cluster.nodes", 256);
  return document;
}

void tune_llama_405b(benchmark::State& state) {
  const input::Document document = llama_405b();
  tune::TuneOptions options;
  options.budget = 3000;
  options.work = options.budget * tune::kMaxExact;
  tune::Tuning tuning;
  for (auto _ : state) {
    tuning = tune::tune_document(document, options, "", dialect::find_dialect("megatron"));
  }
  state.counters["priced"] = static_cast<double>(tuning.tuned.evaluations);
}
BENCHMARK(tune_llama_405b)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

void run_llama_405b(benchmark::State& state) {
  const input::Document document = llama_405b();
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  for (auto _ : state) benchmark::DoNotOptimize(measure::run_study(document, options));
}
BENCHMARK(run_llama_405b)->Unit(benchmark::kMillisecond)->UseRealTime();

// The dynamic programme: L gradients, O(L) and O(L^2).
test::FusionProblem long_problem(std::size_t count) {
  test::FusionProblem problem;
  for (std::size_t i = 0; i < count; ++i) {
    problem.ready.push_back(1e-4 * static_cast<double>(i));
    problem.bytes.push_back(static_cast<double>(1000 + 7919 * i % 100003));
  }
  return problem;
}

void optimum_affine(benchmark::State& state) {
  const auto problem = long_problem(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(test::best_fusion(problem, test::AffineCost{3e-4, 1e-9}));
}
BENCHMARK(optimum_affine)->Arg(161)->Arg(2000)->Unit(benchmark::kMicrosecond);

void optimum_any_cost(benchmark::State& state) {
  const auto problem = long_problem(static_cast<std::size_t>(state.range(0)));
  const tune::RunCost cost = test::run_cost(problem, {3e-4, 1e-9});
  for (auto _ : state) benchmark::DoNotOptimize(tune::best_fusion(problem.ready, cost));
}
BENCHMARK(optimum_any_cost)->Arg(161)->Arg(2000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace syncline
