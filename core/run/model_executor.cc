// The closed-form executor. With one stream that communicates, each operation's duration is a
// formula and the plan is one pass of max and plus. With several, collectives share the links, so
// the pass becomes a small fluid model: each collective alternates between latency, when it holds
// no link, and transfer, when all that transfer at a moment share each link evenly.

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <optional>
#include <queue>

#include "core/collective/price.h"
#include "core/run/executor.h"
#include "core/run/stragglers.h"
#include "core/run/walk.h"

namespace syncline {
namespace {

constexpr Seconds kNever = std::numeric_limits<double>::infinity();

// What the collectives of one plan compete for. Links that carry the same shares of the same stages
// are one resource, so a ring over thousands of ranks knows two.
class Sharing {
 public:
  // A stage's claim on each resource, as the share that it takes at full speed.
  struct Claim {
    std::vector<std::pair<int, double>> shares;
    double most = 0;  // of its busiest resource; below 1 where flows are capped
  };

  // Prices must outlive this. The same prices in the same order give the same claims.
  explicit Sharing(std::vector<const CollectivePrice*> prices) : prices_(std::move(prices)) {
    // A link's profile: its share of every stage that it serves.
    std::map<int, std::vector<std::pair<int, double>>> profiles;
    int stage_id = 0;
    for (const auto* price : prices_) {
      first_.push_back(stage_id);
      for (const auto& stage : price->stages) {
        for (const auto& [link, seconds] : stage.links) {
          profiles[link].emplace_back(stage_id, seconds / stage.seconds_per_byte);
        }
        ++stage_id;
      }
    }
    claims_.resize(static_cast<std::size_t>(stage_id));
    std::map<std::vector<std::pair<int, double>>, int> kinds;
    for (const auto& [link, profile] : profiles) {
      const auto [it, fresh] = kinds.try_emplace(profile, static_cast<int>(kinds.size()));
      if (!fresh) continue;
      for (const auto& [stage, share] : profile) {
        Claim& claim = claims_[static_cast<std::size_t>(stage)];
        claim.shares.emplace_back(it->second, share);
        claim.most = std::max(claim.most, share);
      }
    }
    resources_ = kinds.size();
  }

  const std::vector<const CollectivePrice*>& prices() const { return prices_; }
  std::size_t resources() const { return resources_; }
  const Claim& claim(const CollectivePrice* price, std::size_t stage) const {
    const auto it = std::find(prices_.begin(), prices_.end(), price);
    const auto first = first_[static_cast<std::size_t>(it - prices_.begin())];
    return claims_[static_cast<std::size_t>(first) + stage];
  }

 private:
  std::vector<const CollectivePrice*> prices_;
  std::vector<int> first_;  // by price: number of its first stage
  std::vector<Claim> claims_;
  std::size_t resources_ = 0;
};

// A collective on its way.
struct Transfer {
  int instance = 0;
  const CollectivePrice* price = nullptr;
  const std::vector<Seconds>* latencies = nullptr;
  const Sharing::Claim* claim = nullptr;  // of the stage at hand
  double bytes = 0;
  std::size_t stage = 0;
  bool in_latency = true;
  Seconds wakes = 0;      // end of the latency
  Seconds remaining = 0;  // of the transfer, at full speed
  double speed = 1;       // share of full speed

