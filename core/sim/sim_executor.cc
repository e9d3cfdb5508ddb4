// Two grains (Simulation::grain). kStep moves every message of every round and lets each rank
// continue as soon as its own messages are done. kMerged simulates rounds with equal link load as
// one flow per edge, after their latencies. With `fold`, links that carry the same kinds of flows
// are simulated once (see fold.h).
#include "core/sim/sim_executor.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/base/error.h"
#include "core/run/jobs.h"

namespace syncline::sim {
namespace {

template <typename Item>
void append(std::string& bytes, const std::vector<Item>& items) {
  static_assert(std::is_trivially_copyable_v<Item>);
  const std::uint64_t count = items.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(items.data()), count * sizeof(Item));
}

template <typename Item>
std::vector<Item> take(const std::string& bytes, std::size_t& at) {
  std::uint64_t count = 0;
  const bool counted = at + sizeof count <= bytes.size();
  if (counted) std::memcpy(&count, bytes.data() + at, sizeof count);
  at += sizeof count;
  if (!counted || count > (bytes.size() - at) / sizeof(Item)) {
    throw MachineError("simulation: its answer is cut short");
  }
  std::vector<Item> items(count);
  if (count > 0) std::memcpy(items.data(), bytes.data() + at, count * sizeof(Item));
  at += count * sizeof(Item);
  return items;
}

// Appends integers and times separately: a span has uninitialised bytes between them.
void append_spans(std::string& bytes, const std::vector<run::Span>& spans) {
  std::vector<std::int32_t> numbers;
  std::vector<Seconds> times;
  for (const run::Span& span : spans) {
    numbers.insert(numbers.end(), {span.period, span.op, span.rank});
    times.insert(times.end(), {span.begin, span.end});
  }
  append(bytes, numbers);
  append(bytes, times);
}

std::vector<run::Span> take_spans(const std::string& bytes, std::size_t& at) {
  const auto numbers = take<std::int32_t>(bytes, at);
  const auto times = take<Seconds>(bytes, at);
  std::vector<run::Span> spans;
  for (std::size_t i = 0; 3 * i + 2 < numbers.size() && 2 * i + 1 < times.size(); ++i) {
    spans.push_back(
        {numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2], times[2 * i], times[2 * i + 1]});
  }
  return spans;
}

class SimExecutor final : public run::Executor {
 public:
  explicit SimExecutor(const run::ExecutorSettings& settings) : settings_(settings) {}

  std::string_view name() const override { return "sim"; }
  run::ExecutorTraits traits() const override {
    return {.shares_fabric = !settings_.others.empty()};
  }

  run::Outcome run(const plan::Plan& plan, const run::Gradients&, int periods) override {
    const std::string bytes = run::run_in_process("simulation", [&] {
      const run::Outcome outcome = simulate(plan, settings_, periods);
      std::string answer;
      append_spans(answer, outcome.timeline.spans);
      append(answer, outcome.timeline.period_ends);
      for (const auto& ends : outcome.others) append(answer, ends);
      return answer;
    });
    run::Outcome outcome;
    std::size_t at = 0;
    outcome.timeline.spans = take_spans(bytes, at);
    outcome.timeline.period_ends = take<Seconds>(bytes, at);
    while (at < bytes.size()) outcome.others.push_back(take<Seconds>(bytes, at));
    return outcome;
  }

 private:
  run::ExecutorSettings settings_;
};

}  // namespace

std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings) {
  return std::make_unique<SimExecutor>(settings);
}

}  // namespace syncline::sim
