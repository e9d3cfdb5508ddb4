#include "core/job/execution_trace/execution_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/calibrate/gzip.h"
#include "core/error.h"
#include "tests/support/dice.h"
#include "tests/support/packed.h"
#include "tests/support/scratch.h"

namespace syncline::job::execution_trace {
namespace {

using Value = nlohmann::json;

const std::string kSample = SYNCLINE_SOURCE_DIR "/tests/data/kineto/resnet50_2gpu_et.json.gz";

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

// DDP's rule: a bucket is closed by the gradient that fills it, the first one at 1 MiB, the others
// at 25 MiB. (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size)
std::vector<std::vector<int>> ddp_buckets(const std::vector<Gradient>& gradients) {
  std::vector<std::vector<int>> buckets(1);
  Bytes filled = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (filled >= (buckets.size() == 1 ? kMiB : 25 * kMiB)) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(static_cast<int>(i));
    filled += gradients[i].bytes();
  }
  return buckets;
}

TEST(ExecutionTrace, ResNetOnTwoGpusGivesItsGradientsAndBuckets) {
  const Observed observed = read_job({kSample});
  EXPECT_EQ(observed.format, "execution_trace");
  EXPECT_EQ(observed.version, "execution trace 1.1.0-chakra.0.0.4");
  EXPECT_EQ(observed.framework, "pytorch");
  EXPECT_EQ(observed.backend, "nccl");
  EXPECT_EQ(observed.world_size, 2);
  EXPECT_FALSE(observed.timed);
  EXPECT_FALSE(observed.bucket_views);
  EXPECT_FALSE(observed.comm_hook);
  EXPECT_EQ(observed.accumulation_steps, 1);
  ASSERT_EQ(observed.ranks.size(), 1u);
  EXPECT_EQ(observed.ranks[0].rank, 1);  // its tensors lie on cuda:1
  ASSERT_EQ(observed.ranks[0].steps.size(), 3u);
  for (const Step& step : observed.ranks[0].steps) {
    EXPECT_EQ(step.gradients.size(), 161u);
    std::vector<std::int64_t> sent;
    std::vector<std::vector<int>> buckets;
    for (const Exchange& exchange : step.exchanges) {
      EXPECT_EQ(exchange.group, "0");
      EXPECT_EQ(exchange.ranks, 2);
      if (exchange.kind != "all_reduce") continue;
      sent.push_back(exchange.elements);
      buckets.push_back(exchange.gradients);
    }
    EXPECT_EQ(sent, (std::vector<std::int64_t>{2049000, 7875584, 6563840, 6637568, 2431040}));
    EXPECT_EQ(buckets, ddp_buckets(step.gradients));
  }
  EXPECT_EQ(observed.ranks[0].steps[0].number, 4);
  EXPECT_EQ(observed.ranks[0].steps[2].number, 6);
}

TEST(ExecutionTrace, ResNetsGradientsAreInReadyOrderWithShapes) {
  const Observed observed = read_job({kSample});
  const Step& step = observed.ranks[0].steps[0];
  EXPECT_EQ(step.gradients[0].shape, (std::vector<std::int64_t>{1000}));
  EXPECT_EQ(step.gradients[1].shape, (std::vector<std::int64_t>{1000, 2048}));
  EXPECT_EQ(step.gradients[160].shape, (std::vector<std::int64_t>{64, 3, 7, 7}));
  Bytes sum = 0;
  for (const Gradient& gradient : step.gradients) {
    EXPECT_EQ(gradient.dtype, DType::kFp32);
    EXPECT_EQ(gradient.wait, 0);
    sum += gradient.bytes();
  }
  EXPECT_EQ(sum, 102228128);
  // The buffers' broadcast; the second one a step is of integers.
  EXPECT_EQ(step.exchanges[0].kind, "broadcast");
  EXPECT_EQ(step.exchanges[0].elements, 53120);
  EXPECT_TRUE(any_with(observed.warnings, "3 collectives of integers"));
}

TEST(ExecutionTrace, SaysFirstThatTimesAreMissingAndWhatToRecord) {
  const Observed observed = read_job({kSample});
  ASSERT_FALSE(observed.warnings.empty());
  EXPECT_NE(observed.warnings[0].find("no times"), std::string::npos);
  EXPECT_NE(observed.warnings[0].find("record_shapes"), std::string::npos);
  EXPECT_NE(observed.warnings[0].find("syncline record"), std::string::npos);
}

// A trace as the observer writes one, with what it was made of.
struct Truth {
  std::vector<std::vector<Gradient>> buckets;
  std::int64_t gradients = 0;
  int steps = 1;
  int passes = 1;    // backward passes a step
  bool old = false;  // the layout before 1.0.2
  bool copies = true;
  bool hook = false;
  bool profiled = true;
};

class Writer {
 public:
  explicit Writer(const Truth& truth, test::Dice& dice) : truth_(truth), dice_(dice) {}

