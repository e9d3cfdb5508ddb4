// Decoders that no architecture of the catalogue lays down.
#include <algorithm>

#include "catalogue/architectures/architecture.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

std::int64_t heads_in(Reader& reader, const char* key = "num_attention_heads") {
  return size(reader, key, operators::kMaxHeads);
}

// Features that differ between decoders.
struct Plan {
  std::int64_t layers, hidden, words;
  std::int64_t inner = 4 * hidden;
  std::int64_t queries = hidden;  // columns of all heads
  std::int64_t keys = hidden;     // of those of keys, as of values
  std::int64_t positions = 0;     // rows of their table
  int norms = 2;                  // of a layer
  bool norm = true;               // norms have weights
  bool norm_bias = true;
  bool embedding_norm = false;
  bool merged = false;  // one product for query, key and value
  bool bias = true;     // of query, key and value
  bool out_bias = true;
  bool inner_bias = true;
  bool gated = false;
  bool final_norm = true;
  bool tied = true;
  bool head_bias = false;
  std::int64_t embedded = hidden;  // columns of the embedding
  // Norms of queries and keys; no columns: none.
  std::vector<std::int64_t> query_norm{}, key_norm{};
};

void lay_attention(Laid& laid, const Plan& plan, const std::string& at) {
  const std::string self = at + "self_attn.";
  if (plan.merged) {
    laid.linear(self + "qkv_proj", plan.hidden, plan.queries + 2 * plan.keys, plan.bias);
  } else {
    laid.linear(self + "q_proj", plan.hidden, plan.queries, plan.bias);
    laid.linear(self + "k_proj", plan.hidden, plan.keys, plan.bias);
    laid.linear(self + "v_proj", plan.hidden, plan.keys, plan.bias);
  }
  if (!plan.query_norm.empty()) laid.add(self + "q_norm.weight", plan.query_norm);
  if (!plan.key_norm.empty()) laid.add(self + "k_norm.weight", plan.key_norm);
  laid.linear(self + "o_proj", plan.queries, plan.hidden, plan.out_bias);
}

// Lays the first half of a layer, with the norm of the second.
void lay_first_half(Laid& laid, const Plan& plan, const std::string& at) {
  if (plan.norm) laid.norm(at + "input_layernorm", plan.hidden, plan.norm_bias);
  lay_attention(laid, plan, at);
  if (plan.norm && plan.norms > 1) {
    laid.norm(at + "post_attention_layernorm", plan.hidden, plan.norm_bias);
  }
}

void lay_second_half(Laid& laid, const Plan& plan, const std::string& at) {
  const std::string mlp = at + "mlp.";
  if (plan.gated) laid.linear(mlp + "gate_proj", plan.hidden, plan.inner, plan.inner_bias);
  laid.linear(mlp + "up_proj", plan.hidden, plan.inner, plan.inner_bias);
  laid.linear(mlp + "down_proj", plan.inner, plan.hidden, plan.inner_bias);
}

void lay_layer(Laid& laid, const Plan& plan, const std::string& at) {
  lay_first_half(laid, plan, at);
  lay_second_half(laid, plan, at);
}

void lay(Laid& laid, const Plan& plan) {
  laid.table("model.embed_tokens", plan.words, plan.embedded);
  if (plan.positions > 0) laid.table("model.embed_positions", plan.positions, plan.hidden);
  if (plan.embedding_norm) laid.norm("model.embed_norm", plan.hidden, true);
  const bool other = plan.embedded != plan.hidden;
  if (other) laid.linear("model.project_in", plan.embedded, plan.hidden, false);
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    lay_layer(laid, plan, "model.layers." + std::to_string(i) + ".");
  }
  if (plan.norm && plan.final_norm) laid.norm("model.norm", plan.hidden, plan.norm_bias);
  if (other) laid.linear("model.project_out", plan.hidden, plan.embedded, false);
  laid.head("lm_head", plan.words, plan.embedded, plan.tied, plan.head_bias);
}

// Reads the keys that most decoders share.
Plan usual(Reader& reader) {
  return {.layers = layers(reader, "num_hidden_layers"),
          .hidden = width(reader, "hidden_size"),
          .words = width(reader, "vocab_size"),
          .inner = width_or(reader, "intermediate_size", 4 * width(reader, "hidden_size"))};
}

