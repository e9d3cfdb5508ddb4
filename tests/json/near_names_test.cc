// Names that fit: one row a mistake, with all that is suggested for it.
#include "formats/json/reader.h"

#include <gtest/gtest.h>

namespace syncline {
namespace {

using Names = std::vector<std::string>;

const Names kDevices{"v100-sxm",      "t4",       "a100-pcie-80gb", "a100-sxm-80gb", "a10",
                     "a100-sxm-40gb", "rtx-4090", "h100-pcie",      "h100-sxm"};
const Names kNodes{"dgx-1", "dgx-h100", "p4d.24xlarge", "p4de.24xlarge", "nd96isr_h100_v5"};
const Names kModels{"resnet50", "llama2_7b", "llama3_8b", "llama3.2_1b", "gpt2_small"};
const Names kKeys{"bandwidth_gbps", "latency_us", "nics", "backward_us", "size_mb"};
const Names kDialects{"paddle", "pytorch", "horovod", "deepspeed", "hf_trainer", "fsdp"};
const Names kFormats{"fp32", "fp16", "bf16", "fp64"};

TEST(NearNames, FitByCasePrefixFamilyAndLetters) {
  struct Row {
    const char* word;
    Names names;
    Names near;
  };
  const Row rows[] = {
      // Case, punctuation, other programs' words.
      {"llama-3-8b", kModels, {"llama3_8b"}},
      {"Llama-3-8B", kModels, {"llama3_8b"}},
      {"RTX 4090", kDevices, {"rtx-4090"}},
      {"H100-SXM", kDevices, {"h100-sxm"}},
      {"float16", kFormats, {"fp16"}},
      {"torch.bfloat16", kFormats, {"bf16"}},
      {"ddp", kDialects, {"pytorch"}},
      {"FSDP2", kDialects, {"fsdp"}},
      {"ZeRO", kDialects, {"deepspeed"}},
      // Families: never another device's name.
      {"a100", kDevices, {"a100-pcie-80gb", "a100-sxm-80gb", "a100-sxm-40gb"}},
      {"A100-80GB", kDevices, {"a100-pcie-80gb", "a100-sxm-80gb"}},
      {"H100", kNodes, {"dgx-h100", "nd96isr_h100_v5"}},
      {"p4d", kNodes, {"p4d.24xlarge"}},
      {"memory_gbytes_per_se", {"memory_gbytes", "memory_gbytes_per_s"}, {"memory_gbytes_per_s"}},
      {"p4", kNodes, {"p4d.24xlarge", "p4de.24xlarge"}},
      {"dgx-h100-80gb", kNodes, {"dgx-h100"}},
      {"llama3", kModels, {"llama3_8b", "llama3.2_1b"}},
      {"bandwidth", kKeys, {"bandwidth_gbps"}},
      {"latency", kKeys, {"latency_us"}},
      // Letters.
      {"bandwith_gbps", kKeys, {"bandwidth_gbps"}},
      {"nic", kKeys, {"nics"}},
      {"horovd", kDialects, {"horovod"}},
      {"llama-3.1-8B", kModels, {"llama3_8b"}},
      {"latency_uss", kKeys, {"latency_us"}},
      {"fp15", kFormats, {"fp16"}},
      // What is mostly a number is another thing with another number.
      {"a30", kDevices, {}},
      {"rtx-4080", kDevices, {}},
      // Nothing.
      {"oversubscription", kKeys, {}},
      {"--gpus", {"--out", "--set"}, {}},
      {"fp8", {"int8x", "bf16"}, {}},
      {"-o", {"-h", "-v"}, {}},
      {"", kKeys, {}},
  };
  for (const Row& row : rows) EXPECT_EQ(near_names(row.word, row.names), row.near) << row.word;
}

TEST(NearNames, OnlyTheSameNameIsCertain) {
  EXPECT_EQ(same_name("Llama3-8B", kModels), "llama3_8b");
  EXPECT_EQ(same_name("bfloat16", kFormats), "bf16");
  EXPECT_EQ(same_name("llama3", kModels), std::nullopt);
  EXPECT_EQ(same_name("llama3_8", kModels), std::nullopt);
  EXPECT_EQ(same_name("fsdp1", kDialects),
            std::nullopt);  // its configuration is of another version
  EXPECT_EQ(same_name("a-b", {"a_b", "a.b"}), std::nullopt);
}

TEST(NearNames, AQuestionNamesThoseThatFitAndTheFactorOfAnotherUnit) {
  EXPECT_EQ(did_you_mean("backward_ms", kKeys), " (did you mean 'backward_us'? 1 ms is 1000 us)");
  EXPECT_EQ(did_you_mean("bandwidth_mbps", kKeys),
            " (did you mean 'bandwidth_gbps'? 1 mbps is 0.001 gbps)");
  EXPECT_EQ(did_you_mean("bandwidth_gbytes_per_s", kKeys),
            " (did you mean 'bandwidth_gbps'? 1 gbytes_per_s is 8 gbps)");
  EXPECT_EQ(did_you_mean("A100-80GB", kDevices),
            " (did you mean one of 'a100-pcie-80gb', 'a100-sxm-80gb'?)");
  EXPECT_EQ(did_you_mean("zzzzzz", kKeys), "");
  const Names kin{"ab-1", "ab-2", "ab-3", "ab-4", "ab-5", "ab-6", "ab-7", "ab-8"};
  EXPECT_TRUE(did_you_mean("ab", kin).ends_with("'ab-6' and 2 more?)")) << did_you_mean("ab", kin);
}

}  // namespace
}  // namespace syncline