  const StagePrice& now() const { return price->stages[stage]; }
};

// Max-min fair sharing (Bertsekas and Gallager): the occupancy of every transfer's busiest link
// rises evenly until a link is full or the transfer runs at full speed.
void share_links(std::vector<Transfer>& transfers, std::size_t resources) {
  std::vector<Transfer*> open;
  for (auto& transfer : transfers) {
    if (transfer.in_latency) continue;
    transfer.speed = 1;
    open.push_back(&transfer);
  }
  if (open.size() < 2) return;

  std::vector<double> taken(resources, 0.0);
  std::vector<double> slope(resources, 0.0);
  double level = 0;
  while (!open.empty()) {
    // How far the common level can rise before something stops it.
    std::fill(slope.begin(), slope.end(), 0.0);
    double stop = kNever;
    for (const auto* transfer : open) {
      stop = std::min(stop, transfer->claim->most);
      for (const auto& [resource, share] : transfer->claim->shares) {
        slope[static_cast<std::size_t>(resource)] += share / transfer->claim->most;
      }
    }
    int full = -1;
    for (std::size_t r = 0; r < resources; ++r) {
      if (slope[r] <= 0 || (1 - taken[r]) / slope[r] >= stop) continue;
      stop = (1 - taken[r]) / slope[r];
      full = static_cast<int>(r);
    }
    level = std::max(level, stop);
    const std::size_t before = open.size();
    std::erase_if(open, [&](Transfer* transfer) {
      const auto& claim = *transfer->claim;
      const bool blocked = std::any_of(claim.shares.begin(), claim.shares.end(),
                                       [&](const auto& share) { return share.first == full; });
      if (claim.most > level && !blocked) return false;
      transfer->speed = std::min(1.0, level / claim.most);
      for (const auto& [resource, share] : claim.shares) {
        taken[static_cast<std::size_t>(resource)] += transfer->speed * share;
      }
      return true;
    });
    assert(open.size() < before && "each round settles a transfer");
    if (open.size() == before) return;
  }
}

class ModelExecutor final : public Executor {
 public:
  explicit ModelExecutor(const ExecutorSettings& settings)
      : cluster_(settings.cluster), book_(settings.cluster) {}

  std::string_view name() const override { return "model"; }

  Outcome run(const Plan& plan, const Gradients&, int periods) override {
    stretch_ = expected_slowest_of(plan);
    Outcome outcome;
    outcome.timeline.spans.reserve(plan.ops.size() * static_cast<std::size_t>(periods));
    if (contended(plan)) {
      run_shared(plan, periods, outcome.timeline);
    } else {
      run_queues(plan, periods, outcome.timeline);
    }
    return outcome;
  }

 private:
  double expected_slowest_of(const Plan& plan) {
    if (cluster_.jitter.kind == Jitter::Kind::kNone) return 1;
    if (plan.steps != stretch_steps_) {
      stretch_steps_ = plan.steps;
      known_stretch_ = expected_slowest(cluster_.jitter, plan.ranks, plan.steps);
    }
    return known_stretch_;
  }

  static bool contended(const Plan& plan) {
    StreamId stream = -1;
    for (const auto& op : plan.ops) {
      if (!std::holds_alternative<Collective>(op.work)) continue;
      if (stream >= 0 && op.stream != stream) return true;
      stream = op.stream;
    }
    return false;
  }

  Seconds duration(const Work& work) {
    if (const auto* compute = std::get_if<Compute>(&work)) return compute->seconds * stretch_;
    if (const auto* collective = std::get_if<Collective>(&work)) return book_.time(*collective);
    return seconds_of(work);
  }

  // Operations are listed after what they wait for: one pass in order.
  void run_queues(const Plan& plan, int periods, Timeline& timeline) {
    std::vector<Seconds> free(static_cast<std::size_t>(plan.streams), 0);
    std::vector<Seconds> ends(plan.ops.size(), 0);
    durations_.clear();
    for (const auto& op : plan.ops) durations_.push_back(duration(op.work));
    std::vector<Seconds> ends_before(plan.ops.size(), 0);
    for (int p = 0; p < periods; ++p) {
      Seconds all = 0;
      std::swap(ends, ends_before);
      for (std::size_t i = 0; i < plan.ops.size(); ++i) {
        const Op& op = plan.ops[i];
        Seconds& stream = free[static_cast<std::size_t>(op.stream)];
        Seconds begin = stream;
        for (const OpId before : op.after) {
          begin = std::max(begin, ends[static_cast<std::size_t>(before)]);
        }
        for (const OpId before : op.after_previous) {
          begin = std::max(begin, ends_before[static_cast<std::size_t>(before)]);
        }
        ends[i] = stream = begin + durations_[i];
        all = std::max(all, ends[i]);
        timeline.spans.push_back({p, static_cast<OpId>(i), 0, begin, ends[i]});
      }
      timeline.period_ends.push_back(all);
    }
  }

  // The prices of a plan's collectives, each once, in order of appearance.
  std::vector<const CollectivePrice*> prices_of(const Plan& plan) {
    std::vector<const CollectivePrice*> prices;
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr) continue;
      const auto* price = &book_.price(*collective);
      if (std::find(prices.begin(), prices.end(), price) == prices.end()) prices.push_back(price);
    }
    return prices;
  }