// Reads GPT-2's names of these keys.
Plan gpt2_keys(Reader& reader) {
  const std::int64_t hidden = width(reader, "n_embd");
  return {.layers = layers(reader, "n_layer"),
          .hidden = hidden,
          .words = width(reader, "vocab_size"),
          .inner = width_or(reader, "n_inner", 4 * hidden)};
}

// Sets the columns of queries and keys from the numbers of their heads and a head's width.
void group_heads(Reader& reader, Plan& plan, const char* key = "num_key_value_heads") {
  const std::int64_t heads = heads_in(reader);
  const std::int64_t wide = width_or(reader, "head_dim", plan.hidden / heads);
  plan.queries = heads * wide;
  plan.keys = size_or(reader, key, heads, operators::kMaxHeads) * wide;
}

void gpt_neox(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  plan.merged = true;
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", true);
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  lay(laid, plan);
}

void gpt_neo(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  lay(laid, {.layers = layers(reader, "num_layers"),
             .hidden = hidden,
             .words = width(reader, "vocab_size"),
             .inner = width_or(reader, "intermediate_size", 4 * hidden),
             .positions = width_or(reader, "max_position_embeddings", 2048),
             .bias = false,
             .tied = flag_or(reader, "tie_word_embeddings", true)});
}

void lay_gptj(Reader& reader, Laid& laid, bool merged) {
  Plan plan = gpt2_keys(reader);
  plan.norms = 1;
  plan.merged = merged;
  plan.bias = plan.out_bias = false;
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  plan.head_bias = true;
  lay(laid, plan);
}
void gptj(Reader& reader, Laid& laid) { lay_gptj(reader, laid, false); }
void codegen(Reader& reader, Laid& laid) { lay_gptj(reader, laid, true); }

