#include "core/run/host_executor.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <set>

#include "core/plan/lower.h"
#include "core/run/payload.h"

namespace syncline::run {
namespace {

bool averages(const plan::Plan& plan) {
  for (const auto& op : plan.ops) {
    const auto* work = std::get_if<plan::Compute>(&op.work);
    if (work != nullptr && work->phase == plan::Phase::kAverage) return true;
  }
  return false;
}

// What was summed: statistics that are not averaged stay as they are.
void divide(const plan::Plan& plan, Gradients& gradients) {
  std::set<int> summed;
  for (const auto& bucket : plan.buckets) {
    summed.insert(bucket.tensors.begin(), bucket.tensors.end());
  }
  for (auto& rank : gradients) {
    for (const int tensor : summed) {
      for (auto& value : rank[static_cast<std::size_t>(tensor)]) {
        value /= static_cast<float>(plan.ranks);
      }
    }
  }
}

// Carries out the n-th collective of a bucket on the payloads of all ranks.
void move(std::size_t n, const std::vector<Payload>& layouts,
          std::vector<std::vector<std::byte>>& payloads, std::vector<Bytes>& sent) {
  const collective::Collective& collective = layouts.front().collectives()[n];
  const auto place = [&](int rank, const collective::Transfer& transfer) {
    const auto r = static_cast<std::size_t>(rank);
    return payloads[r].data() +
           layouts[r].place(n, collective::place_in(collective.groups, rank)->group) +
           transfer.elements.begin * collective.unit;
  };
  for (const collective::Round& round : plan::lower(collective)) {
    // All transfers read what stood before the round.
    std::vector<std::vector<std::byte>> messages;
    messages.reserve(round.size());
    for (const auto& transfer : round) {
      const std::byte* from = place(transfer.from, transfer);
      const Bytes bytes = transfer.elements.size() * collective.unit;
      messages.emplace_back(from, from + bytes);
      sent[static_cast<std::size_t>(transfer.from)] += bytes;
    }
    for (std::size_t i = 0; i < round.size(); ++i) {
      std::byte* to = place(round[i].to, round[i]);
      const auto& message = messages[i];
      if (round[i].add) {
        layouts[static_cast<std::size_t>(round[i].to)].add(
            to, message.data(), static_cast<std::int64_t>(message.size()));
      } else {
        std::copy(message.begin(), message.end(), to);
      }
    }
  }
}

// Between stages: nobody reads what it holds.
void count_message(const plan::Work& work, std::vector<Bytes>& sent) {
  const auto* message = std::get_if<collective::Collective>(&work);
  if (message == nullptr || message->bucket >= 0) return;
  for (int group = 0; group < message->groups.count; ++group) {
    sent[static_cast<std::size_t>(message->groups.rank(group, 0))] += message->bytes();
  }
}

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(const Workload& workload) : workload_(workload) {}

  std::string_view name() const override { return "host"; }

  Outcome run(const plan::Plan& plan, const Gradients& input, int periods) override {
    assert(static_cast<int>(input.size()) == plan.ranks && "one set of gradients a rank");
    Outcome outcome;
    outcome.gradients = input;
    outcome.bytes_sent.assign(static_cast<std::size_t>(plan.ranks), 0);
    for (int p = 0; p < periods; ++p) {
      for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
        if (plan.ranks > 1) exchange(plan, static_cast<int>(b), outcome);
      }
      for (const plan::Op& op : plan.ops) count_message(op.work, outcome.bytes_sent);
      if (averages(plan)) divide(plan, outcome.gradients);
    }
    return outcome;
  }

 private:
  void exchange(const plan::Plan& plan, int bucket, Outcome& outcome) const {
    std::vector<Payload> layouts;
    std::vector<std::vector<std::byte>> payloads;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const auto& layout = layouts.emplace_back(plan, bucket, rank, workload_);
      payloads.emplace_back(static_cast<std::size_t>(layout.bytes()));
      if (!layout.member()) continue;
      layout.fill(outcome.gradients[static_cast<std::size_t>(rank)], payloads.back().data());
    }
    for (std::size_t n = 0; n < layouts.front().collectives().size(); ++n) {
      move(n, layouts, payloads, outcome.bytes_sent);
      for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
        if (layouts[rank].member())
          layouts[rank].between(n, outcome.gradients[rank], payloads[rank].data());
      }
    }
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      if (layouts[rank].member())
        layouts[rank].read(payloads[rank].data(), outcome.gradients[rank]);
    }
  }

  const Workload& workload_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const Workload& workload) {
  return std::make_unique<HostExecutor>(workload);
}

}  // namespace syncline::run
