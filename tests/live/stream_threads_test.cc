// A thread a stream: whatever fails, the threads that began are waited for, and who asked is told.
#include "live/live_executor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <system_error>

namespace syncline::live {
namespace {

#ifdef SYNCLINE_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// One operation on each stream, none waits.
plan::Plan side_by_side(int streams) {
  plan::Plan plan;
  plan.streams = streams;
  for (int s = 0; s < streams; ++s) plan.ops.push_back({s, {}, plan::Busy{}});
  return plan;
}

// Room for a few more threads, each of which takes megabytes of addresses for its stack.
void leave_little_room() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto limit = static_cast<rlim_t>(pages * 4096 + 64 * kMiB);
  const rlimit room{limit, limit};
  setrlimit(RLIMIT_AS, &room);
}

TEST(StreamThreads, TooManyThreadsAreAFailureOfTheMachine) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs all addresses";
  EXPECT_EXIT(
      {
        leave_little_room();
        try {
          run_stream_threads(side_by_side(200), 1, 0,
                             [](plan::OpId, int, Seconds ready) { return ready; });
        } catch (const std::system_error& error) {
          _exit(3);
        }
        _exit(0);
      },
      testing::ExitedWithCode(3), "");
}

TEST(StreamThreads, AnOperationThatFailsEndsAllStreams) {
  const auto fails = [](plan::OpId op, int, Seconds ready) {
    if (op == 5) throw std::runtime_error("no");
    return ready;
  };
  EXPECT_THROW(run_stream_threads(side_by_side(8), 3, 0, fails), std::runtime_error);
}

}  // namespace
}  // namespace syncline::live
