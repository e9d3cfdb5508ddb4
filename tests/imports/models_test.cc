// Model files: the keys of real config.json files, and headers of .safetensors as they are written,
// damaged and made up.
#include <gtest/gtest.h>

#include <random>

#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "imports/scenario_of.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

class ModelFiles : public testing::Test {
 protected:
  std::string config(const std::string& text) const {
    test::write_text(scratch_.path("config.json"), text);
    return scratch_.path("config.json");
  }
  std::string safetensors(const std::string& header, std::uint64_t length,
                          const std::string& name = "model.safetensors") const {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
    test::write_text(scratch_.path(name), bytes + header);
    return scratch_.path(name);
  }
  std::string safetensors(const std::string& header) const {
    return safetensors(header, header.size());
  }

  // A config is refused for the value of one key; null: for its absence.
  struct Wrong {
    const char* config;
    const char* key;
    Json value;
    const char* words;
  };
  const test::Scratch& scratch() const { return scratch_; }
  void expect_refused(const std::vector<Wrong>& rows) const {
    for (const auto& [text, key, value, words] : rows) {
      Json json = Json::parse(text);
      json[key] = value;
      if (value.is_null()) json.erase(key);
      const std::string said = test::refusal_of_job(config(json.dump()));
      EXPECT_TRUE(contains(said, words)) << key << ": " << said;
    }
  }

 private:
  const test::Scratch scratch_;
};
using Config = ModelFiles;
using Safetensors = ModelFiles;
using TensorList = ModelFiles;

Workload workload_of(const Json& json) {
  Cluster cluster;
  Device& device = cluster.device;
  device.flops = 1e13;
  device.half_flops = 1e14;
  device.memory = 1e12;
  return input::read_workload(Reader(json, "w.json", ""), cluster);
}

std::int64_t parameters_of(const Json& json) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : workload_of(json).tensors) sum += tensor.elements;
  return sum;
}

constexpr const char* kLlama2 = R"json({
  "_name_or_path": "meta-llama/Llama-2-7b-hf", "architectures": ["LlamaForCausalLM"],
  "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 4096,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
  "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.31.0.dev0",
  "use_cache": true, "vocab_size": 32000})json";

constexpr const char* kQwen25 = R"json({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_size": 896,
  "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
  "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
  "num_key_value_heads": 2, "rope_theta": 1000000.0, "sliding_window": 32768,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "vocab_size": 151936})json";

constexpr const char* kQwen3 = R"json({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128,
  "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
  "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
  "num_key_value_heads": 8, "tie_word_embeddings": true, "vocab_size": 151936})json";

constexpr const char* kMistral = R"json({
  "architectures": ["MistralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": 4096,
  "tie_word_embeddings": false, "vocab_size": 32000})json";

constexpr const char* kGpt2 = R"json({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 1024, "n_inner": null, "vocab_size": 50257})json";

constexpr const char* kBert = R"json({
  "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "hidden_size": 768,
  "intermediate_size": 3072, "max_position_embeddings": 512, "model_type": "bert",
  "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2,
  "vocab_size": 30522})json";

// Labels fill more than the head by which a format is recognised.
std::string vit_config() {
  Json json = {{"architectures", {"ViTForImageClassification"}}, {"hidden_size", 768}};
  for (int i = 0; i < 1000; ++i) {
    json["id2label"][std::to_string(i)] = std::string(100, 'x');
  }
  json.update({{"image_size", 224},
               {"intermediate_size", 3072},
               {"model_type", "vit"},
               {"num_attention_heads", 12},
               {"num_hidden_layers", 12},
               {"patch_size", 16}});
  return json.dump();
}

TEST_F(Config, ModelsHaveTheirPublishedParameters) {
  const std::pair<std::string, std::int64_t> models[] = {
      {kLlama2, 6738415616}, {kQwen25, 494032768}, {kQwen3, 596049920},     {kMistral, 7241732096},
      {kGpt2, 124439808},    {kBert, 109514298},   {vit_config(), 86567656}};
  for (const auto& [text, count] : models) {
    const Observed observed = read_job({config(text)});
    EXPECT_EQ(observed.format, "config");
    ASSERT_TRUE(observed.workload);
    EXPECT_EQ(parameters_of(*observed.workload), count) << observed.name;
    EXPECT_GT(backward_time(workload_of(*observed.workload)), 0);
  }
  EXPECT_EQ(read_job({config(kLlama2)}).name, "Llama-2-7b-hf");
}

