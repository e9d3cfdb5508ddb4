// "operators" in a workload's JSON: architectures, explicit lists, and mistakes in both.
#include "formats/input/read_operators.h"

#include <gtest/gtest.h>

#include "core/plan/compute_fusion.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "formats/scenario/scenario.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;

constexpr const char* kDevice =
    R"({"tflops": 10, "half_tflops": 100, "memory_gbytes_per_s": 1000, "launch_us": 5})";

std::string scenario_with(const std::string& workload, const std::string& device = kDevice,
                          const std::string& strategy = R"({"name": "plain"})") {
  return R"({"name": "s", "workload": )" + workload +
         R"(, "cluster": {"name": "c", "nodes": 1, "gpus_per_node": 1, "device": )" + device +
         R"(}, "strategies": [)" + strategy + "]}";
}

Scenario parsed_text(const std::string& text) {
  return parse_scenario(document_from_text("s.json", text));
}

std::string refusal_of(const std::string& text) {
  return test::input_error([&] { parsed_text(text); });
}

void says(const std::string& text, const char* part) { EXPECT_TRUE(contains(text, part)) << text; }

// One linear layer with relu, forward, backward and update, and its list of values.
Json linear_layer() {
  return Json::parse(R"({
    "name": "layer", "batch": 4,
    "tensors": [{"name": "b", "shape": [128]}, {"name": "w", "shape": [64, 128]}],
    "operators": {
      "values": [
        {"name": "x", "bytes": 1024}, {"name": "w", "bytes": 32768}, {"name": "b", "bytes": 512},
        {"name": "xw", "bytes": 2048}, {"name": "sum", "bytes": 2048}, {"name": "y", "bytes": 2048},
        {"name": "dy", "bytes": 2048}, {"name": "dsum", "bytes": 2048},
        {"name": "dxw", "bytes": 2048}, {"name": "b@GRAD", "bytes": 512},
        {"name": "w@GRAD", "bytes": 32768}
      ],
      "list": [
        {"kind": "matmul_v2", "inputs": ["x", "w"], "outputs": ["xw"], "matrix_flops": 65536,
         "columns": 128},
        {"kind": "elementwise_add", "inputs": ["xw", "b"], "outputs": ["sum"], "flops": 512},
        {"kind": "relu", "inputs": ["sum"], "outputs": ["y"]},
        {"kind": "relu_grad", "part": "backward", "inputs": ["y", "dy"], "outputs": ["dsum"]},
        {"kind": "elementwise_add_grad", "part": "backward", "inputs": ["dsum"],
         "outputs": ["b@GRAD"], "in_place": ["dxw"]},
        {"kind": "matmul_v2_grad", "part": "backward", "inputs": ["x", "dxw", "dxw"],
         "outputs": ["w@GRAD"], "matrix_flops": 65536, "columns": 128, "kernels": 1},
        {"kind": "sgd", "part": "update", "inputs": ["b", "b@GRAD"]},
        {"kind": "sgd", "part": "update", "inputs": ["w", "w@GRAD"]}
      ]
    }
  })");
}

TEST(ReadOperators, AnArchitectureBringsItsTensorsAndTimes) {
  const Workload workload =
      parsed_text(
          scenario_with(R"({"name": "r", "batch": 32, "operators": {"architecture": "resnet50",
                              "dtype": "fp16", "layout": "NHWC", "classes": 10, "image": 192,
                              "optimizer": "sgd"}})"))
          .workload;
  EXPECT_EQ(workload.tensors.size(), 161u);
  EXPECT_EQ(workload.buffers.size(), 106u);
  EXPECT_EQ(count_of(workload.operators, "sgd"), 161);
  EXPECT_GT(workload.forward, 0);
  EXPECT_GT(backward_time(workload), workload.forward);
  EXPECT_GT(workload.update, 0);
  EXPECT_FALSE(workload.times_given);
  const Scenario bert = parsed_text(scenario_with(
      R"({"name": "b", "operators": {"architecture": "bert_base", "sequence": 32,
          "fused_attention": true, "fused_feedforward": true, "fused_linear": true}})"));
  EXPECT_EQ(bert.workload.tensors.size(), 199u - 48);
}