void lay_gpt2(Reader& reader, Laid& laid, bool multi_query) {
  Plan plan = gpt2_keys(reader);
  plan.positions = width_or(reader, "n_positions", 1024);
  plan.merged = true;
  if (multi_query) plan.keys = plan.hidden / heads_in(reader, "n_head");
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

// GPT-2 with the head of a task: without, the catalogue lays it down.
void gpt2(Reader& reader, Laid& laid) { lay_gpt2(reader, laid, false); }
void gpt_bigcode(Reader& reader, Laid& laid) {
  lay_gpt2(reader, laid, flag_or(reader, "multi_query", true));
}

void opt(Reader& reader, Laid& laid) {
  constexpr std::int64_t kOffset = 2;  // rows ahead of the first position
  Plan plan = usual(reader);
  plan.inner = width(reader, "ffn_dim");
  plan.positions = width(reader, "max_position_embeddings") + kOffset;
  plan.embedded = width_or(reader, "word_embed_proj_dim", plan.hidden);
  plan.bias = plan.out_bias = plan.inner_bias = flag_or(reader, "enable_bias", true);
  plan.norm = flag_or(reader, "layer_norm_elementwise_affine", true);
  plan.final_norm = flag_or(reader, "do_layer_norm_before", true) &&
                    !flag_or(reader, "_remove_final_layer_norm", false);
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

void biogpt(Reader& reader, Laid& laid) {
  constexpr std::int64_t kOffset = 2;  // rows ahead of the first position
  Plan plan = usual(reader);
  plan.positions = width_or(reader, "max_position_embeddings", 1024) + kOffset;
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

// Lays XGLM, whose positions are waves that nobody trains.
void xglm(Reader& reader, Laid& laid) {
  lay(laid, {.layers = layers(reader, "num_layers"),
             .hidden = width(reader, "d_model"),
             .words = width(reader, "vocab_size"),
             .inner = width(reader, "ffn_dim"),
             .tied = flag_or(reader, "tie_word_embeddings", true)});
}

void mpt(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "d_model");
  lay(laid, {.layers = layers(reader, "n_layers"),
             .hidden = hidden,
             .words = width(reader, "vocab_size"),
             .norm_bias = false,
             .merged = true,
             .bias = false,
             .out_bias = false,
             .inner_bias = false,
             .tied = flag_or(reader, "tie_word_embeddings", true)});
}

void bloom(Reader& reader, Laid& laid) {
  const std::int64_t hidden =
      width(reader, has_value(reader, "hidden_size") ? "hidden_size" : "n_embed");
  lay(laid,
      {.layers = layers(reader, has_value(reader, "n_layer") ? "n_layer" : "num_hidden_layers"),
       .hidden = hidden,
       .words = width(reader, "vocab_size"),
       .embedding_norm = true,
       .merged = true,
       .tied = flag_or(reader, "tie_word_embeddings", true)});
}

// Lays "falcon", or its older name "RefinedWebModel".
void falcon(Reader& reader, Laid& laid) {
  const auto either = [&](const char* key, const char* old) {
    return has_value(reader, key) ? key : old;
  };
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t heads = heads_in(reader, either("num_attention_heads", "n_head"));
  Plan plan{.layers = layers(reader, either("num_hidden_layers", "n_layer")),
            .hidden = hidden,
            .words = width(reader, "vocab_size"),
            .inner = width_or(reader, "ffn_hidden_size", 4 * hidden),
            .merged = true};
  const bool newer = flag_or(reader, "new_decoder_architecture", false);
  if (newer) {
    plan.keys = size_or(reader, either("num_kv_heads", "n_head_kv"), heads, operators::kMaxHeads) *
                (hidden / heads);
  } else if (flag_or(reader, "multi_query", true)) {
    plan.keys = hidden / heads;
  }
  plan.bias = plan.out_bias = plan.inner_bias = flag_or(reader, "bias", false);
  if (newer) {
    plan.norms = static_cast<int>(size_or(reader, "num_ln_in_parallel_attn", 2, 2));
  } else if (flag_or(reader, "parallel_attn", true)) {
    plan.norms = 1;
  }
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

void phi(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  expect_flag(reader, "qk_layernorm", false);
  group_heads(reader, plan);
  plan.norms = 1;
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  plan.head_bias = true;
  lay(laid, plan);
}

void starcoder2(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.bias = plan.out_bias = plan.inner_bias = flag_or(reader, "use_bias", true);
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

void stablelm(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  expect_flag(reader, "qk_layernorm", false);
  group_heads(reader, plan);
  plan.norms = flag_or(reader, "use_parallel_residual", false) ? 1 : 2;
  plan.bias = flag_or(reader, "use_qkv_bias", false);
  plan.out_bias = plan.inner_bias = false;
  plan.gated = true;
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  lay(laid, plan);
}

void cohere(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.norms = 1;
  plan.norm_bias = plan.inner_bias = false;
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", false);
  plan.gated = true;
  if (flag_or(reader, "use_qk_norm", false)) {
    const std::int64_t wide = plan.queries / heads_in(reader);
    plan.query_norm = {plan.queries / wide, wide};
    plan.key_norm = {plan.keys / wide, wide};
  }
  plan.tied = flag_or(reader, "tie_word_embeddings", true);
  lay(laid, plan);
}

void olmo(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.norm = plan.inner_bias = false;
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", false);
  plan.gated = true;
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  lay(laid, plan);
}

void nemotron(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", false);
  plan.inner_bias = flag_or(reader, "mlp_bias", false);
  plan.tied = flag_or(reader, "tie_word_embeddings", false);
  lay(laid, plan);
}

// Lays a mixture that stores its experts in two stacked tensors.
void lay_stacked(Laid& laid, const std::string& experts, std::int64_t count, std::int64_t hidden,
                 std::int64_t inner, double share, bool bias) {
  laid.add(experts + "gate_up_proj", {count, hidden, 2 * inner}, share);
  if (bias) laid.add(experts + "gate_up_proj_bias", {count, 2 * inner});
  laid.add(experts + "down_proj", {count, inner, hidden}, share);
  if (bias) laid.add(experts + "down_proj_bias", {count, hidden});
}

// Returns the share of a mixture's experts that a token goes to.
double share_of(Reader& reader, std::int64_t experts) {
  const std::int64_t of_a_token = size(reader, "num_experts_per_tok", experts);
  return static_cast<double>(of_a_token) / static_cast<double>(experts);
}

void gpt_oss(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.norm_bias = false;
  const std::int64_t heads = heads_in(reader);
  const std::int64_t experts = size(reader, "num_local_experts", kMaxExperts);
  const double share = share_of(reader, experts);
  laid.table("model.embed_tokens", plan.words, plan.hidden);
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    laid.norm(at + "input_layernorm", plan.hidden, false);
    laid.add(at + "self_attn.sinks", {heads});
    lay_attention(laid, plan, at);
    laid.norm(at + "post_attention_layernorm", plan.hidden, false);
    laid.linear(at + "mlp.router", plan.hidden, experts, true);
    lay_stacked(laid, at + "mlp.experts.", experts, plan.hidden, plan.inner, share, true);
  }
  laid.norm("model.norm", plan.hidden, false);
  laid.head("lm_head", plan.words, plan.hidden, flag_or(reader, "tie_word_embeddings", false));
}

void phimoe(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", false);
  const std::int64_t experts = size(reader, "num_local_experts", kMaxExperts);
  const double share = share_of(reader, experts);
  laid.table("model.embed_tokens", plan.words, plan.hidden);
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    lay_first_half(laid, plan, at);
    laid.linear(at + "mlp.gate", plan.hidden, experts, false);
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::string expert = at + "mlp.experts." + std::to_string(e) + ".";
      laid.linear(expert + "w1", plan.hidden, plan.inner, false, share);
      laid.linear(expert + "w2", plan.inner, plan.hidden, false, share);
      laid.linear(expert + "w3", plan.hidden, plan.inner, false, share);
    }
  }
  laid.norm("model.norm", plan.hidden, true);
  laid.head("lm_head", plan.words, plan.hidden, flag_or(reader, "tie_word_embeddings", false),
            flag_or(reader, "lm_head_bias", false));
}

// Lays a model with experts in every `interleave_moe_layer_step`-th layer.
void llama4_text(Reader& reader, Laid& laid) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  plan.bias = plan.out_bias = flag_or(reader, "attention_bias", false);
  plan.norm_bias = plan.inner_bias = false;
  plan.gated = true;
  const std::int64_t experts = size(reader, "num_local_experts", kMaxExperts);
  const double share = share_of(reader, experts);
  const std::int64_t every = size_or(reader, "interleave_moe_layer_step", 1, operators::kMaxLayers);
  Plan dense = plan;
  dense.inner = width(reader, "intermediate_size_mlp");
  laid.table("model.embed_tokens", plan.words, plan.hidden);
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    if ((i + 1) % every != 0) {
      lay_layer(laid, dense, at);
      continue;
    }
    lay_first_half(laid, plan, at);
    laid.linear(at + "mlp.router", plan.hidden, experts, false);
    lay_stacked(laid, at + "mlp.experts.", experts, plan.hidden, plan.inner, share, false);
    lay_second_half(laid, plan, at);  // the expert that all share
  }
  laid.norm("model.norm", plan.hidden, false);
  laid.head("lm_head", plan.words, plan.hidden, flag_or(reader, "tie_word_embeddings", false));
}

