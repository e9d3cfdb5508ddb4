#include <gtest/gtest.h>

#include "core/job/chakra/chakra.h"
#include "core/job/execution_trace/execution_trace.h"
#include "tests/support/corpus.h"

namespace syncline::job {
namespace {

TEST(TraceCorpus, EveryExecutionTraceIsReadOrRefused) {
  const auto replayed = test::replay_corpus("execution_trace", [](const std::string& bytes) {
    const Observed observed = execution_trace::observed_from_text("corpus", bytes);
    EXPECT_FALSE(observed.ranks.at(0).steps.empty());
  });
  EXPECT_GE(replayed.read, 4);
  EXPECT_GE(replayed.refused, 3);
}

TEST(TraceCorpus, EveryChakraTraceIsReadOrRefused) {
  const auto replayed = test::replay_corpus("chakra", [](const std::string& bytes) {
    const Observed observed = chakra::observed_from_bytes("corpus", bytes);
    EXPECT_FALSE(observed.ranks.at(0).steps.empty());
  });
  EXPECT_GE(replayed.read, 4);
  EXPECT_GE(replayed.refused, 4);
}

}  // namespace
}  // namespace syncline::job