TEST(ReadOperators, GivenTimesAreKeptAndEachGradientsShareIsEvaluated) {
  const Workload workload =
      parsed_text(scenario_with(R"({"name": "r", "forward_ms": 7, "backward_ms": 20, "update_ms": 3,
                              "operators": {"architecture": "resnet50"}})"))
          .workload;
  EXPECT_DOUBLE_EQ(workload.forward, 7e-3);
  EXPECT_DOUBLE_EQ(workload.update, 3e-3);
  EXPECT_NEAR(backward_time(workload), 20e-3, 1e-12);
  EXPECT_TRUE(workload.times_given);
  Device device;
  device.flops = 10e12;
  device.half_flops = 100e12;
  device.memory = 1e12;
  device.launch = 5e-6;
  const auto evaluated = operators::evaluate_operators(workload.operators, device);
  EXPECT_NEAR(workload.tensors[40].backward / workload.tensors[10].backward,
              evaluated.backward[40] / evaluated.backward[10], 1e-9);
}

// Measured waits of torchvision's model beside the operators of the same architecture.
TEST(ReadOperators, MeasuredTensorsKeepNamesAndWaits) {
  const std::string folder = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/workloads/";
  Json workload = read_json_file(folder + "resnet50_v100.json");
  workload["operators"] = {{"architecture", "resnet50_v1.5"}};
  const std::string strategy =
      R"({"name": "fused", "compute_fusion": {"fuse_elewise_add_act_ops": true}})";
  const Scenario scenario = parsed_text(scenario_with(workload.dump(), kDevice, strategy));
  EXPECT_EQ(scenario.workload.tensors.front().name, "fc.bias");
  EXPECT_NEAR(scenario.workload.tensors.front().backward, 552.638e-6, 1e-9);
  EXPECT_TRUE(scenario.workload.times_given);
  const auto& notes = scenario.strategies.front().notes;
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "fuse_elewise_add_act_ops: detected 16 subgraphs forward and 16 backward");
  EXPECT_TRUE(contains(notes[2], "the workload's own times stand"));

  workload["tensors"].erase(5);
  EXPECT_TRUE(contains(refusal_of(scenario_with(workload.dump())),
                       "has 161 gradients, the workload's "
                       "tensors are 160"));
  workload["tensors"].insert(workload["tensors"].begin(), Json{{"name", "z"}, {"shape", {7}}});
  for (auto& tensor : workload["tensors"]) tensor.erase("backward_us");
  EXPECT_TRUE(contains(refusal_of(scenario_with(workload.dump())),
                       "operators.architecture: its gradient 0, fc_0.b_0, has 1000 elements, the "
                       "workload's, z, has 7"));
}

TEST(ReadOperators, AnExplicitList) {
  const Scenario scenario = parsed_text(
      scenario_with(linear_layer().dump(), R"({"tflops": 10, "memory_gbytes_per_s": 1})",
                    R"({"name": "fused", "compute_fusion": {"fuse_gemm_epilogue": true,
          "fuse_all_optimizer_ops": true}})"));
  const auto& list = *scenario.workload.operators;
  EXPECT_EQ(list.operators.size(), 8u);
  EXPECT_EQ(list.operators[5].inputs[1].passes, 2);
  EXPECT_EQ(list.operators[4].outputs[1].passes, 0);
  // All of it waits for memory, at a nanosecond a byte: the products take some nanoseconds more.
  EXPECT_NEAR(scenario.workload.forward, (35840 + 4608 + 4096) * 1e-9, 1e-8);
  EXPECT_NEAR(scenario.workload.tensors[0].backward, (6144 + 2560) * 1e-9, 1e-12);
  EXPECT_NEAR(scenario.workload.tensors[1].backward, (1024 + 4096 + 32768) * 1e-9, 1e-8);
  const auto fused = plan::fuse_operators(scenario.workload, scenario.strategies[0].compute_fusion);
  EXPECT_EQ(fused.matches[1].forward, 1);
  EXPECT_EQ(fused.matches[1].backward, 1);
  EXPECT_EQ(count_of(fused.operators, "fused_gemm_epilogue"), 1);
  EXPECT_EQ(count_of(fused.operators, "relu"), 0);
  EXPECT_EQ(count_of(fused.operators, "fused_sgd"), 1);
}