// Keys of ChatGLM2, with its published parameters; its first version has others.
TEST_F(Config, ChatGlm) {
  constexpr const char* kChatGlm2 =
      R"({"model_type": "chatglm", "add_bias_linear": false, "add_qkv_bias": true,
          "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128,
          "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads": 32,
          "num_layers": 28, "padded_vocab_size": 65024, "post_layer_norm": true, "rmsnorm": true,
          "seq_length": 32768, "tie_word_embeddings": false})";
  EXPECT_EQ(parameters_of(*read_job({config(kChatGlm2)}).workload), 6243584000);
  expect_refused({{kChatGlm2, "ffn_hidden_size", nullptr, "before its second version"},
                  {kChatGlm2, "add_bias_linear", true, "add_bias_linear"}});
}

// Positions that nobody trains, in a translator of 200 languages: its published parameters.
TEST_F(Config, M2m100) {
  constexpr const char* kNllb =
      R"({"model_type": "m2m_100", "architectures": ["M2M100ForConditionalGeneration"],
          "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096,
          "decoder_ffn_dim": 4096, "max_position_embeddings": 1024, "vocab_size": 256206})";
  EXPECT_EQ(parameters_of(*read_job({config(kNllb)}).workload), 615073792);
}

// ViT and GPT-2 with an attention to it in each layer: nlpconnect/vit-gpt2-image-captioning.
TEST_F(Config, VisionEncoderDecoder) {
  constexpr const char* kCaptions =
      R"({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
          "encoder": {"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072,
                      "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224,
                      "patch_size": 16, "qkv_bias": true},
          "decoder": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                      "n_positions": 1024, "vocab_size": 50257, "add_cross_attention": true}})";
  EXPECT_EQ(parameters_of(*read_job({config(kCaptions)}).workload), 239195904);
  Json other = Json::parse(kCaptions);
  other["decoder"]["model_type"] = "xglm";
  EXPECT_TRUE(
      contains(test::refusal_of_job(config(other.dump())), "bart, mbart, trocr and gpt2 are"));
}

// By the config.json beside each checkpoint; their sizes are those of the rows by name.
TEST_F(Config, MixturesOfExperts) {
  constexpr const char* kMixtral =
      R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
          "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
          "max_position_embeddings": 32768, "tie_word_embeddings": false})";
  constexpr const char* kQwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
          "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
          "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
          "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
          "max_position_embeddings": 40960, "attention_bias": false})";
  constexpr const char* kDeepSeek =
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
          "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
          "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
          "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
          "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
          "max_position_embeddings": 163840})";
  Json kimi = Json::parse(kDeepSeek);
  kimi["model_type"] = "kimi_k2";
  EXPECT_EQ(parameters_of(*read_job({config(kimi.dump())}).workload),
            parameters_of(*read_job({config(kDeepSeek)}).workload));
  for (const auto& [text, row] :
       {std::pair{kMixtral, "mixtral_8x7b"}, std::pair{kQwen, "qwen3_30b_a3b"},
        std::pair{kDeepSeek, "deepseek_v3"}}) {
    const Observed observed = read_job({config(text)});
    const Json named = {{"name", row}, {"operators", {{"architecture", row}}}};
    EXPECT_EQ(parameters_of(*observed.workload), parameters_of(named)) << row;
  }
  expect_refused({{kQwen, "decoder_sparse_step", 2, "only 1 is known"},
                  {kQwen, "mlp_only_layers", Json::array({3}), "only none is known"},
                  {kDeepSeek, "v_head_dim", 64, "only that of qk_nope_head_dim, 128"},
                  {kDeepSeek, "n_routed_experts", 1 << 20, "found 1048576"}});
}