// Lays attention by a state of its own in place of scores (Gated DeltaNet), its products in two
// or, `apart`, in four.
void lay_delta_net(Reader& reader, Laid& laid, std::int64_t hidden, const std::string& at,
                   bool apart) {
  const std::int64_t values = size(reader, "linear_num_value_heads", operators::kMaxHeads);
  const std::int64_t value_width = width(reader, "linear_value_head_dim");
  const std::int64_t keys = size(reader, "linear_num_key_heads", operators::kMaxHeads) *
                            width(reader, "linear_key_head_dim");
  const std::int64_t wide = values * value_width;
  laid.add(at + "conv1d.weight",
           {2 * keys + wide, 1, width_or(reader, "linear_conv_kernel_dim", 4)}, 1);
  laid.add(at + "dt_bias", {values});
  laid.add(at + "A_log", {values});
  if (apart) {
    laid.linear(at + "in_proj_qkv", hidden, 2 * keys + wide, false);
    laid.linear(at + "in_proj_z", hidden, wide, false);
    for (const char* part : {"in_proj_b", "in_proj_a"}) {
      laid.linear(at + part, hidden, values, false);
    }
  } else {
    laid.linear(at + "in_proj_qkvz", hidden, 2 * keys + 2 * wide, false);
    laid.linear(at + "in_proj_ba", hidden, 2 * values, false);
  }
  laid.norm(at + "norm", value_width, false);
  laid.linear(at + "out_proj", wide, hidden, false);
}