TEST(ReadOperators, MistakesInAList) {
  const auto broken = [](const char* patch) {
    return refusal_of(scenario_with(linear_layer().patch(Json::parse(patch)).dump()));
  };
  EXPECT_EQ(refusal_of(scenario_with(linear_layer().dump())), "");
  for (const auto& [patch, words] : std::vector<std::pair<const char*, const char*>>{
           {R"([{"op": "replace", "path": "/operators/list/1/inputs/1", "value": "bb"}])",
            "operators.list[1].inputs[1]: 'bb' is not among the values (did you mean 'b'?)"},
           {R"([{"op": "replace", "path": "/operators/list/2/inputs/0", "value": 3}])",
            "operators.list[2].inputs[0]: found 3, expected a value's name"},
           {R"([{"op": "replace", "path": "/operators/list/2/outputs/0", "value": "sum"}])",
            "operators.list[2].outputs: 'sum' is written twice"},
           {R"([{"op": "move", "from": "/operators/list/0", "path": "/operators/list/1"}])",
            "operators.list[0].inputs: 'xw' is written only later"},
           {R"([{"op": "add", "path": "/operators/list/2/part", "value": "update"}])",
            "operators.list[3].part: comes after a later one"},
           {R"([{"op": "replace", "path": "/tensors/0/name", "value": "c"}])",
            "operators.list: no operator writes 'c@GRAD', the gradient of c"},
           {R"([{"op": "replace", "path": "/operators/values/1/name", "value": "x"}])",
            "operators.values[1].name: 'x' names two values"},
           {R"([{"op": "replace", "path": "/operators/list", "value": []}])",
            "operators.list: empty, expected at least one operator"},
           {R"([{"op": "remove", "path": "/operators/list"}])", "operators.list: missing"},
           {R"([{"op": "remove", "path": "/tensors"}])",
            "operators.list: needs the workload's tensors"},
           {R"([{"op": "add", "path": "/operators/list/0/kernels", "value": 0}])",
            "operators.list[0].kernels: found 0, expected a whole number from 1 to 10000"},
           {R"([{"op": "add", "path": "/operators/list/0/flop", "value": 0}])",
            "operators.list[0].flop: unknown key (did you mean 'flops'?)"}}) {
    says(broken(patch), words);
  }
}

TEST(ReadOperators, MistakesInAnArchitecture) {
  const auto message = [](const std::string& operators, const std::string& device = kDevice) {
    return refusal_of(scenario_with(R"({"name": "w", "operators": )" + operators + "}", device));
  };
  says(message(R"({"architecture": "resnet5"})"),
       "did you mean one of 'resnet50', 'resnet50_v1.5'?");
  says(message(R"({"architecture": "resnet50", "sequence": 8})"),
       "operators.sequence: has no meaning with 'resnet50', only with transformers");
  says(message(R"({"architecture": "bert_base", "layout": "NHWC"})"),
       "operators.layout: has no meaning with 'bert_base', only with images");
  says(message(R"({"architecture": "bert_base", "sequence": 513})"), "from 1 to 512");
  says(message(R"({"architecture": "vgg16"})", R"({"tflops": 1})"),
       "workload.operators: needs cluster.device.tflops and memory_gbytes_per_s");
  says(message(R"({"architecture": "vgg16", "list": []})"), "list: unknown key");
}

