// The closed-form executor. With one communication stream, each operation's duration is a formula
// and the plan is one pass of max and plus. With several, collectives share the links, so the pass
// becomes a small fluid model: each collective alternates between latency, when it holds no link,
// and transfer, when concurrent transfers share each link evenly.

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/cost.h"
#include "core/executor.h"
#include "core/run/link_sharing.h"
#include "core/run/queues.h"
#include "core/run/stragglers.h"
#include "core/run/walk.h"

namespace syncline::run {
namespace {

// Returns the duration of work other than a collective; computation is multiplied by `stretch`.
Seconds stretched_seconds(const plan::Work& work, double stretch) {
  const auto* compute = std::get_if<plan::Compute>(&work);
  return compute != nullptr ? compute->seconds * stretch : plan::seconds_of(work);
}

// Cost of an operation of a plan: an event reads this alone, which is smaller than the
// operation. Cost and claims are those of a collective; nullptr for other work.
struct OpUse {
  const collective::CollectiveCost* cost = nullptr;
  const std::vector<Seconds>* latencies = nullptr;  // by stage
  const Claim* claim = nullptr;                     // of the first stage
  double bytes = 0;
  Seconds seconds = 0;  // of other work
  int rank = 0;         // first of its stream
};

// Several communication streams: a clock moves from event to event. Between two events every
// transfer has a constant speed. An event is the end of a latency, of a stage's transfer or of
// other work; speeds are shared again if the set of transfers has changed.
//
// Example: two all-reduces of 8 ms over the same links, ready at 4 ms and at 8 ms. The first runs
// at full speed until 8, and both at half of it until 16, when the first ends. The second has 4 ms
// of its transfer left and ends at 20.
class FluidModel {
 public:
  // Begins at time 0. `uses` is by operation. All that it refers to must outlive this.
  FluidModel(const plan::Plan& plan, int periods, const std::vector<OpUse>& uses,
             LinkSharing& link_sharing, Seconds overhead)
      : walk_(plan, periods),
        uses_(uses),
        link_sharing_(link_sharing),
        overhead_(overhead),
        ready_(walk_.first()),
        places_(index(walk_.instances()), 0) {
    timeline_.spans.reserve(places_.size());
    finished_.reserve(places_.size());
    timeline_.period_ends.assign(index(periods), 0);
  }

  Timeline run() {
    start_ready();
    pass_parts();
    for (Seconds next = next_event(); next < kNever; next = next_event()) {
      advance(next);
      finish_timed();
      start_ready();
      pass_parts();
    }
    order_by_end();
    return std::move(timeline_);
  }

 private:
  static constexpr Seconds kNever = std::numeric_limits<double>::infinity();

  // The latency or the transfer of a stage. The end of the other one is never.
  struct Part {
    Seconds wakes = kNever;      // end of the latency
    Seconds remaining = kNever;  // of the transfer, at full speed
    Speed speed;

    bool transfers() const { return wakes == kNever; }
    // Returns its end if the speed stays as it is.
    Seconds ends(Seconds now) const { return std::min(wakes, now + speed.time_of(remaining)); }
    Part after(Seconds passed) const { return {wakes, remaining - passed * speed.share, speed}; }
    // The tolerance is a few ulps of the clock: a rest below it is rounding, not data.
    bool is_due(Seconds now) const { return wakes <= now || remaining <= 4e-16 * now; }
  };

  // A collective under way.
  struct Transfer {
    int instance = 0;
    const Seconds* latency = nullptr;   // of the current stage
    const Claim* last_claim = nullptr;  // of the last stage
    double bytes = 0;
    SharedFlow flow;  // of the current stage
    Part part;

    // True if nothing follows a part of the current stage, or a transfer without bytes.
    bool may_end(const Part& now) const {
      return now.transfers() ? flow.claim == last_claim : transfer_time() <= 0;
    }
    // Returns the part after a latency or a transfer. Requires that one follows.
    Part next_part(const Part& over, Seconds now) {
      if (!over.transfers()) return {kNever, transfer_time(), {}};
      ++flow.claim;
      return {now + *++latency, kNever, {}};
    }
    // Moves on; false after the last transfer.
    bool goes_on(Seconds now) {
      const bool waited = !part.transfers();
      if (waited) part = next_part(part, now);
      if (waited && part.remaining > 0) return true;
      if (flow.claim == last_claim) return false;
      part = next_part(part, now);
      return true;
    }

   private:
    Seconds transfer_time() const { return flow.claim->seconds_per_byte * bytes; }
  };

  // Starts operations that are ready. Link speeds do not change yet: collectives begin with a
  // latency.
  void start_ready() {
    while (!ready_.empty()) {
      const int instance = ready_.back();
      ready_.pop_back();
      start(instance);
    }
  }

