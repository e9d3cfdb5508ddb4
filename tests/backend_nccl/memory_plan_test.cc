// The actions of a memory plan, carried out in host memory by ranks that take turns, with NCCL's
// functions as its documentation defines them: what is left must be what the host executor leaves.
#include "backend_nccl/memory_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "backend_nccl/launch_order.h"
#include "core/base/index.h"
#include "core/compress/power_sgd.h"
#include "core/executor.h"
#include "core/run/payload.h"
#include "tests/support/live_cases.h"

namespace syncline::nccl_backend {
namespace {

using test::LiveCase;

std::int64_t bytes_of(WireNumber number) {
  switch (number) {
    case WireNumber::kFp32:
      return 4;
    case WireNumber::kFp16:
    case WireNumber::kBf16:
      return 2;
    case WireNumber::kFp64:
      return 8;
    case WireNumber::kByte:
      return 1;
  }
  return 0;
}

// One rank's block of memory.
class Block {
 public:
  Block(const plan::Plan& plan, const Workload& workload, int rank, const run::RankGradients& input)
      : layout_(plan, workload, rank), rank_(rank), plan_(plan), input_(input) {
    memory_.resize(index(layout_.bytes()));
    layout_.load(input, [&](std::int64_t at, const void* from, std::int64_t bytes) {
      ASSERT_LE(at + bytes, layout_.bytes());
      std::memcpy(&memory_[index(at)], from, index(bytes));
    });
  }

  const MemoryPlan& layout() const { return layout_; }
  std::byte* at(std::int64_t offset) { return memory_.data() + offset; }

  void act(const Action& action) {
    for (const auto& move : action.moves) {
      const std::int64_t from = size_of(action.from);
      switch (action.kind) {
        case Action::Kind::kSumBlocks:
          break;
        case Action::Kind::kCopy:
          std::memcpy(at(move.to), at(move.from), index(move.count));
          break;
        case Action::Kind::kClear:
          std::memset(at(move.to), 0, index(move.count));
          break;
        case Action::Kind::kCast:
          numbers_.resize(index(move.count));
          run::decode_numbers(action.from, at(move.from), move.count, numbers_.data());
          run::encode_numbers(action.to, numbers_.data(), move.count, at(move.to));
          break;
        case Action::Kind::kDivide:
          EXPECT_EQ(move.from, move.to);
          EXPECT_EQ(move.from % from, 0);
          numbers_.resize(index(move.count));
          run::decode_numbers(action.from, at(move.from), move.count, numbers_.data());
          for (auto& number : numbers_) number /= action.divisor;
          run::encode_numbers(action.from, numbers_.data(), move.count, at(move.to));
          break;
        default:
          FAIL() << "moves of an action that has none";
      }
    }
    if (action.kind == Action::Kind::kEncode) encode(action.bucket);
    if (action.kind == Action::Kind::kDecode) decode(action.bucket);
    if (action.kind == Action::Kind::kStagedFill) staged(action.bucket, true);
    if (action.kind == Action::Kind::kStagedBetween) between(action.bucket, action.parts);
    if (action.kind == Action::Kind::kStagedRead) staged(action.bucket, false);
    if (action.kind == Action::Kind::kPackBlocks) cross_blocks(action.bucket, true);
    if (action.kind == Action::Kind::kUnpackBlocks) cross_blocks(action.bucket, false);
    if (action.kind == Action::Kind::kSumBlocks) sum(action);
    if (action.kind == Action::Kind::kFactors) factors(action);
  }

  run::RankGradients result() {
    return layout_.result(input_, [&](std::int64_t offset, void* to, std::int64_t bytes) {
      std::memcpy(to, at(offset), index(bytes));
    });
  }