// Keys of DeepSeek-V2-Lite, with its published parameters; a head's width that a Qwen file leaves
// out is its share of the hidden one; Falcon Mamba gives its inner width itself.
TEST_F(Config, KeysThatAFileLeavesOut) {
  constexpr const char* kLite =
      R"({"model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
          "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
          "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
          "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
          "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": null,
          "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
          "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840})";
  constexpr const char* kQwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "moe_intermediate_size": 32,
          "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
          "vocab_size": 1000})";
  constexpr const char* kFalcon =
      R"({"model_type": "falcon_mamba", "hidden_size": 64, "num_hidden_layers": 2,
          "vocab_size": 1000, "expand": 16, "intermediate_size": 100, "state_size": 16,
          "time_step_rank": 4, "tie_word_embeddings": false})";
  for (const auto& [text, parameters] :
       {std::pair{kLite, std::int64_t{15706484224}}, std::pair{kQwen, std::int64_t{202624}},
        std::pair{kFalcon, std::int64_t{179192}}}) {
    EXPECT_EQ(parameters_of(*read_job({config(text)}).workload), parameters) << text;
  }
  expect_refused({{kLite, "num_experts_per_tok", nullptr, "num_experts_per_tok: missing"}});
}

// MistralModel has no language head of 32000 x 4096.
TEST_F(Config, HeadsAreThereOrNot) {
  Json headless = Json::parse(kMistral);
  headless["architectures"] = {"MistralModel"};
  const Observed model = read_job({config(headless.dump())});
  EXPECT_EQ(parameters_of(*model.workload), 7241732096 - 32000 * 4096);
  EXPECT_TRUE(test::any_contains(model.warnings, "MistralModel has no language head"));
  const Observed whole = read_job({config(kMistral)});
  EXPECT_FALSE(test::any_contains(whole.warnings, "language head"));
  EXPECT_FALSE(test::any_contains(whole.warnings, "quantization_config"));
  Json quantised = Json::parse(kMistral);
  quantised["quantization_config"] = {{"load_in_4bit", true}};
  EXPECT_TRUE(test::any_contains(read_job({config(quantised.dump())}).warnings,
                                 "quantization_config is not read"));
}

constexpr const char* kBart = R"json({
  "model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
  "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "max_position_embeddings": 1024,
  "vocab_size": 50265})json";

constexpr const char* kT5 = R"json({
  "model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8, "num_layers": 6,
  "vocab_size": 32128, "tie_word_embeddings": true})json";

constexpr const char* kWhisper = R"json({
  "model_type": "whisper", "d_model": 384, "encoder_layers": 4, "decoder_layers": 4,
  "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "num_mel_bins": 80,
  "max_target_positions": 448, "vocab_size": 51865})json";

// Each class as transformers 4.57 builds it of these sizes; one that is not known is refused.
TEST_F(Config, AClassTellsTheHead) {
  constexpr const char* kClip = R"({"model_type": "clip"})";
  constexpr const char* kSiglip = R"({"model_type": "siglip"})";
  constexpr const char* kDeit =
      R"({"model_type": "deit", "hidden_size": 768, "num_hidden_layers": 12,
          "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224,
          "patch_size": 16})";
  const struct {
    const char* config;
    const char* name;
    std::int64_t parameters;  // 0: refused
  } rows[] = {{kBert, "BertModel", 109482240},
              {kBert, "BertForMaskedLM", 109514298},
              {kBert, "BertLMHeadModel", 109514298},
              {kBert, "BertForPreTraining", 110106428},
              {kBert, "BertForSequenceClassification", 109483778},
              {kBert, "BertForTokenClassification", 108893186},
              {kBert, "BertForQuestionAnswering", 108893186},
              {kBert, "BertForMultipleChoice", 109483009},
              {kBert, "BertForNextSentencePrediction", 109483778},
              {kBert, "BertForRetrieval", 0},
              {kBart, "BartForConditionalGeneration", 406291456},
              {kBart, "BartForCausalLM", 254084096},
              {kBart, "BartForSequenceClassification", 407344131},
              {kBart, "BartForQuestionAnswering", 406293506},
              {kBart, "BartForTokenClassification", 0},
              {kT5, "T5ForConditionalGeneration", 60506624},
              {kT5, "T5WithLMHeadModel", 60506624},
              {kT5, "T5EncoderModel", 35330816},
              {kWhisper, "WhisperForCausalLM", 29552256},
              {kWhisper, "WhisperForAudioClassification", 7731458},
              {kClip, "CLIPForImageClassification", 87457538},
              {kClip, "CLIPTextModel", 0},
              {kSiglip, "SiglipForImageClassification", 92885762},
              {kSiglip, "SiglipVisionModel", 0},
              {kDeit, "DeiTForImageClassification", 85801730},
              {kDeit, "DeiTForImageClassificationWithTeacher", 85803268},
              {kGpt2, "GPT2ForSequenceClassification", 124441344},
              {kGpt2, "GPT2ForTokenClassification", 124441346},
              {kGpt2, "GPT2DoubleHeadsModel", 0},
              {kMistral, "MistralForSequenceClassification", 7110668288},
              {kMistral, "MistralForQuestionAnswering", 7110668290},
              {kMistral, "MistralForRewardModel", 0}};
  EXPECT_EQ(parameters_of(*read_job({config(kClip)}).workload), 151277313);  // without a class
  for (const auto& [text, name, parameters] : rows) {
    Json json = Json::parse(text);
    json["architectures"] = {name};
    const std::string file = config(json.dump());
    if (parameters > 0) {
      EXPECT_EQ(parameters_of(*read_job({file}).workload), parameters) << name;
      continue;
    }
    const std::string said = test::refusal_of_job(file);
    EXPECT_TRUE(contains(said, "architectures: the head of " + std::string(name) + " is not"))
        << said;
    EXPECT_TRUE(contains(said, "`syncline init --tensors FILE`")) << said;
  }
}