  std::string text() {
    int next_step = 3;
    for (int step = 0; step < truth_.steps; ++step) {
      const std::int64_t own = ++id_;
      forward();
      for (int pass = 1; pass <= truth_.passes; ++pass) backward(pass == truth_.passes);
      add(++id_, own, "Optimizer.step#SGD.step", {}, {}, {});
      if (truth_.profiled) {
        add(own, 2, "ProfilerStep#" + std::to_string(next_step++), {}, {}, {});
      }
    }
    // Nodes are written as they end: in no order that a reader may rely on.
    std::shuffle(nodes_.begin(), nodes_.end(), std::mt19937(7));
    return Value{{"schema", truth_.old ? "1.0.1" : "1.1.1-chakra.0.0.4"}, {"nodes", nodes_}}.dump();
  }

 private:
  void forward() {
    for (int i = dice_.between(0, 3); i > 0; --i) {
      add(++id_, 2, "aten::mm", {Value{3, 4, 0, 8, 4, "cpu"}}, {Value{2, 4}}, {"Tensor(float)"});
    }
  }

  static std::string type_of(DType dtype) {
    return dtype == DType::kFp32 ? "Tensor(float)" : "Tensor(c10::Half)";
  }

  void backward(bool sends) {
    for (std::size_t b = 0; b < truth_.buckets.size(); ++b) {
      const auto storage = static_cast<std::int64_t>(1000 + b);
      std::int64_t sum = 0;
      std::int64_t last = 0;
      for (const Gradient& gradient : truth_.buckets[b]) {
        const Value tensor = {++id_, ++id_, 0, gradient.elements, 4, "cuda:0"};
        const std::string type = type_of(gradient.dtype);
        last = ++id_;
        add(last, 2, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {}, {},
            {});
        add(++id_, last, "torch::autograd::AccumulateGrad", {tensor}, {gradient.shape}, {type});
        if (truth_.copies && sends) {
          const std::int64_t copy = ++id_;
          const std::int64_t bucket = ++id_;
          add(copy, last,
              std::string("torch::distributed::reducer::") + (truth_.hook ? "copy_" : "mul_out"),
              {Value{bucket, storage, sum, gradient.elements, 4, "cuda:0"}}, {gradient.shape},
              {type});
        }
        sum += gradient.elements;
      }
      if (sends) send(last, storage, sum, type_of(truth_.buckets[b][0].dtype));
    }
  }

  void send(std::int64_t parent, std::int64_t storage, std::int64_t sum, const std::string& type) {
    const Value list = {{++id_, storage, 0, sum, 4, "cuda:0"}};
    const std::string types = "GenericList[" + type + "]";
    const std::int64_t call = ++id_;
    const std::int64_t record = ++id_;
    add(call, parent, "c10d::allreduce_", {list, "<Object>"}, {Value{{sum}}, Value::array()},
        {types, "Object"});
    Value values = {list, 7, {"0", "default_pg"}, 0, "allreduce", Value::array(), Value::array()};
    if (!truth_.old) values.insert(values.end(), {0, 1, 4});
    add(record, call, "record_param_comms", values, {Value{{sum}}}, {types});
    add(++id_, record, "nccl:all_reduce", {list[0]}, {Value{sum}}, {type});
  }