// Lays a gate, experts each in three matrices or all in two, and a weighed one that all tokens
// share.
void lay_mixture(Reader& reader, Laid& laid, std::int64_t hidden, const std::string& mlp,
                 bool stacked) {
  const std::int64_t experts = size(reader, "num_experts", kMaxExperts);
  const double share = share_of(reader, experts);
  laid.linear(mlp + "gate", hidden, experts, false);
  const auto expert = [&](const std::string& at, const char* inner_key, double of) {
    const std::int64_t inner = width(reader, inner_key);
    laid.linear(at + "gate_proj", hidden, inner, false, of);
    laid.linear(at + "up_proj", hidden, inner, false, of);
    laid.linear(at + "down_proj", inner, hidden, false, of);
  };
  if (stacked) {
    lay_stacked(laid, mlp + "experts.", experts, hidden, width(reader, "moe_intermediate_size"),
                share, false);
  }
  for (std::int64_t e = 0; e < (stacked ? 0 : experts); ++e) {
    expert(mlp + "experts." + std::to_string(e) + ".", "moe_intermediate_size", share);
  }
  expert(mlp + "shared_expert.", "shared_expert_intermediate_size", 1);
  laid.linear(mlp + "shared_expert_gate", hidden, 1, false);
}

// Lays Qwen3-Next and Qwen3.5, `second`, which may have no experts.
void lay_next(Reader& reader, Laid& laid, bool second, bool mixed) {
  Plan plan = usual(reader);
  group_heads(reader, plan);
  if (size_or(reader, "decoder_sparse_step", 1, operators::kMaxLayers) != 1 ||
      (has_value(reader, "mlp_only_layers") && !reader.array("mlp_only_layers").empty())) {
    reader.fail("decoder_sparse_step", "only experts in every layer are known");
  }
  const std::int64_t every = size_or(reader, "full_attention_interval", 4, operators::kMaxLayers);
  const std::int64_t wide = plan.queries / heads_in(reader);
  const bool listed = has_value(reader, "layer_types");
  const Json kinds = listed ? reader.array("layer_types") : Json::array();
  laid.table("model.embed_tokens", plan.words, plan.hidden);
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    laid.norm(at + "input_layernorm", plan.hidden, false);
    const auto row = static_cast<std::size_t>(i);
    const bool scored =
        listed ? row < kinds.size() && kinds[row] == "full_attention" : (i + 1) % every == 0;
    if (scored) {
      const std::string self = at + "self_attn.";
      laid.linear(self + "q_proj", plan.hidden, 2 * plan.queries, false);  // with a gate
      laid.linear(self + "k_proj", plan.hidden, plan.keys, false);
      laid.linear(self + "v_proj", plan.hidden, plan.keys, false);
      laid.norm(self + "q_norm", wide, false);
      laid.norm(self + "k_norm", wide, false);
      laid.linear(self + "o_proj", plan.queries, plan.hidden, false);
    } else {
      lay_delta_net(reader, laid, plan.hidden, at + "linear_attn.", second);
    }
    laid.norm(at + "post_attention_layernorm", plan.hidden, false);
    if (mixed) {
      lay_mixture(reader, laid, plan.hidden, at + "mlp.", second);
      continue;
    }
    for (const char* part : {"gate_proj", "up_proj"}) {
      laid.linear(at + "mlp." + part, plan.hidden, plan.inner, false);
    }
    laid.linear(at + "mlp.down_proj", plan.inner, plan.hidden, false);
  }
  laid.norm("model.norm", plan.hidden, false);
  laid.head("lm_head", plan.words, plan.hidden, flag_or(reader, "tie_word_embeddings", false));
}
void qwen3_next(Reader& reader, Laid& laid) { lay_next(reader, laid, false, true); }
void qwen3_5(Reader& reader, Laid& laid) { lay_next(reader, laid, true, false); }
void qwen3_5_moe(Reader& reader, Laid& laid) { lay_next(reader, laid, true, true); }