// As Python's json writes it, of Mamba 2 for one.
TEST_F(Config, NumbersThatJsonHasNotAreNone) {
  std::string text = kMistral;
  text.insert(1,
              R"("time_step_limit": [0.0, Infinity], "of": ["NaN \" Infinity", -Infinity, NaN],)");
  EXPECT_EQ(parameters_of(*read_job({config(text)}).workload), 7241732096);
}

// Its class tells a model whose model_type is its owner's word.
TEST_F(Config, TheClassTellsTheFamily) {
  Json json = Json::parse(kMistral);
  json["model_type"] = "ours";
  EXPECT_EQ(parameters_of(*read_job({config(json.dump())}).workload), 7241732096);
  json["architectures"] = {"OursForCausalLM"};
  EXPECT_TRUE(contains(test::refusal_of_job(config(json.dump())), "model_type: 'ours'"));
}

// Sizes that transformers' classes have unless a file says otherwise: LLaVA 1.5's file leaves most
// of its text model's out. Its card: 7.06 billion.
TEST_F(Config, PartsHaveTheUsualSizes) {
  constexpr const char* kLlava = R"({
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
    "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"],
      "max_position_embeddings": 4096, "model_type": "llama", "rms_norm_eps": 1e-05,
      "torch_dtype": "float16", "vocab_size": 32064},
    "tie_word_embeddings": false, "torch_dtype": "float16",
    "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
      "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
      "patch_size": 14, "projection_dim": 768, "vocab_size": 32000}, "vocab_size": 32064})";
  const Observed observed = read_job({config(kLlava)});
  EXPECT_EQ(parameters_of(*observed.workload), 7063427072);
  EXPECT_EQ((*observed.workload)["tensors"][0]["dtype"], "fp16");
}

TEST_F(Config, UnknownModelsAreRefusedByName) {
  Json experts = Json::parse(kMistral);
  experts["num_experts"] = 64;
  const std::string mixture = experts.dump();
  Json classless = Json::parse(kLlama2);
  classless["architectures"] = {"OursForCausalLM"};
  const std::string plain = classless.dump();
  expect_refused(
      {{plain.c_str(), "model_type", "ourglm", "model_type: 'ourglm' is not known"},
       {plain.c_str(), "model_type", "ourglm",
        "`syncline init --tensors FILE` takes what torch prints"},
       {kLlama2, "model_type", "mixtral", "num_local_experts: missing"},
       {mixture.c_str(), "model_type", "granite", "a mixture of experts (granite), which is not"},
       {kLlama2, "hidden_size", nullptr, "hidden_size: missing"},
       {kLlama2, "hidden_size", "big", "hidden_size: found 'big'"},
       {kLlama2, "num_hidden_layers", 0, "num_hidden_layers"},
       {kLlama2, "num_hidden_layers", 1e30, "num_hidden_layers"},
       {kLlama2, "attention_bias", true, "attention_bias: found true"},
       {plain.c_str(), "model_type", nullptr, "model_type: missing, so no family tells"}});
  const std::string sizes = R"({"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100})";
  EXPECT_TRUE(contains(test::refusal_of_job(config(sizes)), "model_type: missing, so no family"));
}