  void run_shared(const Plan& plan, int periods, Timeline& timeline) {
    auto prices = prices_of(plan);
    if (!sharing_ || sharing_->prices() != prices) sharing_.emplace(std::move(prices));
    Walk walk(plan, periods);
    std::vector<int> ready = walk.first();
    std::vector<Seconds> begins(static_cast<std::size_t>(walk.instances()), 0);
    std::vector<Transfer> transfers;
    using Timed = std::pair<Seconds, int>;
    std::priority_queue<Timed, std::vector<Timed>, std::greater<>> timed;
    timeline.period_ends.assign(static_cast<std::size_t>(periods), 0);
    Seconds now = 0;

    const auto finish = [&](int instance) {
      const int period = walk.period(instance);
      timeline.spans.push_back(
          {period, walk.op(instance), 0, begins[static_cast<std::size_t>(instance)], now});
      auto& end = timeline.period_ends[static_cast<std::size_t>(period)];
      end = std::max(end, now);
      walk.pass_stream(instance, ready);
      walk.pass_dependents(instance, ready);
    };
    const auto start = [&](int instance) {
      begins[static_cast<std::size_t>(instance)] = now;
      const Work& work = plan.ops[static_cast<std::size_t>(walk.op(instance))].work;
      const auto* collective = std::get_if<Collective>(&work);
      if (collective == nullptr) {
        timed.emplace(now + duration(work), instance);
        return;
      }
      Transfer transfer;
      transfer.instance = instance;
      transfer.price = &book_.price(*collective);
      transfer.latencies = &book_.latencies(*collective);
      transfer.claim = &sharing_->claim(transfer.price, 0);
      transfer.bytes = static_cast<double>(collective->bytes());
      transfer.wakes = now + cluster_.collective_overhead + transfer.latencies->front();
      transfers.push_back(transfer);
    };

    while (true) {
      bool changed = false;
      while (!ready.empty()) {
        const int instance = ready.back();
        ready.pop_back();
        start(instance);
        changed = true;
      }
      if (changed) share_links(transfers, sharing_->resources());

      Seconds next = timed.empty() ? kNever : timed.top().first;
      for (const auto& t : transfers) {
        next = std::min(next, t.in_latency ? t.wakes : now + t.remaining / t.speed);
      }
      if (next == kNever) break;

      // Advance everything to that moment; whoever was due there is done, rounding aside.
      const Seconds passed = next - now;
      now = next;
      bool moved = false;
      for (std::size_t i = 0; i < transfers.size();) {
        Transfer& t = transfers[i];
        if (!t.in_latency) t.remaining -= passed * t.speed;
        // A few ulps of the clock: what is left there is rounding, not data.
        const bool due = t.in_latency ? t.wakes <= now : t.remaining <= 4e-16 * now;
        if (!due) {
          ++i;
          continue;
        }
        moved = true;
        if (t.in_latency) {
          t.in_latency = false;
          t.remaining = t.now().seconds_per_byte * t.bytes;
          if (t.remaining > 0) {
            ++i;
            continue;
          }
        }
        if (++t.stage < t.price->stages.size()) {
          t.claim = &sharing_->claim(t.price, t.stage);
          t.in_latency = true;
          t.wakes = now + (*t.latencies)[t.stage];
          ++i;
          continue;
        }
        const int instance = t.instance;
        transfers[i] = transfers.back();
        transfers.pop_back();
        finish(instance);
      }
      if (moved) share_links(transfers, sharing_->resources());
      while (!timed.empty() && timed.top().first <= now) {
        const int instance = timed.top().second;
        timed.pop();
        finish(instance);
      }
    }
    std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
  }

  Cluster cluster_;
  PriceBook book_;
  std::optional<Sharing> sharing_;  // of the last plan that needed one
  double stretch_ = 1;
  double known_stretch_ = 1;
  int stretch_steps_ = -1;
  std::vector<Seconds> durations_;
};

}  // namespace

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings) {
  return std::make_unique<ModelExecutor>(settings);
}

}  // namespace syncline