 private:
  // The codec's own step on what waits, which the backward pass has cleared, and the gradient.
  void encode(int bucket) {
    const plan::Bucket& what = plan_.buckets[index(bucket)];
    const Region& gradient = layout_.gradients()[index(what.tensors.front())];
    const MemoryPlan::Waiting& waiting = layout_.waiting()[index(bucket)];
    std::vector<float> values(index(gradient.bytes / 4)), residual(values.size());
    std::memcpy(values.data(), at(gradient.at), index(gradient.bytes));
    std::memcpy(residual.data(), at(waiting.residual.at), index(gradient.bytes));
    for (std::size_t i = 0; i < values.size(); ++i) residual[i] += values[i];
    const compress::Encoded own = what.codec->encode(residual, what.kept);
    std::memcpy(at(waiting.residual.at), residual.data(), index(gradient.bytes));
    std::byte* part = at(layout_.payloads()[index(bucket)].at) + 8 * rank_ * what.kept;
    std::memcpy(part, own.indices.data(), own.indices.size() * 4);
    std::memcpy(part + 4 * what.kept, own.values.data(), own.values.size() * 4);
  }
  void decode(int bucket) {
    const plan::Bucket& what = plan_.buckets[index(bucket)];
    const Region& gradient = layout_.gradients()[index(what.tensors.front())];
    std::vector<float> sum(index(gradient.bytes / 4));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      compress::Encoded part;
      part.indices.resize(std::min(index(what.kept), sum.size()));
      part.values.resize(part.indices.size());
      const std::byte* from = at(layout_.payloads()[index(bucket)].at) + 8 * rank * what.kept;
      std::memcpy(part.indices.data(), from, part.indices.size() * 4);
      std::memcpy(part.values.data(), from + 4 * what.kept, part.values.size() * 4);
      what.codec->add(part, sum);
    }
    std::memcpy(at(gradient.at), sum.data(), index(gradient.bytes));
  }

  // The codec's own blocks, of numbers that stand one behind the other.
  void cross_blocks(int bucket, bool packs) {
    const plan::Bucket& what = plan_.buckets[index(bucket)];
    std::byte* packed = at(layout_.payloads()[index(bucket)].at);
    for (std::int64_t done = 0; done < what.elements; done += what.codec->block) {
      std::vector<float> values(index(what.codec->block));
      std::byte* numbers = at(layout_.rows()[index(bucket)].at + 4 * done);
      const std::size_t bytes = 4 * index(std::min(what.codec->block, what.elements - done));
      if (packs) {
        std::memcpy(values.data(), numbers, bytes);
        what.codec->pack(values.data(), packed);
      } else {
        what.codec->unpack(packed, values.data());
        std::memcpy(numbers, values.data(), bytes);
      }
      packed += what.codec->encoded_bytes(what.codec->block, what.codec->block);
    }
  }
  void sum(const Action& action) {
    const Action::Move& move = action.moves.front();
    std::vector<const std::byte*> parts;
    for (int n = 0; n < action.parts; ++n) parts.push_back(at(move.from + n * move.count));
    layout_.layouts()[index(action.bucket)].add(at(move.to), parts, move.count);
  }

  // The codec's own products, of matrices with the zeros at their ends.
  void factors(const Action& action) {
    for (const auto& [shape, numbers, start, p, q] : layout_.matrices()[index(action.bucket)]) {
      const auto span = [&](std::int64_t place, std::int64_t count) {
        return std::span(reinterpret_cast<float*>(at(place)), index(count));
      };
      const auto matrix = span(numbers, shape.rows * shape.columns);
      const auto first = span(p, shape.rows * shape.rank);
      const auto second = span(q, shape.columns * shape.rank);
      if (action.parts == 0) {
        const auto made =
            compress::first_factor(matrix, shape, span(start, shape.columns * shape.rank));
        std::copy(made.begin(), made.end(), first.begin());
      } else if (action.parts == 1) {
        compress::orthogonalise(first, shape.rank);
        const auto made = compress::second_factor(matrix, shape, first);
        std::copy(made.begin(), made.end(), second.begin());
      } else {
        compress::multiply(first, second, shape, matrix);
      }
    }
  }

  void between(int bucket, int number) {
    run::RankGradients gradients(layout_.gradients().size());
    for (const int tensor : plan_.buckets[index(bucket)].tensors) {
      const Region& region = layout_.gradients()[index(tensor)];
      gradients[index(tensor)].resize(input_[index(tensor)].size());
      std::memcpy(gradients[index(tensor)].data(), at(region.at), index(region.bytes));
    }
    layout_.layouts()[index(bucket)].between(index(number), gradients,
                                             at(layout_.payloads()[index(bucket)].at));
  }

  // As the executor does it: nothing but the slices crosses between device and host.
  void staged(int bucket, bool fill) {
    const run::Payload& payload = layout_.layouts()[index(bucket)];
    run::RankGradients gradients(layout_.gradients().size());
    for (const int tensor : plan_.buckets[index(bucket)].tensors) {
      gradients[index(tensor)].assign(input_[index(tensor)].size(), -77.0F);
    }
    const auto cross = [&](bool up) {
      for (const auto& slice : layout_.staged_slices(bucket, fill)) {
        const Region& region = layout_.gradients()[index(slice.tensor)];
        EXPECT_LE((slice.first + slice.count) * 4, region.bytes);
        std::byte* device = at(region.at + slice.first * 4);
        float* host = gradients[index(slice.tensor)].data() + slice.first;
        if (up) {
          std::memcpy(host, device, index(slice.count) * 4);
        } else {
          std::memcpy(device, host, index(slice.count) * 4);
        }
      }
    };
    std::byte* bytes = at(layout_.payloads()[index(bucket)].at);
    if (fill) {
      cross(true);
      payload.fill(gradients, bytes);
    } else {
      payload.read(bytes, gradients);
      cross(false);
    }
  }

  MemoryPlan layout_;
  int rank_;
  const plan::Plan& plan_;
  const run::RankGradients& input_;
  std::vector<std::byte> memory_;
  std::vector<float> numbers_;
};

// Messages among the members of one group: each is received as it was sent.
void pass_messages(const std::vector<Block*>& members, const std::vector<const Action*>& actions) {
  using Form = CollectiveCall::Form;
  const auto messages = [&](std::size_t member, Form form, std::size_t other) {
    std::vector<const CollectiveCall*> found;
    for (const auto& call : actions[member]->calls) {
      if (call.form == form && index(call.root) == other) found.push_back(&call);
    }
    return found;
  };
  for (std::size_t to = 0; to < members.size(); ++to) {
    for (std::size_t from = 0; from < members.size(); ++from) {
      const auto sent = messages(from, Form::kSend, to);
      const auto come = messages(to, Form::kReceive, from);
      ASSERT_EQ(sent.size(), come.size());
      for (std::size_t i = 0; i < sent.size(); ++i) {
        ASSERT_EQ(sent[i]->count, come[i]->count);
        std::memcpy(members[to]->at(come[i]->receive), members[from]->at(sent[i]->send),
                    index(sent[i]->count));
      }
    }
  }
}

// NCCL's functions among the members of one group, in place or not.
void exchange(const std::vector<Block*>& members, const std::vector<const CollectiveCall*>& calls,
              const run::Payload& payload) {
  const CollectiveCall& first = *calls.front();
  const auto size = static_cast<std::int64_t>(members.size());
  const std::int64_t bytes = first.count * bytes_of(first.number);
  for (const auto* call : calls) {
    ASSERT_EQ(call->kind, first.kind);
    ASSERT_EQ(call->count, first.count);
    ASSERT_EQ(call->root, first.root);
    ASSERT_EQ(call->number, first.number);
  }
  const bool gathers = first.kind == collective::CollectiveKind::kAllGather;
  const std::int64_t sent =
      first.kind == collective::CollectiveKind::kReduceScatter ? size * bytes : bytes;
  std::vector<std::vector<std::byte>> inputs;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::byte* from = members[m]->at(calls[m]->send);
    inputs.emplace_back(from, from + sent);
  }
  if (gathers) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (std::size_t f = 0; f < inputs.size(); ++f) {
        std::memcpy(members[m]->at(calls[m]->receive) + static_cast<std::int64_t>(f) * bytes,
                    inputs[f].data(), index(bytes));
      }
    }
    return;
  }
  if (first.kind == collective::CollectiveKind::kBroadcast) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      std::memcpy(members[m]->at(calls[m]->receive), inputs[index(first.root)].data(),
                  index(bytes));
    }
    return;
  }
  std::vector<std::byte> sum = inputs.front();
  for (std::size_t m = 1; m < inputs.size(); ++m)
    payload.add(sum.data(), std::array{inputs[m].data()}, sent);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (first.kind == collective::CollectiveKind::kReduce && static_cast<int>(m) != first.root) {
      continue;
    }
    const std::int64_t share = first.kind == collective::CollectiveKind::kReduceScatter
                                   ? static_cast<std::int64_t>(m) * bytes
                                   : 0;
    std::memcpy(members[m]->at(calls[m]->receive), sum.data() + share, index(bytes));
  }
}

// The plan on all ranks, operation by operation.
run::Gradients carried_out(const LiveCase& c, const Workload& workload, const run::Gradients& input,
                           int periods) {
  const int ranks = c.plan.ranks;
  std::vector<Block> blocks;
  blocks.reserve(index(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    blocks.emplace_back(c.plan, workload, rank, input[index(rank)]);
  }
  for (int p = 0; p < periods; ++p) {
    for (const OrderedLaunch& launch : launch_order(c.plan).launches) {
      std::size_t most = 0;
      for (auto& block : blocks) {
        most = std::max(most, block.layout().actions(launch.op).size());
      }
      const auto* collective =
          std::get_if<collective::Collective>(&c.plan.ops[index(launch.op)].work);
      // Ranks outside of a collective's groups have fewer actions: what comes before and after it
      // is each rank's own affair.
      std::vector<std::size_t> next(blocks.size(), 0);
      const auto until_exchange = [&] {
        for (std::size_t r = 0; r < blocks.size(); ++r) {
          const auto& actions = blocks[r].layout().actions(launch.op);
          while (next[r] < actions.size() && actions[next[r]].kind != Action::Kind::kExchange) {
            blocks[r].act(actions[next[r]++]);
          }
        }
      };
      until_exchange();
      if (collective == nullptr) continue;
      const auto under_way = [&] {
        for (std::size_t r = 0; r < blocks.size(); ++r) {
          if (next[r] < blocks[r].layout().actions(launch.op).size()) return true;
        }
        return false;
      };
      while (under_way()) {
        for (int g = 0; g < collective->groups.count; ++g) {
          std::vector<Block*> members;
          std::vector<const Action*> actions;
          for (int m = 0; m < collective->groups.size; ++m) {
            const auto r = index(collective->groups.rank(g, m));
            members.push_back(&blocks[r]);
            const auto& list = blocks[r].layout().actions(launch.op);
            if (next[r] >= list.size()) {
              ADD_FAILURE() << c.what << ": a member without a call";
              return {};
            }
            actions.push_back(&list[next[r]++]);
          }
          const auto& first = actions.front()->calls;
          const auto is_message = [](const CollectiveCall& call) {
            return call.form != CollectiveCall::Form::kCollective;
          };
          if (std::any_of(first.begin(), first.end(), is_message)) {
            pass_messages(members, actions);
            continue;
          }
          for (std::size_t i = 0; i < actions.front()->calls.size(); ++i) {
            std::vector<const CollectiveCall*> calls;
            for (const auto* action : actions) calls.push_back(&action->calls.at(i));
            exchange(members, calls, blocks.front().layout().layouts()[index(collective->bucket)]);
          }
        }
        until_exchange();
      }
    }
  }
  run::Gradients results;
  for (auto& block : blocks) results.push_back(block.result());
  return results;
}

class MemoryPlanOf : public testing::TestWithParam<int> {};

void expect_host_values(const std::vector<LiveCase>& list, const Workload& workload, int ranks) {
  const run::Gradients input = test::gradients_of_all(workload, ranks, 3);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto expected = run::make_host_executor(workload)->run(list[i].plan, input, 1).gradients;
    const auto found = carried_out(list[i], workload, input, i % 2 == 0 ? 2 : 1);
    ASSERT_EQ(found.size(), expected.size()) << list[i].what;
    for (std::size_t r = 0; r < found.size(); ++r) {
      for (std::size_t t = 0; t < found[r].size(); ++t) {
        for (std::size_t e = 0; e < found[r][t].size(); ++e) {
          // Factors are no integers, and are added in another order here.
          const bool factors = list[i].what.find("powersgd") != std::string::npos;
          EXPECT_NEAR(found[r][t][e], expected[r][t][e],
                      factors ? test::tolerance_of_factors(list[i].plan) : 0)
              << list[i].what << ", rank " << r << ", tensor " << t << ", element " << e;
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(MemoryPlanOf, MovesWhatTheHostMoves) {
  const Workload workload = test::awkward();
  expect_host_values(test::live_cases(workload, GetParam()), workload, GetParam());
}

TEST_P(MemoryPlanOf, MovesWhatTheHostMovesInSplitReductionsAndMeans) {
  const Workload workload = test::even();
  expect_host_values(test::step_cases(workload, GetParam()), workload, GetParam());
}

TEST_P(MemoryPlanOf, RegionsAreAlignedAndApart) {
  const Workload workload = test::awkward();
  for (const auto& c : test::live_cases(workload, GetParam())) {
    const MemoryPlan memory(c.plan, workload, 0);
    std::vector<Region> all;
    for (const auto& waiting : memory.waiting()) {
      for (const Region& region : {waiting.velocity, waiting.residual}) {
        if (region.bytes > 0) all.push_back(region);
      }
    }
    for (const auto& matrices : memory.matrices()) {
      for (const auto& matrix : matrices) {
        all.push_back({matrix.numbers, 4 * matrix.shape.rows * matrix.shape.columns});
        all.push_back({matrix.start, 4 * matrix.shape.columns * matrix.shape.rank});
      }
    }
    for (const auto* list :
         {&memory.payloads(), &memory.produced_regions(), &memory.gradients(), &memory.inputs()}) {
      for (const Region& region : *list) {
        if (region.bytes > 0) all.push_back(region);
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    std::int64_t end = 0;
    for (const Region& region : all) {
      EXPECT_EQ(region.at % MemoryPlan::kAlignment, 0) << c.what;
      EXPECT_GE(region.at, end) << c.what;
      end = region.at + region.bytes;
    }
    EXPECT_LE(end, memory.bytes()) << c.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, MemoryPlanOf, testing::Values(2, 3, 4, 5, 6));

TEST(MemoryPlan, BucketsThatNobodyCopiesAreViews) {
  Workload workload;
  workload.tensors = {test::tensor_of("a", {100}), test::tensor_of("b", {50})};
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kOne;
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(2, 1), strategy);
  const MemoryPlan memory(plan, workload, 1);
  EXPECT_EQ(memory.produced_regions().at(0).bytes, memory.payloads().at(0).bytes);
  EXPECT_EQ(memory.gradients().at(0).bytes, 0);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const auto& actions = memory.actions(static_cast<plan::OpId>(i));
    const auto* compute = std::get_if<plan::Compute>(&plan.ops[i].work);
    if (compute == nullptr || compute->phase != plan::Phase::kBackward) continue;
    // However many tensors one operation gives, they are neighbours: one copy.
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(actions.front().moves.size(), 1U);
  }
}

std::vector<Action> actions_of(const plan::Plan& plan, const MemoryPlan& memory) {
  std::vector<Action> all;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const auto& some = memory.actions(static_cast<plan::OpId>(i));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

using Numbers = std::vector<std::int64_t>;

Numbers at_and_bytes(const std::vector<Region>& regions) {
  Numbers all;
  for (const Region& region : regions) all.insert(all.end(), {region.at, region.bytes});
  return all;
}

// From, to and count of each move.
Numbers moves_of(const Action& action) {
  Numbers all;
  for (const auto& move : action.moves) all.insert(all.end(), {move.from, move.to, move.count});
  return all;
}

void expect_all_reduce(const Action& action, WireNumber number) {
  EXPECT_EQ(action.kind, Action::Kind::kExchange);
  ASSERT_EQ(action.calls.size(), 1U);
  const CollectiveCall& call = action.calls.front();
  EXPECT_EQ(call.kind, collective::CollectiveKind::kAllReduce);
  EXPECT_EQ(call.number, number);
  EXPECT_EQ((Numbers{call.send, call.receive, call.count}), (Numbers{0, 0, 150}));
}

// The example of memory_plan.h.
TEST(MemoryPlan, TwoGradientsByHand) {
  using Kind = Action::Kind;
  Workload workload;
  workload.tensors = {test::tensor_of("a", {100}), test::tensor_of("b", {50})};
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kOne;
  const plan::Plan dense = plan::make_plan(workload, test::cluster_of(2, 1), strategy);
  const MemoryPlan view(dense, workload, 0);
  EXPECT_EQ(view.bytes(), 1536);
  EXPECT_EQ(at_and_bytes(view.payloads()), (Numbers{0, 600}));
  EXPECT_EQ(at_and_bytes(view.produced_regions()), (Numbers{768, 600}));
  const auto few = actions_of(dense, view);
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0].kind, Kind::kCopy);
  EXPECT_EQ(moves_of(few[0]), (Numbers{768, 0, 600}));
  expect_all_reduce(few[1], WireNumber::kFp32);

  strategy.compression.codec = "fp16";
  const plan::Plan coded = plan::make_plan(workload, test::cluster_of(2, 1), strategy);
  const MemoryPlan memory(coded, workload, 0);
  EXPECT_EQ(memory.bytes(), 2048);
  EXPECT_EQ(at_and_bytes(memory.payloads()), (Numbers{0, 300}));
  EXPECT_EQ(at_and_bytes(memory.gradients()), (Numbers{512, 400, 1024, 200}));
  EXPECT_EQ(at_and_bytes(memory.inputs()), (Numbers{1280, 400, 1792, 200}));
  const auto actions = actions_of(coded, memory);
  ASSERT_EQ(actions.size(), 4U);
  EXPECT_EQ(actions[0].kind, Kind::kCopy);
  EXPECT_EQ(moves_of(actions[0]), (Numbers{1280, 512, 400, 1792, 1024, 200}));
  EXPECT_EQ(actions[1].kind, Kind::kCast);
  EXPECT_EQ(moves_of(actions[1]), (Numbers{512, 0, 100, 1024, 200, 50}));
  expect_all_reduce(actions[2], WireNumber::kFp16);
  EXPECT_EQ(actions[3].kind, Kind::kCast);
  EXPECT_EQ(moves_of(actions[3]), (Numbers{0, 512, 100, 200, 1024, 50}));
}

TEST(MemoryPlan, SharesThatAreNotAlikeGoOneByOne) {
  Workload workload;
  workload.tensors = {test::tensor_of("a", {7})};
  plan::Plan plan;
  plan.ranks = 3;
  plan::Bucket bucket;
  bucket.tensors = {0};
  bucket.elements = 7;
  plan.buckets = {bucket};
  plan::Op op;
  op.stream = 1;
  collective::Collective scatter{
      collective::CollectiveKind::kReduceScatter, nullptr, collective::world_group(3), 7, 4, 0, {}};
  collective::Collective gather = scatter;
  gather.kind = collective::CollectiveKind::kAllGather;
  op.work = scatter;
  plan.ops.push_back(op);
  op.work = gather;
  plan.ops.push_back(op);
  plan.streams = 2;
  const run::Gradients input = {
      {{1, 2, 3, 4, 5, 6, 7}}, {{1, 1, 1, 1, 1, 1, 1}}, {{0, 0, 0, 0, 0, 0, 9}}};
  const auto found = carried_out({"uneven", plan}, workload, input, 1);
  for (const auto& rank : found) {
    EXPECT_EQ(rank.at(0), (std::vector<float>{2, 3, 4, 5, 6, 7, 17}));
  }
  EXPECT_EQ(MemoryPlan(plan, workload, 0).actions(0).back().calls.size(), 3U);
}

}  // namespace
}  // namespace syncline::nccl_backend