  // Begins an operation: a timer, or the latency of a collective's first stage.
  void start(int instance) {
    const plan::OpId op = walk_.op(instance);
    const OpUse& use = uses_[index(op)];
    places_[index(instance)] = timeline_.spans.size();
    timeline_.spans.push_back({walk_.period(instance), op, use.rank, now_, now_});
    finished_.push_back(0);
    if (use.cost == nullptr) {
      timed_.emplace(now_ + use.seconds, instance);
      return;
    }
    Transfer transfer;
    transfer.instance = instance;
    transfer.latency = use.latencies->data();
    transfer.last_claim = use.claim + (use.cost->stages.size() - 1);
    transfer.bytes = use.bytes;
    transfer.flow.claim = use.claim;
    transfer.part.wakes = now_ + overhead_ + *transfer.latency;
    transfers_.push_back(transfer);
  }

  // Shares the links among collectives in transfer.
  void share() {
    for (auto& transfer : transfers_) {
      if (transfer.part.transfers()) flows_.push_back(&transfer.flow);
    }
    link_sharing_.share(flows_);
    for (auto& transfer : transfers_) transfer.part.speed = transfer.flow.speed;
  }

  Seconds next_event() const {
    Seconds next = timed_.empty() ? kNever : timed_.top().first;
    for (const auto& transfer : transfers_) next = std::min(next, transfer.part.ends(now_));
    return next;
  }

  // Moves the clock and all transfers; due ones go on to their next part or end.
  void advance(Seconds next) {
    const Seconds passed = next - now_;
    now_ = next;
    bool changed = false;
    for (std::size_t i = 0; i < transfers_.size();) {
      Transfer& t = transfers_[i];
      t.part = t.part.after(passed);
      const bool due = t.part.is_due(now_);
      changed = changed || due;
      if (!due || t.goes_on(now_)) {
        ++i;
        continue;
      }
      const int instance = t.instance;
      transfers_[i] = transfers_.back();
      transfers_.pop_back();
      finish(instance);
    }
    if (changed) share();
  }

  // Passes events at which at most two collectives are under way and go on with their next parts:
  // nearly all events of a plan are such. Leaves the first other one to advance().
  void pass_parts() {
    if (transfers_.empty() || transfers_.size() > 2) return;
    Transfer none;
    const bool two = transfers_.size() == 2;
    Transfer& first = transfers_.front();
    Transfer& second = two ? transfers_.back() : none;
    Part a = first.part, b = second.part;
    Seconds now = now_;
    const Seconds timer = timed_.empty() ? kNever : timed_.top().first;
    for (Seconds next = 0; (next = std::min(a.ends(now), b.ends(now))) < timer;) {
      const Part then_a = a.after(next - now), then_b = b.after(next - now);
      const bool due_a = then_a.is_due(next), due_b = then_b.is_due(next);
      if ((due_a && first.may_end(a)) || (due_b && second.may_end(b))) break;
      now = next;
      a = due_a ? first.next_part(a, now) : then_a;
      b = due_b ? second.next_part(b, now) : then_b;
      if (!due_a && !due_b) continue;
      if (two && a.transfers() && b.transfers()) {
        std::tie(a.speed, b.speed) = link_sharing_.speeds_of(first.flow.claim, second.flow.claim);
      } else {
        a.speed = b.speed = {};
      }
    }
    now_ = now;
    first.part = a;
    second.part = b;
  }

  void finish_timed() {
    while (!timed_.empty() && timed_.top().first <= now_) {
      const int instance = timed_.top().second;
      timed_.pop();
      finish(instance);
    }
  }

  void finish(int instance) {
    Span& span = timeline_.spans[places_[index(instance)]];
    span.end = now_;
    finished_[places_[index(instance)]] = ++count_finished_;
    auto& end = timeline_.period_ends[index(span.period)];
    end = std::max(end, now_);
    walk_.pass_stream(instance, ready_);
    walk_.pass_dependents(instance, ready_);
  }

  // Puts spans that begin together in the order of their ends.
  void order_by_end() {
    std::vector<Span>& spans = timeline_.spans;
    std::vector<std::pair<int, Span>> together;
    for (std::size_t i = 0, end = 0; i < spans.size(); i = end) {
      for (end = i + 1; end < spans.size() && spans[end].begin == spans[i].begin;) ++end;
      if (std::is_sorted(&finished_[i], &finished_[i] + (end - i))) continue;
      together.clear();
      for (std::size_t k = i; k < end; ++k) together.emplace_back(finished_[k], spans[k]);
      std::ranges::sort(together, {}, &std::pair<int, Span>::first);
      for (std::size_t k = i; k < end; ++k) spans[k] = together[k - i].second;
    }
  }

