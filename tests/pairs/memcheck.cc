// What make memcheck runs under valgrind: of a seeded list of scenarios drawn from the fragments
// those from FIRST on, COUNT of them, each by `run`, `explain`, `tune` with a small budget and both
// simulations. Valgrind tells of memory that nobody wrote; this program, what it did.
//   syncline_memcheck FIRST COUNT
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "studies/explain/explanation.h"
#include "studies/study/study.h"
#include "studies/tune/tuning.h"
#include "tests/pairs/net.h"

namespace syncline::pairs {
namespace {

// One gradient a layer: valgrind takes a hundred times as long.
void thin_out(Json& workload) {
  if (!workload.contains("tensors")) return;
  Json kept = Json::array();
  for (const Json& tensor : workload["tensors"]) {
    const std::string name = tensor["name"];
    if (name.find(".att.") == name.npos && name.find(".norm.") == name.npos) kept.push_back(tensor);
  }
  workload["tensors"] = std::move(kept);
}

// One to three fragments in turn, on clusters of eight ranks at most; what is refused is no
// scenario. The same whatever is asked of it.
std::vector<Json> drawn_scenarios(std::size_t wanted) {
  constexpr std::uint64_t kSeed = 7;
  constexpr int kMaxRanks = 8;
  std::vector<Json> scenarios;
  for (std::uint64_t draw = 0; scenarios.size() < wanted; ++draw) {
    const Case one = drawn_cases(1, 1 + draw % 3, kSeed + draw).front();
    if (one.shape.ranks() > kMaxRanks) continue;
    Json scenario = scenario_of(one.shape, one.chosen);
    thin_out(scenario["workload"]);
    try {
      input::parse_scenario(input::document_of("x.json", scenario));
      scenarios.push_back(std::move(scenario));
    } catch (const InputError&) {
    }
  }
  return scenarios;
}

void row(const Json& scenario, const measure::ExecutorFactory& executor, const char* granularity) {
  measure::StudyOptions options;
  options.make_executor = executor;
  options.trace = true;
  Json root = scenario;
  if (granularity != nullptr)
    root["simulation"] = {{"grain", granularity}, {"periods", 3}, {"warmup", 1}};
  measure::run_study(input::document_of("x.json", root), options);
}

void answer(const Json& scenario) {
  const auto document = input::document_of("x.json", scenario);
  row(scenario, run::make_model_executor, nullptr);
  measure::explain_strategies(document, input::parse_scenario(document), {"s"}, {});
  tune::TuneOptions options;
  options.budget = 3;
  options.confirm = sim::make_sim_executor;
  options.confirm_work = 1;
  tune::tune_document(document, options, "sim", nullptr);
  row(scenario, sim::make_sim_executor, "merged");
  if (!scenario.contains("others")) row(scenario, sim::make_sim_executor, "step");
}

int answered(std::size_t first, std::size_t count) {
  const auto scenarios = drawn_scenarios(first + count);
  std::size_t failed = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    try {
      answer(scenarios[i]);
    } catch (const std::exception& error) {
      ++failed;
      std::printf("scenario %zu fails: %s\n%s\n", i, error.what(), scenarios[i].dump().c_str());
    }
  }
  std::printf("%zu scenarios, %zu failures\n", count, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace syncline::pairs

int main(int count, char** words) {
  if (count != 3) return 2;
  return syncline::pairs::answered(std::strtoull(words[1], nullptr, 10),
                                   std::strtoull(words[2], nullptr, 10));
}