// A family of the sizes that the scenario gives.
TEST(ReadOperators, AFamilyTakesItsShape) {
  const Scenario scenario = parsed_text(scenario_with(R"({"name": "w", "batch": 2, "operators": {
      "architecture": "llama", "dtype": "bf16", "autocast": true, "sequence": 64, "shape": {
        "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "inner": 128, "words": 1000}}})"));
  std::int64_t parameters = 0;
  for (const Tensor& tensor : scenario.workload.tensors) {
    parameters += tensor.elements;
    EXPECT_EQ(tensor.dtype, DType::kFp32) << tensor.name;
  }
  // Embedding, head, last norm; in each layer q and o, k and v, the feed-forward half, two norms.
  EXPECT_EQ(parameters, 2 * 64'000 + 64 + 2 * (2 * 4096 + 2 * 2048 + 3 * 8192 + 128));
  EXPECT_TRUE(scenario.workload.rated_times);
}

TEST(ReadOperators, MistakesInAShape) {
  const auto message = [](const std::string& architecture, const std::string& keys) {
    return refusal_of(scenario_with(R"({"name": "w", "batch": 2, "operators": {"architecture": ")" +
                                    architecture + "\", " + keys + "}}"));
  };
  const auto shaped = [&](const std::string& keys) {
    return message("llama", R"("shape": {"layers": 2, "hidden": 64, "words": 1000, )" + keys + "}");
  };
  EXPECT_EQ(shaped(R"("heads": 4)"), "");
  says(shaped(R"("heads": 5)"), "shape.heads: found 5, expected a divisor of 64, or head_width");
  EXPECT_EQ(shaped(R"("heads": 5, "head_width": 8)"), "");
  says(shaped(R"("heads": 4, "kv_heads": 3)"), "shape.kv_heads: found 3, expected a divisor of 4");
  says(shaped(R"("heads": 4, "kv_heads": 8)"), "shape.kv_heads: found 8");
  says(shaped(R"("heads": 4, "layer": 3)"), "shape.layer: unknown key (did you mean 'layers'?)");
  says(message("llama", R"("shape": {"layers": 1000000000, "hidden": 64, "heads": 4})"),
       "shape.layers: found 1000000000");
  says(message("llama", R"("dtype": "bf16")"), "operators.shape: missing");
  says(message("llama3_8b", R"("shape": {})"),
       "operators.shape: has no meaning with 'llama3_8b', only with a family: llama, gpt2, bert");
  says(message("llama3_8b", R"("flash_attention": true)"), "only with BERT and GPT-2");
  says(message("vit_b_16", R"("sequence": 5)"), "only with transformers of text");
  says(message("vit_b_16", R"("image": 230)"),
       "operators.image: found 230, expected a multiple of the 16 of a patch");
  says(message("gpt2", R"("sequence": 2000, "shape": {"layers": 1, "hidden": 64, "heads": 1,
       "words": 10})"),
       "operators.sequence: found 2000");
  EXPECT_EQ(message("llama", R"("sequence": 1000000, "shape": {"layers": 1, "hidden": 1048576,
       "heads": 1, "inner": 4194304, "words": 10})"),
            "");
  says(refusal_of(scenario_with(R"({"name": "w", "batch": 1048576, "operators": {"architecture":
       "llama2_7b", "sequence": 1048576}})")),
       "more than 10^15 elements in one tensor");
}

TEST(ReadOperators, ComputeFusionOfAStrategy) {
  const auto strategy_of = [](const std::string& fusion, const std::string& more = "") {
    return scenario_with(linear_layer().dump(), kDevice,
                         R"({"name": "f", "compute_fusion": )" + fusion + more + "}");
  };
  // As in Paddle one switch is on unless it is turned off.
  EXPECT_TRUE(parsed_text(strategy_of("{}")).strategies[0].compute_fusion.fuse_bn_add_act_ops);
  EXPECT_FALSE(plan::any(
      parsed_text(strategy_of(R"({"fuse_bn_add_act_ops": false})")).strategies[0].compute_fusion));
  EXPECT_FALSE(
      plan::any(parsed_text(scenario_with(linear_layer().dump())).strategies[0].compute_fusion));
  EXPECT_TRUE(contains(
      refusal_of(strategy_of(R"({"fuse_all_optimizer_ops": true})", R"(, "update": "per_bucket")")),
      "compute_fusion.fuse_all_optimizer_ops: has no meaning with update 'per_bucket', only with "
      "'after_all': the one operator waits for every gradient"));
  EXPECT_TRUE(contains(refusal_of(strategy_of(R"({"fuse_bn_act_op": true})")),
                       "did you mean 'fuse_bn_act_ops'?"));
  Json plain = linear_layer();
  plain.erase("operators");
  const Scenario without = parsed_text(scenario_with(
      plain.dump(), kDevice, R"({"name": "f", "compute_fusion": {"fuse_gemm_epilogue": true}})"));
  ASSERT_EQ(without.strategies[0].notes.size(), 1u);
  EXPECT_EQ(without.strategies[0].notes[0],
            "compute_fusion changes nothing here: the workload has no operators");
}

}  // namespace
}  // namespace syncline::input