  Walk walk_;
  const std::vector<OpUse>& uses_;
  LinkSharing& link_sharing_;
  std::vector<SharedFlow*> flows_;  // buffer for the shared links
  Seconds overhead_;                // of each collective
  std::vector<int> ready_;
  std::vector<std::size_t> places_;  // by instance: of its span
  std::vector<int> finished_;        // by span: its number in the order of ends
  int count_finished_ = 0;
  std::vector<Transfer> transfers_;
  using Timed = std::pair<Seconds, int>;  // (end, instance) of other work
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> timed_;
  Seconds now_ = 0;
  Timeline timeline_;
};

class ModelExecutor final : public Executor {
 public:
  explicit ModelExecutor(std::shared_ptr<collective::CostCache> cache) : cache_(std::move(cache)) {}

  std::string_view name() const override { return "model"; }
  ExecutorTraits traits() const override { return {.closed_form = true, .cheap = true}; }

  Outcome run(const plan::Plan& plan, const Gradients&, int periods) override {
    stretch_ = expected_slowest_of(plan);
    Outcome outcome;
    outcome.timeline = plan::overlaps(plan) ? run_shared(plan, periods) : run_queues(plan, periods);
    return outcome;
  }

 private:
  const Cluster& cluster() const { return cache_->cluster(); }

  double expected_slowest_of(const plan::Plan& plan) {
    if (cluster().jitter.kind == Jitter::Kind::kNone) return 1;
    if (const Waits waits = waits_of(plan); waits != known_waits_) {
      known_waits_ = waits;
      known_stretch_ = expected_slowest(cluster().jitter, waits);
    }
    return known_stretch_;
  }

  Seconds duration(const plan::Work& work) {
    if (const auto* collective = std::get_if<collective::Collective>(&work)) {
      return cache_->time(*collective);
    }
    return stretched_seconds(work, stretch_);
  }

  // Runs one communication stream: durations do not depend on concurrent operations.
  Timeline run_queues(const plan::Plan& plan, int periods) {
    Timeline timeline;
    timeline.spans.reserve(plan.ops.size() * index(periods));
    durations_.clear();
    for (const auto& op : plan.ops) durations_.push_back(duration(op.work));
    Queues queues(plan);
    for (int p = 0; p < periods; ++p) {
      Seconds all = 0;
      queues.pass(plan, [&](std::size_t i, Seconds begin) {
        const Seconds end = begin + durations_[i];
        all = std::max(all, end);
        timeline.spans.push_back(
            {p, static_cast<plan::OpId>(i), plan.first_rank(plan.ops[i].stream), begin, end});
        return durations_[i];
      });
      timeline.period_ends.push_back(all);
    }
    return timeline;
  }

  // Runs several. Claims depend only on costs, so plans that are evaluated in sequence, as in a
  // search, often share them.
  Timeline run_shared(const plan::Plan& plan, int periods) {
    uses_.assign(plan.ops.size(), {});
    std::vector<const collective::CollectiveCost*> costs;  // each once, in order of appearance
    std::unordered_map<const collective::CollectiveCost*, std::size_t> seen;  // places there
    places_.assign(plan.ops.size(), 0);
    const collective::CollectiveCost* last = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const plan::Op& op = plan.ops[i];
      uses_[i].rank = plan.first_rank(op.stream);
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      if (collective == nullptr) {
        uses_[i].seconds = stretched_seconds(op.work, stretch_);
        continue;
      }
      uses_[i].cost = &cache_->cost(*collective);
      uses_[i].latencies = &cache_->latencies(*collective);
      uses_[i].bytes = static_cast<double>(collective->bytes());
      if (std::exchange(last, uses_[i].cost) != uses_[i].cost) {
        place = seen.try_emplace(last, costs.size()).first->second;
        if (place == costs.size()) costs.push_back(last);
      }
      places_[i] = place;
    }
    if (!sharing_ || sharing_->costs() != costs) {
      sharing_.emplace(std::move(costs));
      link_sharing_.emplace(sharing_->resources());
    }
    std::vector<const Claim*> claims;
    for (const auto* cost : sharing_->costs()) claims.push_back(sharing_->claims(cost));
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i].cost != nullptr) uses_[i].claim = claims[places_[i]];
    }
    const Seconds overhead = cluster().collective_overhead;
    return FluidModel(plan, periods, uses_, *link_sharing_, overhead).run();
  }

  std::shared_ptr<collective::CostCache> cache_;
  std::optional<Sharing> sharing_;           // of the last plan that needed one
  std::optional<LinkSharing> link_sharing_;  // of its claims
  double stretch_ = 1;
  double known_stretch_ = 1;
  Waits known_waits_{0};  // waits of known_stretch_
  std::vector<Seconds> durations_;
  std::vector<OpUse> uses_;          // by operation
  std::vector<std::size_t> places_;  // of its cost among those of the plan, likewise
};

}  // namespace

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings) {
  return make_cached_executor(std::make_shared<collective::CostCache>(settings.cluster));
}

std::unique_ptr<Executor> make_cached_executor(std::shared_ptr<collective::CostCache> cache) {
  return std::make_unique<ModelExecutor>(std::move(cache));
}

}  // namespace syncline::run