// What the scenario refuses, the config's reader has refused before, in the file's own words.
TEST_F(Config, InvalidShapesAreRefusedInTheFilesOwnWords) {
  constexpr const char* kVit =
      R"({"model_type": "vit", "hidden_size": 1048576, "num_hidden_layers": 2,
          "num_attention_heads": 16384, "intermediate_size": 64, "image_size": 4096})";
  expect_refused(
      {{kLlama2, "num_key_value_heads", 5, "num_key_value_heads: found 5, expected a divisor"},
       {kLlama2, "num_key_value_heads", 64, "expected a divisor of 32 heads"},
       {kLlama2, "num_attention_heads", 33, "num_attention_heads: found 33, expected a div"},
       {kLlama2, "num_hidden_layers", 2049, "num_hidden_layers: found 2049"},
       {kLlama2, "hidden_size", 1 << 21, "hidden_size: found 2097152"},
       {kLlama2, "intermediate_size", 1 << 23, "intermediate_size: found 8388608"},
       {kLlama2, "head_dim", 1 << 17, "head_dim: found 131072"},
       {kVit, "patch_size", 15, "patch_size: found 15, expected a divisor of 4096 pixels"},
       {kVit, "image_size", 16, "image_size: found 16"},
       {kVit, "patch_size", 1, "patch_size: found 1 for images of 4096: a tensor of more"}});
}

TEST_F(Config, BecomesAScenarioOfAnyBatch) {
  const Imported imported = scenario_of(read_job({config(kGpt2)}), {.cluster = {}, .batch = 4});
  EXPECT_EQ(imported.scenario["workload"]["batch"], 4);
  EXPECT_EQ(imported.scenario["workload"]["operators"]["architecture"], "gpt2");
  EXPECT_EQ(imported.scenario["cluster"]["node"], "dgx-h100");
  ASSERT_FALSE(imported.assumed.empty());
  EXPECT_TRUE(contains(imported.assumed.front(), "a model file tells no machine"));
}

Json saved(const char* dtype, const std::vector<std::int64_t>& shape, std::int64_t& at) {
  std::int64_t bytes = std::string(dtype) == "F32" ? 4 : std::string(dtype) == "I64" ? 8 : 2;
  for (const auto extent : shape) bytes *= extent;
  const Json json = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
  at += bytes;
  return json;
}

Json small_gpt2() {
  std::int64_t at = 0;
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  for (const int layer : {0, 1, 10, 2}) {
    const std::string h = "h." + std::to_string(layer) + ".";
    header[h + "attn.bias"] = saved("F32", {1, 1, 16, 16}, at);  // the mask
    header[h + "attn.c_attn.bias"] = saved("BF16", {24}, at);
    header[h + "attn.c_attn.weight"] = saved("BF16", {8, 24}, at);
    header[h + "ln_1.weight"] = saved("F32", {8}, at);
    header[h + "mlp.c_fc.weight"] = saved("BF16", {8, 32}, at);
  }
  header["ln_f.weight"] = saved("F32", {8}, at);
  header["position_ids"] = saved("I64", {1, 16}, at);
  header["wpe.weight"] = saved("BF16", {16, 8}, at);
  header["wte.weight"] = saved("BF16", {100, 8}, at);
  return header;
}

TEST_F(Safetensors, TensorsAreGradientsInBackwardOrder) {
  const Observed observed = read_job({safetensors(small_gpt2().dump())});
  EXPECT_EQ(observed.format, "safetensors");
  const Workload workload = workload_of(*observed.workload);
  ASSERT_EQ(workload.tensors.size(), 4u * 4 + 3);
  const char* first[] = {"ln_f.weight",           "h.10.mlp.c_fc.weight",
                         "h.10.attn.c_attn.bias", "h.10.attn.c_attn.weight",
                         "h.10.ln_1.weight",      "h.2.mlp.c_fc.weight"};
  for (std::size_t i = 0; i < std::size(first); ++i) EXPECT_EQ(workload.tensors[i].name, first[i]);
  EXPECT_EQ(workload.tensors.back().name, "wte.weight");
  EXPECT_EQ(workload.tensors.front().dtype, DType::kFp32);
  EXPECT_EQ(workload.tensors.back().dtype, DType::kBf16);
}

// 2 FLOPs a weight and token in every product; the head shares the word embedding.
TEST_F(Safetensors, FlopsAreThoseOfTheProducts) {
  const Observed observed = read_job({safetensors(small_gpt2().dump())});
  const auto flops_of = [](const Json& workload) {
    double flops = 0;
    for (const Json& tensor : workload["tensors"]) {
      flops += tensor["forward_flops"].get<double>();
      EXPECT_EQ(tensor["backward_flops"].get<double>(), 2 * tensor["forward_flops"].get<double>());
    }
    return flops;
  };
  const double flops = flops_of(*observed.workload);
  EXPECT_DOUBLE_EQ(flops, 2.0 * 1024 * (4 * (8 * 24 + 8 * 32) + 100 * 8));
  EXPECT_DOUBLE_EQ(
      flops_of(scenario_of(observed, {.cluster = {}, .batch = 3}).scenario["workload"]), 3 * flops);
}

TEST_F(Safetensors, PartsOfOneModelAreReadTogether) {
  Json first = Json::object(), second = Json::object();
  const Json whole = small_gpt2();
  for (const auto& [name, tensor] : whole.items()) {
    (name < "h.10" ? first : second)[name] = tensor;
  }
  const std::string one =
      safetensors(first.dump(), first.dump().size(), "model-00001-of-00002.safetensors");
  const std::string two =
      safetensors(second.dump(), second.dump().size(), "model-00002-of-00002.safetensors");
  EXPECT_EQ((*read_job({one, two}).workload)["tensors"].size(), 4u * 4 + 3);
  EXPECT_THROW(read_job({one, one}), InputError);
}

TEST_F(Safetensors, HostileHeadersAreRefusedInOneLine) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{99'999'999}}) {
    EXPECT_TRUE(contains(test::refusal_of_job(safetensors("{}", length)), "damaged, or cut off"));
  }
  const std::string tensor = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::pair<std::string, const char*> headers[] = {
      {"{}", "holds no tensor"},
      {"{" + std::string(200, '['), "not valid JSON"},
      {R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", "64 levels"},
      {R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", "given twice"},
      {R"({"a":7})", "a: found 7"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "shape"},
      {R"({"a":{"dtype":"F32","shape":[1099511627776,8],"data_offsets":[0,8]}})", "more than 2^40"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
       "span 8 bytes, its shape needs 12"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "data_offsets"},
      {R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})", "quantised"}};
  for (const auto& [header, reason] : headers) {
    const std::string said = test::refusal_of_job(safetensors(header));
    EXPECT_TRUE(contains(said, reason)) << said;
  }
}

// Whatever the bytes are: read, or refused.
TEST_F(Safetensors, DamagedFilesNeverBreakTheReader) {
  const std::string whole = small_gpt2().dump();
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string header = whole;
    for (int n = 0; n < 3; ++n) header[random() % header.size()] = static_cast<char>(random());
    if (i % 3 == 0) header.resize(random() % header.size() + 1);
    const std::string path =
        safetensors(header, i % 2 == 0 ? header.size() : whole.size() + random() % 3);
    try {
      const Observed observed = read_job({path});
      EXPECT_FALSE((*observed.workload)["tensors"].empty());
    } catch (const InputError&) {
    }
  }
}

// A strict weak order, which sorting needs: over names of every kind of part.
TEST(LayerOrder, IsAnOrder) {
  const std::vector<std::string> parts{"2",    "10",   "1a", "007",  "7", "weight",
                                       "bias", "norm", "h",  "attn", "",  "layers"};
  std::mt19937 random(3);
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) {
    std::string name = parts[random() % parts.size()];
    for (auto n = random() % 3; n > 0; --n) name += "." + parts[random() % parts.size()];
    names.push_back(name);
  }
  for (const auto& a : names) {
    EXPECT_FALSE(models::precedes(a, a));
    for (const auto& b : names) {
      EXPECT_FALSE(models::precedes(a, b) && models::precedes(b, a)) << a << " " << b;
      for (const auto& c : names) {
        if (models::precedes(a, b) && models::precedes(b, c)) {
          EXPECT_TRUE(models::precedes(a, c)) << a << " " << b << " " << c;
        }
      }
    }
  }
}

TEST(LayerOrder, FollowsTheModel) {
  const std::vector<std::string> llama{"model.embed_tokens.weight",
                                       "model.layers.2.input_layernorm.weight",
                                       "model.layers.2.self_attn.q_proj.weight",
                                       "model.layers.2.self_attn.k_proj.weight",
                                       "model.layers.2.self_attn.v_proj.weight",
                                       "model.layers.2.self_attn.o_proj.weight",
                                       "model.layers.2.post_attention_layernorm.weight",
                                       "model.layers.2.mlp.gate_proj.weight",
                                       "model.layers.2.mlp.up_proj.weight",
                                       "model.layers.2.mlp.down_proj.weight",
                                       "model.layers.10.input_layernorm.weight",
                                       "model.norm.weight",
                                       "lm_head.weight"};
  for (std::size_t i = 0; i + 1 < llama.size(); ++i) {
    if (i + 2 == llama.size()) continue;  // the head stands beside the model, not in it
    EXPECT_TRUE(models::precedes(llama[i], llama[i + 1])) << llama[i];
  }
  EXPECT_TRUE(models::precedes("model.norm.weight", "lm_head.weight"));
  EXPECT_TRUE(models::precedes("conv1.weight", "layer1.0.conv1.weight"));
  EXPECT_TRUE(models::precedes("layer4.2.bn3.bias", "fc.weight"));
}

double flops_of(const Json& workload, const char* key) {
  double sum = 0;
  for (const Json& tensor : workload["tensors"]) sum += tensor[key].get<double>();
  return sum;
}

// The same parameters by lines, by JSON and by a header are the same gradients.
TEST_F(TensorList, IsReadAsTorchPrintsIt) {
  const std::string lines =
      "Loading checkpoint shards: 100%\n"
      "model.embed_tokens.weight (100, 8) torch.bfloat16 True\n"
      "model.layers.0.mlp.up_proj.weight torch.Size([32, 8]) torch.bfloat16\n"
      "model.norm.weight (8,) torch.float32 True\n"
      "lm_head.weight (100, 8) torch.bfloat16 True\n";
  const std::string json =
      R"([["model.embed_tokens.weight", [100, 8], "torch.bfloat16", true],
          ["model.layers.0.mlp.up_proj.weight", [32, 8], "torch.bfloat16", true],
          ["model.norm.weight", [8], "torch.float32"],
          ["lm_head.weight", [100, 8], "BF16"]])";
  test::write_text(scratch().path("list.txt"), lines);
  test::write_text(scratch().path("list.json"), json);
  const Observed by_lines = read_job({scratch().path("list.txt")});
  const Observed by_json = read_job({scratch().path("list.json")});
  EXPECT_EQ(by_lines.format, "tensors");
  EXPECT_EQ((*by_lines.workload)["tensors"], (*by_json.workload)["tensors"]);
  const Workload workload = workload_of(*by_lines.workload);
  ASSERT_EQ(workload.tensors.size(), 4u);
  EXPECT_EQ(workload.tensors.front().name, "lm_head.weight");
  EXPECT_EQ(workload.tensors[1].dtype, DType::kFp32);
  EXPECT_DOUBLE_EQ(flops_of(*by_lines.workload, "forward_flops"), 2.0 * 1024 * (32 * 8 + 100 * 8));
  EXPECT_TRUE(test::any_contains(by_lines.warnings, "left out, as no parameter: 1 line, 'Loading"));
}

// Calls look like a name and a shape.
TEST_F(TensorList, AProgramIsNoList) {
  const std::string file = scratch().path("train.py");
  test::write_text(file,
                   "import torch\ntorch.manual_seed(0); torch.set_num_threads(1)\n"
                   "model = torch.nn.Linear(8, 8)\nmodel(torch.ones(8)).sum().backward()\n");
  const std::string refused = test::input_error([&] { read_job({file}); });
  EXPECT_TRUE(test::contains(refused, "train.py")) << refused;
  test::write_text(file, "a.weight (8, 8)\nimport torch\nfrom torch import nn\n");
  EXPECT_TRUE(test::contains(test::input_error([&] { read_job({file}); }),
                             "more lines without a parameter than with one: 2 lines, the first "
                             "'import torch'"));
}