  void add(std::int64_t id, std::int64_t parent, const std::string& name, const Value& values,
           const Value& shapes, const Value& types) {
    const auto listed = [](const Value& value) { return value.is_null() ? Value::array() : value; };
    Value node = {{"id", id}, {"name", name}};
    if (truth_.old) {
      node["parent"] = parent;
      node["fw_parent"] = 0;
      node["inputs"] = listed(values);
      node["input_shapes"] = listed(shapes);
      node["input_types"] = listed(types);
      node["outputs"] = Value::array();
    } else {
      node["ctrl_deps"] = parent;
      node["inputs"] = {
          {"values", listed(values)}, {"shapes", listed(shapes)}, {"types", listed(types)}};
      node["outputs"] = {
          {"values", Value::array()}, {"shapes", Value::array()}, {"types", Value::array()}};
    }
    nodes_.push_back(std::move(node));
  }

  const Truth& truth_;
  test::Dice& dice_;
  std::int64_t id_ = 10;
  std::vector<Value> nodes_;
};

Truth random_truth(test::Dice& dice) {
  Truth truth;
  truth.buckets.resize(static_cast<std::size_t>(dice.between(1, 5)));
  for (auto& bucket : truth.buckets) {
    const DType dtype = dice.chance(30) ? DType::kFp16 : DType::kFp32;
    bucket.resize(static_cast<std::size_t>(dice.between(1, 6)));
    for (Gradient& gradient : bucket) {
      for (int i = dice.between(1, 3); i > 0; --i) gradient.shape.push_back(dice.between(1, 50));
      gradient.elements = std::accumulate(gradient.shape.begin(), gradient.shape.end(),
                                          std::int64_t{1}, std::multiplies<>());
      gradient.dtype = dtype;
      ++truth.gradients;
    }
  }
  truth.steps = dice.between(1, 4);
  truth.passes = dice.chance(30) ? dice.between(2, 3) : 1;
  truth.old = dice.chance(50);
  truth.copies = dice.chance(60);
  truth.hook = truth.copies && dice.chance(30);
  truth.profiled = dice.chance(70);
  return truth;
}

void expect_step(const Step& step, const Truth& truth, const std::string& place) {
  ASSERT_EQ(step.gradients.size(), static_cast<std::size_t>(truth.gradients)) << place;
  ASSERT_EQ(step.exchanges.size(), truth.buckets.size()) << place;
  int first = 0;
  for (std::size_t b = 0; b < truth.buckets.size(); ++b) {
    const Exchange& exchange = step.exchanges[b];
    EXPECT_EQ(exchange.kind, "all_reduce") << place;
    EXPECT_EQ(exchange.ranks, truth.old ? 0 : 4) << place;
    std::vector<int> members(truth.buckets[b].size());
    std::iota(members.begin(), members.end(), first);
    EXPECT_EQ(exchange.gradients, members) << place;
    EXPECT_EQ(exchange.dtype, truth.buckets[b][0].dtype) << place;
    std::int64_t sum = 0;
    for (const Gradient& gradient : truth.buckets[b]) {
      const Gradient& read = step.gradients[static_cast<std::size_t>(first++)];
      EXPECT_EQ(read.shape, gradient.shape) << place;
      EXPECT_EQ(read.elements, gradient.elements) << place;
      EXPECT_EQ(read.dtype, gradient.dtype) << place;
      sum += gradient.elements;
    }
    EXPECT_EQ(exchange.elements, sum) << place;
  }
}

TEST(ExecutionTrace, RandomTracesGiveWhatTheyWereMadeOf) {
  test::Dice dice(14);
  for (int round = 0; round < 200; ++round) {
    const Truth truth = random_truth(dice);
    const std::string text = Writer(truth, dice).text();
    const Observed observed = observed_from_text("t.json", text, 3);
    const std::string place = "round " + std::to_string(round);
    EXPECT_EQ(observed.bucket_views, !truth.copies) << place;
    EXPECT_EQ(observed.comm_hook, truth.hook) << place;
    EXPECT_EQ(observed.accumulation_steps, truth.passes) << place;
    EXPECT_EQ(observed.optimizers, std::vector<std::string>{"SGD"}) << place;
    EXPECT_EQ(observed.world_size, truth.old ? 1 : 4) << place;
    EXPECT_EQ(observed.ranks[0].rank, truth.old ? 3 : 0) << place;
    ASSERT_EQ(observed.ranks[0].steps.size(), static_cast<std::size_t>(truth.steps)) << place;
    for (const Step& step : observed.ranks[0].steps) expect_step(step, truth, place);
  }
}

TEST(ExecutionTrace, AnUnusualStepIsLeftOutAndNamed) {
  test::Dice dice(3);
  Truth truth;
  truth.buckets = {{Gradient{"", {4}, 4}}, {Gradient{"", {6}, 6}}};
  truth.gradients = 2;
  truth.steps = 3;
  Value trace = Value::parse(Writer(truth, dice).text());
  // The last step is cut off: its last gradient and all-reduce are missing.
  std::int64_t last = 0;
  for (const Value& node : trace["nodes"]) {
    if (node["name"] == "c10d::allreduce_") last = std::max(last, node["id"].get<std::int64_t>());
  }
  Value kept = Value::array();
  for (const Value& node : trace["nodes"]) {
    if (node["id"] < last - 6) kept.push_back(node);
  }
  trace["nodes"] = kept;
  const Observed observed = observed_from_text("t.json", trace.dump());
  EXPECT_EQ(observed.ranks[0].steps.size(), 2u);
  EXPECT_TRUE(any_with(observed.warnings, "step 5 is left out"));
}

TEST(ExecutionTrace, DamagedFilesAreOneLineThatNamesThem) {
  const test::Scratch scratch;
  const std::string text = calibrate::unpacked(kSample, test::text_of(kSample));
  const std::string path = scratch.path("t.json");
  test::write_text(path, text.substr(0, text.size() / 2));
  EXPECT_EQ(refusal({path}), path + ": cut off: its JSON ends inside a value, after " +
                                 std::to_string(text.size() / 2) + " bytes");
  test::write_text(path, text + text);
  EXPECT_EQ(refusal({path}), path + ": not valid JSON at byte " + std::to_string(text.size() + 1));
  test::write_packed(path + ".gz", text);
  const std::string packed = test::text_of(path + ".gz");
  test::write_text(path + ".gz", packed.substr(0, packed.size() - 100));
  EXPECT_EQ(refusal({path + ".gz"}), path + ".gz: gzip: damaged or cut off");
  test::write_text(path, R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [{"id": 1, "name": "aten::mm",
    "ctrl_deps": 0}]})");
  EXPECT_TRUE(refusal({path}).starts_with(path + ": an execution trace without a gradient"));
  for (const std::string& message : {refusal({path}), refusal({path + ".gz"})}) {
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ExecutionTrace, FilesOfOneJobAreItsRanks) {
  const test::Scratch scratch;
  EXPECT_NE(refusal({kSample, kSample}).find("of rank 1, as another"), std::string::npos);
  test::Dice dice(5);
  Truth truth;
  truth.old = true;
  truth.buckets = {{Gradient{"", {4}, 4}}};
  truth.gradients = 1;
  std::vector<std::string> files;
  for (const char* name : {"a.json", "b.json"}) {
    files.push_back(scratch.path(name));
    test::write_text(files.back(), Writer(truth, dice).text());
  }
  // Where a trace does not tell its rank, its place does.
  const Observed observed = read_job(files);
  ASSERT_EQ(observed.ranks.size(), 2u);
  EXPECT_EQ(observed.ranks[1].rank, 1);
  truth.buckets[0][0].elements = 5;
  test::write_text(files[1], Writer(truth, dice).text());
  EXPECT_EQ(refusal(files), files[1] +
                                ": its steps have other gradients or collectives than those of " +
                                files[0] + ": not of one job");
}

}  // namespace
}  // namespace syncline::job::execution_trace
