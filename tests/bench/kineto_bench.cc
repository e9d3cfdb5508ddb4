// Reading a Kineto trace: the importer, the same bytes cut into events alone, and nlohmann's SAX
// parser with a handler that keeps nothing. Goal: a gigabyte, packed or not, in less than 20 s and
// 500 MB. SYNCLINE_TRACE_MB sets the size of the trace, 64 where it is not set.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "imports/format.h"
#include "imports/kineto/trace.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/scratch.h"

namespace syncline {
namespace {

// What stands between the events that matter in a real trace, as long as there.
const char* const kNoise[] = {
    R"({"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: ConvolutionBackward0", "pid": 77, "tid": 1002, "ts": 1700000000000001.655, "dur": 156.777, "args": {"External id": 2049, "Record function id": 1909, "Sequence number": 1080, "Fwd thread id": 1, "Ev Idx": 0}})",
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::convolution_backward", "pid": 77, "tid": 1002, "ts": 1700000000000002.655, "dur": 99.1, "args": {"External id": 2050, "Record function id": 1910, "Input Dims": [[32, 64, 56, 56], [32, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], [], [], [], []], "Input type": ["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", ""], "Ev Idx": 1}})",
    R"({"ph": "f", "id": 57532, "pid": 77, "tid": 1002, "ts": 1700000000000003.392, "cat": "ac2g", "name": "ac2g", "bp": "e"})",
    R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamIsCapturing", "pid": 77, "tid": 1002, "ts": 1700000000000004.392, "dur": 1.577, "args": {"External id": 57532, "cbid": 317, "correlation": 900000001}})",
    R"({"ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1501): _call_impl", "pid": 77, "tid": 1001, "ts": 1700000000000005.392, "dur": 25.5, "args": {"Python id": 12, "Python parent id": 11, "Ev Idx": 7}})"};

std::string large_trace() {
  static const test::Scratch scratch;
  static const std::string path = [] {
    const char* wanted = std::getenv("SYNCLINE_TRACE_MB");
    const std::size_t bytes = (wanted == nullptr ? 64 : std::strtoul(wanted, nullptr, 10)) << 20;
    std::string file = scratch.path("large.pt.trace.json");
    std::ofstream out(file, std::ios::binary);
    test::TraceWriter writer({.name = "bench"}, 1);
    const std::string text = writer.file(40);
    const std::size_t end = text.rfind("\n]");
    out.write(text.data(), static_cast<std::streamsize>(end));
    std::size_t written = end;
    for (std::size_t i = 0; written < bytes; ++i) {
      const std::string noise = kNoise[i % std::size(kNoise)];
      out << ",\n" << noise;
      written += noise.size() + 2;
    }
    out << "\n]}";
    return file;
  }();
  return path;
}

void count(benchmark::State& state, const std::string& path) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

void ImportTrace(benchmark::State& state) {
  const std::string path = large_trace();
  for (auto _ : state) benchmark::DoNotOptimize(job::read_job({path}));
  count(state, path);
}
BENCHMARK(ImportTrace)->Unit(benchmark::kMillisecond);

void CutTraceAlone(benchmark::State& state) {
  const std::string path = large_trace();
  for (auto _ : state) {
    std::size_t events = 0;
    job::kineto::cut(path, {.event = [&](std::string_view) { ++events; },
                            .member = [](std::string_view, std::string_view) {}});
    benchmark::DoNotOptimize(events);
  }
  count(state, path);
}
BENCHMARK(CutTraceAlone)->Unit(benchmark::kMillisecond);

struct KeepNothing : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

void NlohmannSaxKeepingNothing(benchmark::State& state) {
  const std::string path = large_trace();
  for (auto _ : state) {
    std::ifstream in(path, std::ios::binary);
    KeepNothing handler;
    benchmark::DoNotOptimize(nlohmann::json::sax_parse(in, &handler));
  }
  count(state, path);
}
BENCHMARK(NlohmannSaxKeepingNothing)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline
