#include "core/job/chakra/chakra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/dice.h"
#include "tests/support/packed.h"
#include "tests/support/scratch.h"

namespace syncline::job::chakra {
namespace {

using test::ChakraNode;

constexpr std::uint64_t kCollective = 7;

std::string refusal(const std::vector<std::string>& files) {
  try {
    (void)read_job(files);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool any_with(const std::vector<std::string>& list, const std::string& part) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return one.find(part) != std::string::npos; });
}

// What ASTRA-sim's text converter writes for data parallelism: forward layer by layer, then for
// each layer from behind its weights' gradient, the all-reduce, and its inputs' gradient.
struct Layer {
  int forward = 0;  // microseconds
  int weights = 0;
  int inputs = 0;
  std::uint64_t bytes = 0;
};

struct DataParallel {
  std::vector<Layer> layers;
  int passes = 1;
  bool packed = true;
  bool times = true;

  std::string bytes() const {
    std::string file = test::chakra_metadata();
    std::uint64_t id = 0;
    std::vector<std::uint64_t> sent(layers.size());
    for (int pass = 0; pass < passes; ++pass) {
      const auto add = [&](const std::string& name, std::uint64_t type, int duration,
                           std::vector<std::uint64_t> dependencies, std::uint64_t size = 0) {
        ChakraNode node;
        node.id = id;
        node.name = name;
        node.type = type;
        node.duration = times ? static_cast<std::uint64_t>(duration) : 0;
        node.dependencies = std::move(dependencies);
        node.comm_size = size;
        node.packed = packed;
        file += node.message();
        return id++;
      };
      std::uint64_t last = 0;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        std::vector<std::uint64_t> after;
        if (i > 0) after.push_back(last);
        if (pass > 0) after.push_back(sent[i]);
        last = add("COMP_NODE_layer_FWD", 4, layers[i].forward, after);
      }
      for (std::size_t i = layers.size(); i-- > 0;) {
        last = add("COMP_NODE_layer_BWD_WG", 4, layers[i].weights, {last});
        sent[i] = add("COMM_COLL_NODE_layer_ALLREDUCE", kCollective, 0, {last}, layers[i].bytes);
        if (i > 0) last = add("COMP_NODE_layer_BWD_IG", 4, layers[i].inputs, {last});
      }
    }
    return file;
  }
};

DataParallel random_job(test::Dice& dice) {
  DataParallel job;
  job.layers.resize(static_cast<std::size_t>(dice.between(1, 12)));
  for (Layer& layer : job.layers) {
    layer.forward = dice.between(1, 500);
    layer.weights = dice.between(1, 500);
    layer.inputs = dice.between(1, 500);
    layer.bytes = static_cast<std::uint64_t>(dice.between(1, 1 << 20)) * 4;
  }
  job.passes = dice.between(1, 3);
  job.packed = dice.chance(50);
  return job;
}

void expect_pass(const Step& step, const DataParallel& job) {
  const std::size_t count = job.layers.size();
  ASSERT_EQ(step.gradients.size(), count);
  ASSERT_EQ(step.exchanges.size(), count);
  int forward = 0;
  for (const Layer& layer : job.layers) forward += layer.forward;
  EXPECT_NEAR(step.forward, forward * kMicrosecond, 1e-12);
  Seconds ready = step.forward;
  for (std::size_t k = 0; k < count; ++k) {
    const Layer& layer = job.layers[count - 1 - k];
    const int wait = layer.weights + (k > 0 ? job.layers[count - k].inputs : 0);
    EXPECT_NEAR(step.gradients[k].wait, wait * kMicrosecond, 1e-12);
    EXPECT_EQ(step.gradients[k].bytes(), static_cast<Bytes>(layer.bytes));
    EXPECT_EQ(step.gradients[k].name, "bucket " + std::to_string(k + 1));
    EXPECT_EQ(step.exchanges[k].gradients, std::vector<int>{static_cast<int>(k)});
    EXPECT_EQ(step.exchanges[k].kind, "all_reduce");
    EXPECT_EQ(step.exchanges[k].group, "0");
    ready += wait * kMicrosecond;
    EXPECT_NEAR(step.exchanges[k].complete, ready, 1e-12);
  }
  EXPECT_NEAR(step.gpu, ready, 1e-12);
  EXPECT_NEAR(step.forward + step.backward + step.exposed + step.host_gap + step.update, step.gpu,
              1e-12);
}

TEST(Chakra, RandomDataParallelJobsGiveTheirBucketsAndWaits) {
  test::Dice dice(2);
  for (int round = 0; round < 200; ++round) {
    const DataParallel job = random_job(dice);
    const Observed observed = observed_from_bytes("job.et", job.bytes());
    EXPECT_TRUE(observed.timed);
    EXPECT_EQ(observed.version, "Chakra 0.0.4");
    ASSERT_EQ(observed.ranks[0].steps.size(), static_cast<std::size_t>(job.passes)) << round;
    for (const Step& step : observed.ranks[0].steps) expect_pass(step, job);
    EXPECT_FALSE(any_with(observed.warnings, "forward pass is not told"));
    EXPECT_TRUE(any_with(observed.warnings, "does not tell gradients"));
  }
}

TEST(Chakra, WithoutDurationsThereAreSizesAlone) {
  test::Dice dice(3);
  DataParallel job = random_job(dice);
  job.times = false;
  job.passes = 1;
  const Observed observed = observed_from_bytes("job.et", job.bytes());
  EXPECT_FALSE(observed.timed);
  EXPECT_NE(observed.warnings.at(0).find("no compute node has a duration"), std::string::npos);
  EXPECT_EQ(observed.ranks[0].steps[0].gradients.size(), job.layers.size());
  EXPECT_EQ(observed.ranks[0].steps[0].gpu, 0);
}

// As chakra_converter writes a linked trace: host nodes launch device nodes, which run behind each
// other on their stream.
TEST(Chakra, HostNodesLaunchAndDeviceNodesCompute) {
  const auto node = [](std::uint64_t id, std::uint64_t duration, bool host,
                       std::vector<std::uint64_t> after) {
    ChakraNode one;
    one.id = id;
    one.name = "n" + std::to_string(id);
    one.duration = duration;
    one.host = host;
    one.dependencies = std::move(after);
    one.stream = host ? -1 : 7;
    return one;
  };
  std::vector<ChakraNode> nodes = {node(1, 10, true, {}),  node(2, 100, false, {1}),
                                   node(3, 10, true, {1}), node(4, 50, false, {3}),
                                   node(5, 10, true, {3}), node(6, 30, false, {5, 4}),
                                   node(7, 10, true, {5}), node(8, 40, false, {7}),
                                   node(9, 10, true, {7}), node(10, 5, false, {9, 6})};
  nodes[5].type = kCollective;
  nodes[5].comm_size = 4000;
  std::string file = test::chakra_metadata();
  for (const ChakraNode& one : nodes) file += one.message();
  const Observed observed = observed_from_bytes("linked.et", file);
  const Step& step = observed.ranks[0].steps.at(0);
  // Launched at 10 us, 150 us of kernels; the exchange until 190 us, kernel 8 beside it until 200.
  ASSERT_EQ(step.exchanges.size(), 1u);
  EXPECT_NEAR(step.exchanges[0].complete, 160e-6, 1e-12);
  EXPECT_NEAR(step.exchanges[0].duration, 30e-6, 1e-12);
  EXPECT_NEAR(step.exchanges[0].exposed, 0, 1e-12);
  EXPECT_NEAR(step.gradients[0].wait, 160e-6, 1e-12);
  EXPECT_NEAR(step.update, 45e-6, 1e-12);
  EXPECT_NEAR(step.gpu, 205e-6, 1e-12);
  EXPECT_TRUE(any_with(observed.warnings, "forward pass is not told apart"));
  EXPECT_TRUE(any_with(observed.warnings, "of one rank"));
}

TEST(Chakra, WhatTheDeviceWaitsForIsExposed) {
  const auto node = [](std::uint64_t id, std::uint64_t type, std::uint64_t duration,
                       std::vector<std::uint64_t> after) {
    ChakraNode one;
    one.id = id;
    one.name = "n";
    one.type = type;
    one.duration = duration;
    one.dependencies = std::move(after);
    one.comm_size = 4096;
    return one;
  };
  std::string file = test::chakra_metadata();
  file += node(1, 4, 100, {}).message() + node(2, kCollective, 70, {1}).message() +
          node(3, 4, 20, {1}).message() + node(4, kCollective, 30, {3}).message() +
          node(5, 4, 15, {4}).message();
  const Step step = observed_from_bytes("x.et", file).ranks[0].steps.at(0);
  // The second exchange waits for the first, until 170 us, and ends at 200.
  EXPECT_NEAR(step.exchanges[1].complete, 120e-6, 1e-12);
  EXPECT_NEAR(step.exchanges[1].sent, 170e-6, 1e-12);
  EXPECT_NEAR(step.exchanges[0].exposed, 50e-6, 1e-12);
  EXPECT_NEAR(step.exposed, 80e-6, 1e-12);
  EXPECT_NEAR(step.update, 15e-6, 1e-12);
  EXPECT_NEAR(step.gpu, 215e-6, 1e-12);
}

TEST(Chakra, EveryCutIsRefusedOrEndsBetweenMessages) {
  test::Dice dice(4);
  DataParallel job = random_job(dice);
  const std::string file = job.bytes();
  int refused = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    try {
      (void)observed_from_bytes("cut.et", std::string_view(file).substr(0, size));
    } catch (const InputError& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with("cut.et: ")) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, static_cast<int>(file.size() * 9 / 10));
}

TEST(Chakra, DamagedAndForeignFilesAreOneLineThatNamesThem) {
  const test::Scratch scratch;
  test::Dice dice(5);
  const std::string file = random_job(dice).bytes();
  const std::string path = scratch.path("job.0.et");
  test::write_text(path, file + file);
  EXPECT_TRUE(refusal({path}).find("expected a node") != std::string::npos) << refusal({path});
  test::write_text(path, file + file.substr(test::chakra_metadata().size()));
  EXPECT_EQ(refusal({path}),
            path + ": two nodes have the id 0: damaged, or two traces in one file");
  test::write_text(path, "some words of a text");
  EXPECT_TRUE(refusal({path}).starts_with(path + ": message 1 at byte 0")) << refusal({path});
  ChakraNode one;
  ChakraNode other;
  one.id = other.dependencies.emplace_back(1);
  other.id = one.dependencies.emplace_back(2);
  test::write_text(path, test::chakra_metadata() + one.message() + other.message());
  EXPECT_EQ(refusal({path}), path + ": the dependencies of 2 nodes form a circle");
  test::write_text(path, test::chakra_metadata());
  EXPECT_TRUE(refusal({path}).starts_with(path + ": a Chakra trace of 0 nodes without"));
  test::write_packed(path + ".gz", file);
  EXPECT_EQ(refusal({path + ".gz"}), "");
  // Known by its bytes where its name says nothing.
  test::write_text(scratch.path("unnamed"), file);
  EXPECT_EQ(read_job({scratch.path("unnamed")}).format, "chakra");
}

TEST(Chakra, RanksComeFromTheNamesAndMustAgree) {
  const test::Scratch scratch;
  test::Dice dice(6);
  const DataParallel job = random_job(dice);
  test::write_text(scratch.path("job.1.et"), job.bytes());
  test::write_text(scratch.path("job.4.et"), job.bytes());
  const Observed observed = read_job({scratch.path("job.1.et"), scratch.path("job.4.et")});
  ASSERT_EQ(observed.ranks.size(), 2u);
  EXPECT_EQ(observed.ranks[0].rank, 1);
  EXPECT_EQ(observed.ranks[1].rank, 4);
  EXPECT_EQ(observed.world_size, 2);
  test::write_text(scratch.path("job.4.et"), random_job(dice).bytes());
  EXPECT_NE(refusal({scratch.path("job.1.et"), scratch.path("job.4.et")}).find("not of one job"),
            std::string::npos);
}

TEST(Chakra, RandomDamageIsReadOrRefused) {
  test::Dice dice(7);
  for (int round = 0; round < 2000; ++round) {
    std::string file = random_job(dice).bytes();
    for (int flips = dice.between(1, 4); flips > 0; --flips) {
      file[static_cast<std::size_t>(dice.between(0, static_cast<int>(file.size()) - 1))] =
          static_cast<char>(dice.between(0, 255));
    }
    try {
      const Observed observed = observed_from_bytes("damaged.et", file);
      for (const Step& step : observed.ranks[0].steps) {
        EXPECT_TRUE(std::isfinite(step.gpu) && step.gpu >= 0);
      }
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace syncline::job::chakra
