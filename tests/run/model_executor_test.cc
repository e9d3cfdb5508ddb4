// The fluid model of several streams passes most events by a shorter way: the times must be those
// of a walk from event to event.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/executor.h"
#include "core/run/link_sharing.h"
#include "core/run/walk.h"
#include "tests/support/random_collectives.h"

namespace syncline::run {
namespace {

constexpr Seconds kNever = std::numeric_limits<double>::infinity();

// Walks a plan event by event; speeds are shared afresh at each.
class PlainWalk {
 public:
  PlainWalk(const plan::Plan& plan, collective::CostCache& cache, int periods)
      : plan_(plan), cache_(cache), walk_(plan, periods), sharing_(costs()) {
    ends_.resize(static_cast<std::size_t>(walk_.instances()));
  }

  // Returns the end of each operation of each period.
  std::vector<Seconds> run() {
    start(walk_.first());
    while (!under_way_.empty()) {
      Seconds next = kNever;
      for (const Part& part : under_way_) {
        next = std::min(
            next, part.transfers ? now_ + part.remaining / part.flow.speed.share : part.until);
      }
      pass(next);
    }
    return ends_;
  }

 private:
  struct Part {
    int instance = 0;
    const collective::Collective* collective = nullptr;  // nullptr: other work
    std::size_t stage = 0;
    bool transfers = false;
    Seconds until = 0;
    Seconds remaining = 0;
    SharedFlow flow;
  };

  std::vector<const collective::CollectiveCost*> costs() const {
    std::vector<const collective::CollectiveCost*> all;
    for (const plan::Op& op : plan_.ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      if (collective == nullptr) continue;
      const auto* cost = &cache_.cost(*collective);
      if (std::ranges::count(all, cost) == 0) all.push_back(cost);
    }
    return all;
  }

  void start(std::vector<int> ready) {
    for (auto instance = ready.rbegin(); instance != ready.rend(); ++instance) {
      const plan::Op& op = plan_.ops[static_cast<std::size_t>(walk_.op(*instance))];
      Part part;
      part.instance = *instance;
      part.collective = std::get_if<collective::Collective>(&op.work);
      if (part.collective == nullptr) {
        part.until = now_ + plan::seconds_of(op.work);
      } else {
        part.flow.claim = sharing_.claims(&cache_.cost(*part.collective));
        part.until = now_ + cache_.cluster().collective_overhead +
                     cache_.latencies(*part.collective).front();
      }
      under_way_.push_back(part);
    }
  }

  // Returns false once the part is over and none follows.
  bool goes_on(Part& part) {
    if (part.collective == nullptr) return false;
    const auto& stages = cache_.cost(*part.collective).stages;
    if (!part.transfers) {
      part.transfers = true;
      part.remaining =
          stages[part.stage].seconds_per_byte * static_cast<double>(part.collective->bytes());
      if (part.remaining > 0) return true;
    }
    if (++part.stage == stages.size()) return false;
    ++part.flow.claim;
    part.transfers = false;
    part.until = now_ + cache_.latencies(*part.collective)[part.stage];
    return true;
  }

  void pass(Seconds next) {
    const Seconds passed = next - now_;
    now_ = next;
    std::vector<Part> left;
    std::vector<int> over;
    for (Part& part : under_way_) {
      if (part.transfers) part.remaining -= passed * part.flow.speed.share;
      const bool due = part.transfers ? part.remaining <= 4e-16 * now_ : part.until <= now_;
      if (!due || goes_on(part)) {
        left.push_back(part);
      } else {
        over.push_back(part.instance);
      }
    }
    under_way_ = std::move(left);
    share();
    for (const int instance : over) {
      ends_[static_cast<std::size_t>(instance)] = now_;
      std::vector<int> ready;
      walk_.pass_stream(instance, ready);
      walk_.pass_dependents(instance, ready);
      start(ready);
    }
  }

  void share() {
    std::vector<SharedFlow*> flows;
    for (Part& part : under_way_) {
      if (part.transfers) flows.push_back(&part.flow);
    }
    LinkSharing(sharing_.resources()).share(flows);
  }

  const plan::Plan& plan_;
  collective::CostCache& cache_;
  Walk walk_;
  Sharing sharing_;
  Seconds now_ = 0;
  std::vector<Part> under_way_;
  std::vector<Seconds> ends_;  // by instance
};

// Collectives on streams of their own, each after a piece of the backward pass.
plan::Plan random_plan(test::RandomCollectives& random, const Cluster& cluster, int streams) {
  plan::Plan plan;
  plan.ranks = cluster.ranks();
  plan.streams = 1 + streams;
  const int count = random.number(2, 12);
  for (int i = 0; i < count; ++i) {
    const double busy = 1e-4 * random.number(0, 40);
    plan.ops.push_back({0, {}, plan::Compute{plan::Phase::kBackward, busy}});
    const auto computed = static_cast<plan::OpId>(plan.ops.size()) - 1;
    plan.ops.push_back({1 + i % streams, {computed}, random.collective(cluster)});
  }
  return plan;
}

// Two streams are equal to the bit; the shares of more are sums in another order.
TEST(ModelExecutor, TheShortWayThroughEventsTakesAsLongAsThePlainOne) {
  constexpr int kPeriods = 2;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    test::RandomCollectives random(seed);
    Cluster cluster = random.cluster(4, 4);
    if (cluster.ranks() < 2) continue;
    if (seed % 2 == 0) cluster.collective_overhead = 1e-5;
    const int streams = seed % 4 == 0 ? random.number(3, 4) : 2;
    const plan::Plan plan = random_plan(random, cluster, streams);
    const auto cache = std::make_shared<collective::CostCache>(cluster);
    const auto timeline = make_cached_executor(cache)->run(plan, {}, kPeriods).timeline;
    const std::vector<Seconds> plain = PlainWalk(plan, *cache, kPeriods).run();
    ASSERT_EQ(timeline.spans.size(), plain.size());
    for (const Span& span : timeline.spans) {
      const auto instance = static_cast<std::size_t>(span.period) * plan.ops.size() +
                            static_cast<std::size_t>(span.op);
      const Seconds rounding = streams == 2 ? 0 : 1e-12 * plain[instance];
      ASSERT_NEAR(span.end, plain[instance], rounding) << "seed " << seed << ", " << span.op;
    }
  }
}

}  // namespace
}  // namespace syncline::run