// Returns the columns inside LFM2's layers: two thirds of its file's, rounded up.
std::int64_t lfm2_inner(Reader& reader) {
  constexpr std::int64_t kUsual = 12288, kUsualMultiple = 256;
  const char* own = "block_ff_dim";
  std::int64_t inner = width_or(reader, has_value(reader, own) ? own : "intermediate_size", kUsual);
  if (!flag_or(reader, "block_auto_adjust_ff_dim", true)) return inner;
  const Json* times = reader.find("block_ffn_dim_multiplier");
  if (times != nullptr && times->is_number() && *times != 1) {
    reader.fail("block_ffn_dim_multiplier", "only 1 is known");
  }
  const std::int64_t multiple = width_or(reader, "block_multiple_of", kUsualMultiple);
  inner = 2 * inner / 3;
  return (inner + multiple - 1) / multiple * multiple;
}

// Lays LFM2: short gated convolutions, and attention in some layers.
void lfm2(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size"), words = width(reader, "vocab_size");
  const std::int64_t heads = size(reader, "num_attention_heads", operators::kMaxHeads);
  const std::int64_t groups = size_or(reader, "num_key_value_heads", 8, operators::kMaxHeads);
  const std::int64_t wide = width_or(reader, "head_dim", hidden / heads);
  const std::int64_t inner = lfm2_inner(reader), reach = width_or(reader, "conv_L_cache", 3);
  const bool bias = flag_or(reader, "conv_bias", false);
  const Json& kinds = reader.array("layer_types");
  laid.table("embed_tokens", words, hidden);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const auto row = static_cast<std::size_t>(i);
    if (row >= kinds.size()) reader.fail("layer_types", "expected a kind a layer");
    if (kinds[row] == "full_attention") {
      laid.linear(at + "self_attn.q_proj", hidden, heads * wide, false);
      laid.linear(at + "self_attn.k_proj", hidden, groups * wide, false);
      laid.linear(at + "self_attn.v_proj", hidden, groups * wide, false);
      laid.linear(at + "self_attn.out_proj", heads * wide, hidden, false);
      laid.norm(at + "self_attn.q_layernorm", wide, false);
      laid.norm(at + "self_attn.k_layernorm", wide, false);
    } else {
      laid.add(at + "conv.conv.weight", {hidden, 1, reach}, 1);
      if (bias) laid.add(at + "conv.conv.bias", {hidden});
      laid.linear(at + "conv.in_proj", hidden, 3 * hidden, bias);
      laid.linear(at + "conv.out_proj", hidden, hidden, bias);
    }
    for (const char* part : {"w1", "w3"}) {
      laid.linear(at + "feed_forward." + part, hidden, inner, false);
    }
    laid.linear(at + "feed_forward.w2", inner, hidden, false);
    laid.norm(at + "operator_norm", hidden, false);
    laid.norm(at + "ffn_norm", hidden, false);
  }
  laid.norm("embedding_norm", hidden, false);
  const char* own = has_value(reader, "tie_embedding") ? "tie_embedding" : "tie_word_embeddings";
  laid.head("lm_head", words, hidden, flag_or(reader, own, true));
}

// One size of a state-space model's mixer.
struct Mixer {
  std::int64_t hidden, inner, state, kernel;
  bool bias, conv_bias;
};

Mixer mixer_of(Reader& reader) {
  const std::int64_t hidden = width(reader, "hidden_size");
  return {hidden,
          hidden * size_or(reader, "expand", 2, 64),
          width_or(reader, "state_size", 16),
          width_or(reader, "conv_kernel", 4),
          flag_or(reader, "use_bias", false),
          flag_or(reader, "use_conv_bias", true)};
}

void lay_conv(Laid& laid, const std::string& at, std::int64_t channels, const Mixer& mixer) {
  laid.add(at + "conv1d.weight", {channels, 1, mixer.kernel}, 1);
  if (mixer.conv_bias) laid.add(at + "conv1d.bias", {channels});
}

void mamba(Reader& reader, Laid& laid) {
  Mixer mixer = mixer_of(reader);
  mixer.inner = width_or(reader, "intermediate_size", mixer.inner);
  const bool automatic =
      has_value(reader, "time_step_rank") && reader.find("time_step_rank")->is_string();
  const std::int64_t usual_rank = (mixer.hidden + 15) / 16;
  const std::int64_t rank = automatic ? usual_rank : width_or(reader, "time_step_rank", usual_rank);
  const std::int64_t words = width(reader, "vocab_size");
  laid.table("backbone.embed_tokens", words, mixer.hidden);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "backbone.layers." + std::to_string(i) + ".";
    laid.norm(at + "norm", mixer.hidden, false);
    const std::string in = at + "mixer.";
    laid.linear(in + "in_proj", mixer.hidden, 2 * mixer.inner, mixer.bias);
    lay_conv(laid, in, mixer.inner, mixer);
    laid.linear(in + "x_proj", mixer.inner, rank + 2 * mixer.state, false);
    laid.linear(in + "dt_proj", rank, mixer.inner, true);
    laid.add(in + "A_log", {mixer.inner, mixer.state});
    laid.add(in + "D", {mixer.inner});
    laid.linear(in + "out_proj", mixer.inner, mixer.hidden, mixer.bias);
  }
  laid.norm("backbone.norm_f", mixer.hidden, false);
  laid.head("lm_head", words, mixer.hidden, flag_or(reader, "tie_word_embeddings", true));
}

void mamba2(Reader& reader, Laid& laid) {
  const Mixer mixer = mixer_of(reader);
  const std::int64_t heads = size(reader, "num_heads", operators::kMaxHeads);
  const std::int64_t conv =
      mixer.inner + 2 * size_or(reader, "n_groups", 8, operators::kMaxHeads) * mixer.state;
  const std::int64_t words = width(reader, "vocab_size");
  laid.table("backbone.embed_tokens", words, mixer.hidden);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "backbone.layers." + std::to_string(i) + ".";
    laid.norm(at + "norm", mixer.hidden, false);
    const std::string in = at + "mixer.";
    laid.linear(in + "in_proj", mixer.hidden, mixer.inner + conv + heads, mixer.bias);
    lay_conv(laid, in, conv, mixer);
    for (const char* each : {"dt_bias", "A_log", "D"}) laid.add(in + each, {heads});
    laid.norm(in + "norm", mixer.inner, false);
    laid.linear(in + "out_proj", mixer.inner, mixer.hidden, mixer.bias);
  }
  laid.norm("backbone.norm_f", mixer.hidden, false);
  laid.head("lm_head", words, mixer.hidden, flag_or(reader, "tie_word_embeddings", false));
}

}  // namespace

const std::vector<Family>& decoders() {
  static const std::vector<Family> rows = {
      {"gpt2", gpt2},
      {"gpt_neox", gpt_neox},
      {"gpt_neo", gpt_neo},
      {"gptj", gptj},
      {"codegen", codegen},
      {"gpt_bigcode", gpt_bigcode},
      {"opt", opt},
      {"biogpt", biogpt},
      {"xglm", xglm},
      {"mpt", mpt},
      {"bloom", bloom},
      {"falcon", falcon},
      {"RefinedWeb", falcon},
      {"RefinedWebModel", falcon},
      {"phi", phi},
      {"starcoder2", starcoder2},
      {"stablelm", stablelm},
      {"cohere", cohere},
      {"cohere2", cohere},
      {"olmo", olmo},
      {"nemotron", nemotron},
      {"gpt_oss", gpt_oss},
      {"phimoe", phimoe},
      {"llama4_text", llama4_text},
      {"qwen3_next", qwen3_next},
      {"qwen3_5_text", qwen3_5},
      {"qwen3_5_moe_text", qwen3_5_moe},
      {"mamba", mamba},
      {"falcon_mamba", mamba},
      {"mamba2", mamba2},
      {"lfm2", lfm2},
  };
  return rows;
}

}  // namespace syncline::job::models