// Residual networks of transformers and timm, by the parameters that these make (a head of 10
// classes in the first).
TEST_F(Config, NetworksOfImages) {
  const auto parameters = [&](const std::string& text) {
    const Observed observed = read_job({config(text)});
    std::int64_t elements = 0;
    for (const Tensor& tensor : workload_of(*observed.workload).tensors) {
      elements += tensor.elements;
    }
    return elements;
  };
  const std::string resnet = R"({"model_type": "resnet", "embedding_size": 64,
    "architectures": ["ResNetForImageClassification"], "downsample_in_first_stage": false,)";
  EXPECT_EQ(parameters(resnet + R"("depths": [3, 4, 6, 3], "layer_type": "bottleneck",
    "hidden_sizes": [256, 512, 1024, 2048], "num_labels": 10})"),
            23528522);
  EXPECT_EQ(parameters(resnet + R"("depths": [2, 2, 2, 2], "layer_type": "basic",
    "hidden_sizes": [64, 128, 256, 512], "num_labels": 1000})"),
            11689512);
  EXPECT_EQ(parameters(R"({"architecture": "resnet50", "num_classes": 1000})"), 25557032);
  EXPECT_EQ(parameters(R"({"architecture": "vit_base_patch16_224", "num_classes": 1000})"),
            86567656);
  const char* plain = R"({"model_type": "resnet", "depths": [3, 4, 6, 3]})";
  expect_refused({{plain, "depths", Json::array({1, 1, 1, 1}), "a ResNet of other sizes"},
                  {plain, "downsample_in_bottleneck", true, "downsample_in_bottleneck"},
                  {R"({"architecture": "resnet50", "num_classes": 10})", "architecture",
                   "convnext_tiny", "'convnext_tiny' of timm is not known"}});
}

// Adapters alone travel; what is frozen is multiplied by in both passes, but for what nothing that
// is trained stands before.
TEST_F(TensorList, FrozenParametersHaveNoGradient) {
  test::write_text(scratch().path("lora.txt"),
                   "a.weight (4, 2) torch.bfloat16 False\n"
                   "b.weight (4, 4) torch.uint8 False\n"
                   "b.lora_A.weight (1, 4) torch.float32 True\n"
                   "c.weight (8, 4) torch.bfloat16 False\n");
  const Observed observed = read_job({scratch().path("lora.txt")});
  const Json& tensors = (*observed.workload)["tensors"];
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[1]["name"], "b.lora_A.weight");
  EXPECT_FALSE(tensors[1].contains("frozen"));
  EXPECT_DOUBLE_EQ(flops_of(*observed.workload, "forward_flops"), 2048.0 * (8 + 16 + 4 + 32));
  EXPECT_DOUBLE_EQ(flops_of(*observed.workload, "backward_flops"), 2048.0 * (2 * 4 + 32));
  EXPECT_TRUE(test::any_contains(observed.warnings, "1 parameters are trained, 3 frozen"));
  // Integers take a byte each.
  const Workload workload = workload_of(*observed.workload);
  EXPECT_EQ(workload.tensors.back().bytes(), 8 * 2);
  EXPECT_EQ(workload.tensors[2].bytes(), 16);
  EXPECT_TRUE(workload.tensors[2].frozen);
  EXPECT_EQ(gradient_bytes(workload), 4 * 4);
  EXPECT_TRUE(test::any_contains(observed.warnings, "1 of them are integers"));
}

TEST_F(TensorList, OtherFilesAreRefused) {
  const auto refused = [&](const std::string& text) {
    test::write_text(scratch().path("list.txt"), text);
    return test::refusal_of_job(scratch().path("list.txt"));
  };
  const std::pair<const char*, const char*> rows[] = {
      {"a.weight (4, 2) torch.float32 False\n", "no parameter that is trained"},
      {"a.weight (4, 2) torch.float32\na.weight (4, 2) torch.float32\n", "listed twice"},
      {"a.weight (1099511627776, 2) torch.float32\n", "more than 2^40 elements"},
      {"[[\"a\", [4]], [\"b\"]]", "[1]: expected [name, shape, dtype, requires_grad]"},
      {"[[\"a\", [-4]]]", "[0][1]"},
      {"nothing (of the kind)\n", "not a file that a job writes"}};
  for (const auto& [text, words] : rows) {
    EXPECT_TRUE(contains(refused(text), words)) << refused(text);
  }
  std::string deep = "a (";
  for (int i = 0; i < 100; ++i) deep += "1,";
  EXPECT_TRUE(contains(refused(deep + ") torch.float32\n"), "not a file that a job writes"));
}

}  // namespace
}  // namespace syncline::job
