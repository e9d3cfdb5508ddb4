#include "core/executor.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/index.h"
#include "core/plan.h"
#include "core/run/outer_step.h"
#include "core/run/payload.h"

namespace syncline::run {
namespace {

// Runs the n-th collective of a bucket on the payloads of all ranks.
void move(std::size_t n, const std::vector<Payload>& layouts,
          std::vector<std::vector<std::byte>>& payloads, std::vector<Bytes>& sent) {
  const collective::Collective& collective = layouts.front().collectives()[n];
  const auto place = [&](int rank, const collective::Transfer& transfer) {
    const auto r = index(rank);
    return payloads[r].data() + layouts[r].place(n) + transfer.elements.begin * collective.unit;
  };
  for (const collective::Round& round : plan::lower(collective)) {
    // All transfers read the state before the round.
    std::vector<std::vector<std::byte>> messages;
    messages.reserve(round.size());
    for (const auto& transfer : round) {
      const std::byte* from = place(transfer.from, transfer);
      const Bytes bytes = transfer.elements.size() * collective.unit;
      messages.emplace_back(from, from + bytes);
      sent[index(transfer.from)] += bytes;
    }
    // Additions to the same elements are one sum.
    std::map<std::tuple<int, std::byte*, std::size_t>, std::vector<const std::byte*>> sums;
    for (std::size_t i = 0; i < round.size(); ++i) {
      std::byte* to = place(round[i].to, round[i]);
      const auto& message = messages[i];
      if (round[i].add) {
        sums[{round[i].to, to, message.size()}].push_back(message.data());
      } else {
        std::copy(message.begin(), message.end(), to);
      }
    }
    for (const auto& [what, from] : sums) {
      const auto& [rank, to, bytes] = what;
      layouts[index(rank)].add(to, from, static_cast<std::int64_t>(bytes));
    }
  }
}

// Counts the bytes of a message between stages; its values are never read.
void count_message(const plan::Work& work, std::vector<Bytes>& sent) {
  const auto* message = std::get_if<collective::Collective>(&work);
  if (message == nullptr || message->bucket >= 0) return;
  for (int group = 0; group < message->groups.count; ++group) {
    sent[index(message->groups.rank(group, 0))] += message->bytes();
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
    outcome.bytes_sent.assign(index(plan.ranks), 0);
    for (const plan::Op& op : plan.ops) {
      for (int p = 0; p < periods; ++p) count_message(op.work, outcome.bytes_sent);
    }
    if (plan.ranks == 1) return outcome;
    if (std::ranges::any_of(plan.buckets, &plan::Bucket::averaged)) {
      average(plan, input, periods, outcome);
      return outcome;
    }
    for (int p = 0; p < periods; ++p) {
      for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
        exchange(plan, static_cast<int>(b), outcome.gradients, outcome.bytes_sent);
      }
    }
    return outcome;
  }

 private:
  // Averages. The input is each rank's parameters before every exchange and gradients per step.
  void average(const plan::Plan& plan, const Gradients& input, int periods,
               Outcome& outcome) const {
    std::vector<OuterStep> steps(input.size(), OuterStep(plan));
    Gradients sent = input;
    std::vector<char> under_way(plan.buckets.size(), 0);
    const auto for_each_of = [&](const plan::Bucket& bucket, const auto& visit) {
      for (std::size_t rank = 0; rank < sent.size(); ++rank) {
        for (const int tensor : bucket.tensors) visit(rank, index(tensor));
      }
    };
    for (int p = 0; p < periods; ++p) {
      Gradients gradients = input;
      std::vector<char> begun(plan.buckets.size(), 0);
      for (const plan::Op& op : plan.ops) {
        if (const auto* compute = std::get_if<plan::Compute>(&op.work)) {
          if (compute->phase != plan::Phase::kAverage) continue;
          for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
            const bool taken = takes(*compute, plan.buckets[b], workload_.tensors.size());
            if (!taken || std::exchange(under_way[b], 0) == 0) continue;
            for_each_of(plan.buckets[b], [&](std::size_t rank, std::size_t t) {
              steps[rank].apply(static_cast<int>(t), input[rank][t], sent[rank][t]);
              outcome.gradients[rank][t] = sent[rank][t];
            });
          }
          continue;
        }
        const auto* collective = std::get_if<collective::Collective>(&op.work);
        if (collective == nullptr || collective->bucket < 0) continue;
        const auto b = index(collective->bucket);
        if (std::exchange(begun[b], 1) != 0) continue;
        under_way[b] = 1;
        const bool averaged = plan.buckets[b].averaged;
        if (averaged) {
          for_each_of(plan.buckets[b], [&](std::size_t rank, std::size_t t) {
            sent[rank][t] = input[rank][t];
            steps[rank].make(static_cast<int>(t), sent[rank][t]);
          });
        }
        exchange(plan, collective->bucket, averaged ? sent : gradients, outcome.bytes_sent);
      }
    }
  }

  // Exchanges one bucket on all ranks: fills the payloads, carries out the collectives and reads
  // the payloads back.
  void exchange(const plan::Plan& plan, int bucket, Gradients& values,
                std::vector<Bytes>& sent) const {
    std::vector<Payload> layouts;
    std::vector<std::vector<std::byte>> payloads;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const auto& layout = layouts.emplace_back(plan, bucket, rank, workload_);
      payloads.emplace_back(index(layout.bytes()));
      if (!layout.member()) continue;
      layout.fill(values[index(rank)], payloads.back().data());
    }
    for (std::size_t n = 0; n < layouts.front().collectives().size(); ++n) {
      move(n, layouts, payloads, sent);
      for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
        if (layouts[rank].member()) layouts[rank].between(n, values[rank], payloads[rank].data());
      }
    }
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      if (layouts[rank].member()) layouts[rank].read(payloads[rank].data(), values[rank]);
    }
  }

  const Workload& workload_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const Workload& workload) {
  return std::make_unique<HostExecutor>(workload);
}

}  // namespace syncline::run
