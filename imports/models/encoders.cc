// Encoders of text, and encoders with a decoder.
#include <algorithm>

#include "catalogue/architectures/architecture.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

struct Sizes {
  std::int64_t layers, hidden, inner;
  bool ahead = false;   // norms come ahead of products, and one after all layers
  bool global = false;  // attention to all tokens has products of its own
};

Sizes sizes_of(Reader& reader, bool ahead = false, bool global = false) {
  return {layers(reader, "num_hidden_layers"), width(reader, "hidden_size"),
          width(reader, "intermediate_size"), ahead, global};
}

// Lays three tables of one width, and a norm.
void lay_tables(Reader& reader, Laid& laid, std::int64_t columns, bool kinds, bool norm = true) {
  laid.table("embeddings.word_embeddings", width(reader, "vocab_size"), columns);
  laid.table("embeddings.position_embeddings", width_or(reader, "max_position_embeddings", 512),
             columns);
  if (kinds) {
    laid.table("embeddings.token_type_embeddings",
               size_or(reader, "type_vocab_size", 2, operators::kMaxTokenTypes), columns);
  }
  if (norm) laid.norm("embeddings.LayerNorm", columns, true);
}

// A layer of BERT; its products are used `times` times.
void lay_layer_of(Laid& laid, const Sizes& sizes, const std::string& at, double times = 1) {
  if (sizes.ahead) laid.norm(at + "attention.LayerNorm", sizes.hidden, true);
  for (const char* part : {"query", "key", "value", "output"}) {
    laid.linear(at + "attention." + part, sizes.hidden, sizes.hidden, true, times);
  }
  for (const char* part : {"query_global", "key_global", "value_global"}) {
    if (sizes.global) laid.linear(at + "attention." + part, sizes.hidden, sizes.hidden, true, 0);
  }
  laid.norm(at + (sizes.ahead ? "LayerNorm" : "attention.LayerNorm"), sizes.hidden, true);
  laid.linear(at + "intermediate", sizes.hidden, sizes.inner, true, times);
  laid.linear(at + "output", sizes.inner, sizes.hidden, true, times);
  if (!sizes.ahead) laid.norm(at + "LayerNorm", sizes.hidden, true);
}

void lay_layers(Laid& laid, const Sizes& sizes) {
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    lay_layer_of(laid, sizes, "encoder.layer." + std::to_string(i) + ".");
  }
  if (sizes.ahead) laid.norm("encoder.LayerNorm", sizes.hidden, true);
}

// A product and a norm ahead of the words, which share the embedding.
void lay_word_head(Reader& reader, Laid& laid, std::int64_t hidden, std::int64_t columns) {
  if (!laid.has_words()) return;
  laid.linear("head.transform", hidden, columns, true);
  laid.norm("head.LayerNorm", columns, true);
  laid.head("head.decoder", width(reader, "vocab_size"), columns,
            flag_or(reader, "tie_word_embeddings", true), true);
}

// Lays the head of a task. `between`: a product ahead of the classes of a whole sample.
void lay_task_head(Reader& reader, Laid& laid, std::int64_t hidden, bool between = true) {
  constexpr std::int64_t kUsual = 2;
  const auto out = [&](std::int64_t columns) { laid.linear("classifier", hidden, columns, true); };
  const bool whole = laid.ends_in({End::kClasses, End::kChoices});
  if (whole && between) laid.linear("classifier.dense", hidden, hidden, true);
  if (laid.ends_in({End::kClasses, End::kEachToken, End::kSpans})) out(classes_of(reader, kUsual));
  if (laid.ends_in({End::kChoices})) out(1);
}

// Lays BERT's pooler and head; that of its training is of words and of whether two texts follow.
void lay_pretrained_head(Reader& reader, Laid& laid, std::int64_t hidden, std::int64_t columns) {
  const bool pairs = laid.ends_in({End::kPairs, End::kPretrain});
  if (pairs || laid.ends_in({End::kNone, End::kClasses, End::kChoices})) {
    laid.linear("pooler", hidden, hidden, true);
  }
  lay_word_head(reader, laid, hidden, columns);
  if (pairs) laid.linear("seq_relationship", hidden, 2, true);
  lay_task_head(reader, laid, hidden, false);
}

// Lays BERT with any head, or a model like it; a new one has a table of tasks.
void lay_bert(Reader& reader, Laid& laid, bool ahead) {
  constexpr std::int64_t kUsualTasks = 3;
  const Sizes sizes = sizes_of(reader, ahead);
  lay_tables(reader, laid, sizes.hidden, true, !ahead);
  if (flag_or(reader, "use_task_id", false)) {
    laid.table("embeddings.task_type_embeddings",
               width_or(reader, "task_type_vocab_size", kUsualTasks), sizes.hidden);
  }
  lay_layers(laid, sizes);
  lay_pretrained_head(reader, laid, sizes.hidden, sizes.hidden);
}
void bert(Reader& reader, Laid& laid) { lay_bert(reader, laid, false); }
void megatron_bert(Reader& reader, Laid& laid) { lay_bert(reader, laid, true); }

// Lays BERT with tables of a page's coordinates, and with its pooler under any head.
void layoutlm(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  lay_tables(reader, laid, sizes.hidden, true);
  const std::int64_t rows = width_or(reader, "max_2d_position_embeddings", 1024);
  for (const char* part : {"x", "y", "h", "w"}) {
    laid.table("embeddings." + std::string(part) + "_position_embeddings", rows, sizes.hidden);
  }
  lay_layers(laid, sizes);
  laid.linear("pooler", sizes.hidden, sizes.hidden, true);
  lay_word_head(reader, laid, sizes.hidden, sizes.hidden);
  if (!laid.ends_in({End::kNone})) lay_task_head(reader, laid, sizes.hidden, false);
}

// Lays BERT without a pooler.
void plain_bert(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  lay_tables(reader, laid, sizes.hidden, true);
  lay_layers(laid, sizes);
  const Json* columns = reader.find("projection_dim");
  if (columns != nullptr && *columns != 0) reader.fail("projection_dim", "only 0 is known");
  laid.ends_in({End::kNone, End::kEncoder});
}

// Lays RemBERT: narrow tables ahead, and a wide one of its own behind.
void rembert(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const std::int64_t columns = width(reader, "input_embedding_size");
  const std::int64_t last = width(reader, "output_embedding_size");
  lay_tables(reader, laid, columns, true);
  laid.linear("encoder.embedding_hidden_mapping_in", columns, sizes.hidden, true);
  lay_layers(laid, sizes);
  const bool words = laid.has_words();
  if (laid.ends_in({End::kNone, End::kClasses, End::kChoices})) {
    laid.linear("pooler", sizes.hidden, sizes.hidden, true);
  }
  if (!words) return lay_task_head(reader, laid, sizes.hidden, false);
  laid.linear("head.dense", sizes.hidden, last, true);
  laid.norm("head.LayerNorm", last, true);
  laid.linear("head.decoder", last, width(reader, "vocab_size"), true);
}

// Lays XLNet, which looks at distances by a product and three biases of its own.
void xlnet(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "d_model"), inner = width(reader, "d_inner");
  const std::int64_t heads = size(reader, "n_head", operators::kMaxHeads), wide = hidden / heads;
  const std::int64_t words = width(reader, "vocab_size");
  laid.add("mask_emb", {1, 1, hidden});
  laid.table("word_embedding", words, hidden);
  for (std::int64_t i = 0, count = layers(reader, "n_layer"); i < count; ++i) {
    const std::string at = "layer." + std::to_string(i) + ".";
    for (const char* part : {"q", "k", "v", "o", "r"}) {
      laid.add(at + "rel_attn." + part, {hidden, heads, wide}, 1);
    }
    for (const char* part : {"r_r_bias", "r_s_bias", "r_w_bias"}) {
      laid.add(at + "rel_attn." + part, {heads, wide});
    }
    laid.add(at + "rel_attn.seg_embed", {2, heads, wide});
    laid.norm(at + "rel_attn.layer_norm", hidden, true);
    laid.norm(at + "ff.layer_norm", hidden, true);
    laid.linear(at + "ff.layer_1", hidden, inner, true);
    laid.linear(at + "ff.layer_2", inner, hidden, true);
  }
  if (laid.has_words()) {
    if (!flag_or(reader, "tie_word_embeddings", true))
      laid.add("lm_loss.weight", {words, hidden}, 1);
    laid.add("lm_loss.bias", {words}, static_cast<double>(hidden));
  }
  if (laid.ends_in({End::kClasses})) laid.linear("summary", hidden, hidden, true);
  if (laid.ends_in({End::kClasses, End::kEachToken})) {
    laid.linear("classifier", hidden, classes_of(reader, 2), true);
  }
}

// Lays the heads of RoBERTa; the pooler is there for the model alone.
void lay_roberta_head(Reader& reader, Laid& laid, std::int64_t hidden) {
  if (laid.ends_in({End::kNone})) laid.linear("pooler.dense", hidden, hidden, true);
  lay_word_head(reader, laid, hidden, hidden);
  lay_task_head(reader, laid, hidden);
}

void lay_roberta(Reader& reader, Laid& laid, const Sizes& sizes, bool kinds, bool norm = true) {
  lay_tables(reader, laid, sizes.hidden, kinds, norm);
  lay_layers(laid, sizes);
  lay_roberta_head(reader, laid, sizes.hidden);
}
void roberta(Reader& reader, Laid& laid) { lay_roberta(reader, laid, sizes_of(reader), true); }
void roberta_prelayernorm(Reader& reader, Laid& laid) {
  lay_roberta(reader, laid, sizes_of(reader, true), true);
}
void xlm_roberta_xl(Reader& reader, Laid& laid) {
  lay_roberta(reader, laid, sizes_of(reader, true), true, false);
}
void longformer(Reader& reader, Laid& laid) {
  lay_roberta(reader, laid, sizes_of(reader, false, true), true);
}
// Its pooler is there with any head.
void big_bird(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  expect_flag(reader, "use_bias", true);
  lay_tables(reader, laid, sizes.hidden, true);
  lay_layers(laid, sizes);
  laid.linear("pooler", sizes.hidden, sizes.hidden, true);
  lay_word_head(reader, laid, sizes.hidden, sizes.hidden);
  if (laid.ends_in({End::kPretrain})) laid.linear("seq_relationship", sizes.hidden, 2, true);
  if (laid.ends_in({End::kClasses, End::kEachToken})) lay_task_head(reader, laid, sizes.hidden);
}
void mpnet(Reader& reader, Laid& laid) {
  laid.table("encoder.relative_attention_bias",
             width_or(reader, "relative_attention_num_buckets", 32),
             size(reader, "num_attention_heads", operators::kMaxHeads));
  lay_roberta(reader, laid, sizes_of(reader), false);
}

void distilbert(Reader& reader, Laid& laid) {
  const Sizes sizes{layers(reader, "n_layers"), width(reader, "dim"), width(reader, "hidden_dim")};
  lay_tables(reader, laid, sizes.hidden, false);
  lay_layers(laid, sizes);
  lay_word_head(reader, laid, sizes.hidden, sizes.hidden);
  lay_task_head(reader, laid, sizes.hidden);
}

// All layers of a group are one.
void albert(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const std::int64_t columns = width(reader, "embedding_size");
  const std::int64_t groups = size_or(reader, "num_hidden_groups", 1, sizes.layers);
  const std::int64_t inner_groups = size_or(reader, "inner_group_num", 1, operators::kMaxLayers);
  const double times = static_cast<double>(sizes.layers) / static_cast<double>(groups);
  lay_tables(reader, laid, columns, true);
  laid.linear("encoder.embedding_hidden_mapping_in", columns, sizes.hidden, true);
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < inner_groups; ++i) {
      lay_layer_of(laid, sizes,
                   "encoder.groups." + std::to_string(group) + "." + std::to_string(i) + ".",
                   times);
    }
  }
  lay_pretrained_head(reader, laid, sizes.hidden, columns);
}

void electra(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const std::int64_t columns = width_or(reader, "embedding_size", sizes.hidden);
  lay_tables(reader, laid, columns, true);
  if (columns != sizes.hidden) laid.linear("embeddings_project", columns, sizes.hidden, true);
  lay_layers(laid, sizes);
  if (laid.ends_in({End::kPretrain})) {  // whether a word was replaced
    laid.linear("discriminator.dense", sizes.hidden, sizes.hidden, true);
    laid.linear("discriminator.prediction", sizes.hidden, 1, true);
    return;
  }
  lay_word_head(reader, laid, sizes.hidden, columns);
  lay_task_head(reader, laid, sizes.hidden);
}

// Attention to distances: their table, and its products unless those of the keys serve.
void lay_distances(Reader& reader, Laid& laid, std::int64_t hidden) {
  if (!flag_or(reader, "relative_attention", false)) return;
  const Json* buckets = reader.find("position_buckets");
  const bool has_buckets =
      buckets != nullptr && buckets->is_number_integer() && buckets->get<std::int64_t>() > 0;
  const Json* most = reader.find("max_relative_positions");
  const bool has_most =
      most != nullptr && most->is_number_integer() && most->get<std::int64_t>() > 0;
  const std::int64_t reach = has_buckets ? width(reader, "position_buckets")
                             : has_most  ? width(reader, "max_relative_positions")
                                         : width(reader, "max_position_embeddings");
  laid.table("encoder.rel_embeddings", 2 * reach, hidden);
  if (has_value(reader, "norm_rel_ebd") &&
      reader.text("norm_rel_ebd").find("layer_norm") != std::string::npos) {
    laid.norm("encoder.LayerNorm", hidden, true);
  }
}

// Lays the tables of DeBERTa; returns their columns.
std::int64_t lay_deberta_tables(Reader& reader, Laid& laid, std::int64_t hidden) {
  const std::int64_t columns = width_or(reader, "embedding_size", hidden);
  laid.table("embeddings.word_embeddings", width(reader, "vocab_size"), columns);
  if (flag_or(reader, "position_biased_input", true)) {
    laid.table("embeddings.position_embeddings", width(reader, "max_position_embeddings"), columns);
  }
  const char* kinds = "type_vocab_size";
  if (has_value(reader, kinds) && reader.integer(kinds, 0, operators::kMaxTokenTypes) > 0) {
    laid.table("embeddings.token_type_embeddings", size(reader, kinds, operators::kMaxTokenTypes),
               columns);
  }
  if (columns != hidden) laid.linear("embeddings.embed_proj", columns, hidden, false);
  laid.norm("embeddings.LayerNorm", hidden, true);
  return columns;
}

// Lays DeBERTa's first version: three products in one, and two more for distances.
void deberta(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const std::int64_t columns = lay_deberta_tables(reader, laid, sizes.hidden);
  expect_flag(reader, "talking_head", false);
  const Json* least = reader.find("max_relative_positions");
  const bool reaches =
      least != nullptr && least->is_number_integer() && least->get<std::int64_t>() > 0;
  const std::int64_t reach =
      width(reader, reaches ? "max_relative_positions" : "max_position_embeddings");
  const bool relative = flag_or(reader, "relative_attention", false);
  const Json* kinds = reader.find("pos_att_type");
  const std::string words = relative && kinds != nullptr ? kinds->dump() : "";
  if (relative) laid.table("encoder.rel_embeddings", 2 * reach, sizes.hidden);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    laid.linear(at + "attention.in_proj", sizes.hidden, 3 * sizes.hidden, false);
    for (const char* part : {"q_bias", "v_bias"}) laid.add(at + part, {sizes.hidden});
    if (words.find("c2p") != words.npos) {
      laid.linear(at + "attention.pos_proj", sizes.hidden, sizes.hidden, false);
    }
    if (words.find("p2c") != words.npos) {
      laid.linear(at + "attention.pos_q_proj", sizes.hidden, sizes.hidden, true);
    }
    laid.linear(at + "attention.output", sizes.hidden, sizes.hidden, true);
    laid.norm(at + "attention.LayerNorm", sizes.hidden, true);
    laid.linear(at + "intermediate", sizes.hidden, sizes.inner, true);
    laid.linear(at + "output", sizes.inner, sizes.hidden, true);
    laid.norm(at + "LayerNorm", sizes.hidden, true);
  }
  lay_word_head(reader, laid, sizes.hidden, columns);
  lay_task_head(reader, laid, sizes.hidden);
}

void deberta_v2(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const std::int64_t columns = lay_deberta_tables(reader, laid, sizes.hidden);
  lay_distances(reader, laid, sizes.hidden);
  const bool relative = flag_or(reader, "relative_attention", false);
  if (relative && !flag_or(reader, "share_att_key", false)) {
    reader.fail("share_att_key", "found false, only true is known");
  }
  lay_layers(laid, sizes);
  const char* kernel = "conv_kernel_size";
  if (has_value(reader, kernel) && reader.integer(kernel, 0, 64) > 0) {
    laid.add("encoder.conv.conv.weight", {sizes.hidden, sizes.hidden, size(reader, kernel, 64)}, 1);
    laid.add("encoder.conv.conv.bias", {sizes.hidden});
    laid.norm("encoder.conv.LayerNorm", sizes.hidden, true);
  }
  lay_word_head(reader, laid, sizes.hidden, columns);
  lay_task_head(reader, laid, sizes.hidden);
}

void modernbert(Reader& reader, Laid& laid) {
  const Sizes sizes = sizes_of(reader);
  const bool bias = flag_or(reader, "norm_bias", false);
  const bool products = flag_or(reader, "attention_bias", false);
  const bool inner = flag_or(reader, "mlp_bias", false);
  const std::int64_t words = width(reader, "vocab_size");
  laid.table("embeddings.tok_embeddings", words, sizes.hidden);
  laid.norm("embeddings.norm", sizes.hidden, bias);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    if (i > 0) laid.norm(at + "attn_norm", sizes.hidden, bias);
    laid.linear(at + "attn.Wqkv", sizes.hidden, 3 * sizes.hidden, products);
    laid.linear(at + "attn.Wo", sizes.hidden, sizes.hidden, products);
    laid.norm(at + "mlp_norm", sizes.hidden, bias);
    laid.linear(at + "mlp.Wi", sizes.hidden, 2 * sizes.inner, inner);
    laid.linear(at + "mlp.Wo", sizes.inner, sizes.hidden, inner);
  }
  laid.norm("final_norm", sizes.hidden, bias);
  if (laid.ends_in({End::kNone})) return;
  laid.linear("head.dense", sizes.hidden, sizes.hidden, flag_or(reader, "classifier_bias", false));
  laid.norm("head.norm", sizes.hidden, bias);
  laid.head("decoder", words, sizes.hidden, flag_or(reader, "tie_word_embeddings", true),
            flag_or(reader, "decoder_bias", true));
  lay_task_head(reader, laid, sizes.hidden, false);
}

// Lays the head of a sample or of its words, on the output of a decoder.
void lay_decoded_head(Reader& reader, Laid& laid, std::int64_t hidden, std::int64_t classes) {
  if (laid.ends_in({End::kClasses})) {
    laid.linear("classification_head.dense", hidden, hidden, true);
    laid.linear("classification_head.out_proj", hidden, classes_of(reader, classes), true);
  }
  if (laid.ends_in({End::kSpans})) laid.linear("qa_outputs", hidden, 2, true);
}

// A stack of T5: attention to itself, to the encoder if it decodes, and the inner half.
struct T5Stack {
  std::int64_t layers, heads;
  bool decodes, biased, gated;  // `biased`: each layer has a table of distances
  bool global = false;          // the encoder also looks at sums of blocks
};

void lay_t5_stack(Reader& reader, Laid& laid, const T5Stack& stack) {
  const std::int64_t hidden = width(reader, "d_model"), inner = width(reader, "d_ff");
  const std::int64_t wide = stack.heads * width(reader, "d_kv");
  const std::string name = stack.decodes ? "decoder." : "encoder.";
  for (std::int64_t i = 0; i < stack.layers; ++i) {
    const std::string at = name + "block." + std::to_string(i) + ".";
    for (const char* kind : {"SelfAttention", "EncDecAttention"}) {
      const bool itself = kind[0] == 'S';
      if (!itself && !stack.decodes) continue;
      const std::string in = at + kind + ".";
      laid.norm(in + "layer_norm", hidden, false);
      for (const char* part : {"q", "k", "v"}) laid.linear(in + part, hidden, wide, false);
      if (itself && (i == 0 || stack.biased)) {
        laid.table(in + "relative_attention_bias",
                   width_or(reader, "relative_attention_num_buckets", 32), stack.heads);
      }
      laid.linear(in + "o", wide, hidden, false);
      if (!stack.global || stack.decodes) continue;
      laid.norm(in + "global_input_layer_norm", hidden, false);
      if (i > 0) continue;
      laid.table(in + "global_relative_attention_bias",
                 width_or(reader, "relative_attention_num_buckets", 32), stack.heads);
    }
    laid.norm(at + "layer_norm", hidden, false);
    laid.linear(at + "wi_0", hidden, inner, false);
    if (stack.gated) laid.linear(at + "wi_1", hidden, inner, false);
    laid.linear(at + "wo", inner, hidden, false);
  }
  laid.norm(name + "final_layer_norm", hidden, false);
}

void lay_t5(Reader& reader, Laid& laid, bool biased, bool tied) {
  const std::int64_t words = width(reader, "vocab_size"), hidden = width(reader, "d_model");
  T5Stack stack{layers(reader, "num_layers"), size(reader, "num_heads", operators::kMaxHeads),
                false, biased, false};
  if (has_value(reader, "feed_forward_proj")) {
    stack.gated = reader.text("feed_forward_proj").starts_with("gated");
  }
  const char* kind = "encoder_attention_type";  // LongT5's
  stack.global = has_value(reader, kind) && reader.text(kind) == "transient-global";
  laid.table("shared.embed_tokens", words, hidden);
  lay_t5_stack(reader, laid, stack);
  if (!laid.ends_in({End::kEncoder, End::kEachToken})) {
    stack.layers = size_or(reader, "num_decoder_layers", stack.layers, operators::kMaxLayers);
    stack.decodes = true;
    lay_t5_stack(reader, laid, stack);
  }
  laid.head("lm_head", words, hidden, flag_or(reader, "tie_word_embeddings", tied));
  if (laid.ends_in({End::kEachToken})) lay_task_head(reader, laid, hidden);
  lay_decoded_head(reader, laid, hidden, 2);
}
void t5(Reader& reader, Laid& laid) { lay_t5(reader, laid, false, true); }
void mt5(Reader& reader, Laid& laid) { lay_t5(reader, laid, false, false); }
void umt5(Reader& reader, Laid& laid) { lay_t5(reader, laid, true, true); }

// An attention of BART's kin to something of a width.
void lay_crossing(Laid& laid, const std::string& at, std::int64_t hidden, bool key_bias,
                  std::int64_t seen) {
  laid.linear(at + "k_proj", seen, hidden, key_bias);
  laid.linear(at + "v_proj", seen, hidden, true);
  for (const char* part : {"q_proj", "out_proj"}) laid.linear(at + part, hidden, hidden, true);
}

// BART's encoder, or its decoder; Whisper's keys have no bias.
void lay_bart_stack(Reader& reader, Laid& laid, bool decodes, bool key_bias) {
  const std::string name = decodes ? "decoder" : "encoder";
  const std::int64_t hidden = width(reader, "d_model");
  const std::int64_t inner = width(reader, (name + "_ffn_dim").c_str());
  const std::int64_t count = layers(reader, (name + "_layers").c_str());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string at = name + ".layers." + std::to_string(i) + ".";
    lay_crossing(laid, at + "self_attn.", hidden, key_bias, hidden);
    laid.norm(at + "self_attn_layer_norm", hidden, true);
    if (decodes) {
      lay_crossing(laid, at + "encoder_attn.", hidden, key_bias,
                   width_or(reader, "cross_attention_hidden_size", hidden));
      laid.norm(at + "encoder_attn_layer_norm", hidden, true);
    }
    laid.linear(at + "fc1", hidden, inner, true);
    laid.linear(at + "fc2", inner, hidden, true);
    laid.norm(at + "final_layer_norm", hidden, true);
  }
}

// Features of BART and its kin. Without a table, positions are waves that nobody trains.
struct BartKind {
  std::string_view type;
  bool learned = true;
  std::int64_t offset = 2;  // rows ahead of the first position
  bool embedding_norm = true, closing_norm = false;
};
constexpr BartKind kBarts[] = {
    {"bart"},
    {"plbart"},
    {"mbart", true, 2, true, true},
    {"m2m_100", false, 0, false, true},
    {"pegasus", false, 0, false, true},
    {"marian", false, 0, false, false},
    {"blenderbot", true, 0, false, true},
    {"blenderbot-small", true, 0, true, false},
    {"trocr", true, 2, true, false},
};

void lay_bart_half(Reader& reader, Laid& laid, const BartKind& kind, bool decodes) {
  const std::string name = decodes ? "decoder." : "encoder.";
  const std::int64_t hidden = width(reader, "d_model");
  const auto has = [&](bool usual, const char* key) {
    return kind.type == "trocr" ? flag_or(reader, key, usual) : usual;
  };
  if (has(kind.learned, "use_learned_position_embeddings")) {
    laid.table(name + "embed_positions", width(reader, "max_position_embeddings") + kind.offset,
               hidden);
  }
  if (has(kind.embedding_norm, "layernorm_embedding")) {
    laid.norm(name + "layernorm_embedding", hidden, true);
  }
  lay_bart_stack(reader, laid, decodes, true);
  if (kind.closing_norm) laid.norm(name + "layer_norm", hidden, true);
}

void lay_bart(Reader& reader, Laid& laid, const BartKind& kind) {
  const std::int64_t usual_classes = kind.type == "bart" ? 3 : 2;
  const std::int64_t hidden = width(reader, "d_model"), words = width(reader, "vocab_size");
  expect_flag(reader, "share_encoder_decoder_embeddings", true);
  laid.table("shared.embed_tokens", words, hidden);
  const bool alone = laid.ends_in({End::kCausal}) || kind.type == "trocr";
  if (!alone) lay_bart_half(reader, laid, kind, false);
  lay_bart_half(reader, laid, kind, true);
  laid.head("lm_head", words, hidden, flag_or(reader, "tie_word_embeddings", true));
  lay_decoded_head(reader, laid, hidden, usual_classes);
}
template <const BartKind& kind>
void bart(Reader& reader, Laid& laid) {
  lay_bart(reader, laid, kind);
}

}  // namespace

// Two convolutions over the sound's spectrum; its positions are waves that nobody trains.
void lay_sound_encoder(Reader& reader, Laid& laid) {
  constexpr std::int64_t kKernel = 3;
  const std::int64_t hidden = width(reader, "d_model");
  laid.add("encoder.conv1.weight", {hidden, width(reader, "num_mel_bins"), kKernel}, 1);
  laid.add("encoder.conv1.bias", {hidden});
  laid.add("encoder.conv2.weight", {hidden, hidden, kKernel}, 1);
  laid.add("encoder.conv2.bias", {hidden});
  lay_bart_stack(reader, laid, false, false);
  laid.norm("encoder.layer_norm", hidden, true);
}

namespace {

void whisper(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "d_model"), words = width(reader, "vocab_size");
  if (!laid.ends_in({End::kCausal})) lay_sound_encoder(reader, laid);
  if (laid.ends_in({End::kSounds})) {
    constexpr std::int64_t kUsual = 256, kUsualClasses = 2;
    const std::int64_t between = width_or(reader, "classifier_proj_size", kUsual);
    expect_flag(reader, "use_weighted_layer_sum", false);
    laid.linear("projector", hidden, between, true);
    laid.linear("classifier", between, classes_of(reader, kUsualClasses), true);
    return;
  }
  laid.table("decoder.embed_tokens", words, hidden);
  laid.table("decoder.embed_positions", width(reader, "max_target_positions"), hidden);
  lay_bart_stack(reader, laid, true, false);
  laid.norm("decoder.layer_norm", hidden, true);
  laid.head("proj_out", words, hidden, flag_or(reader, "tie_word_embeddings", true));
}

// Lays fairseq's translator of speech: gated convolutions, then the stacks of BART with a last
// norm.
void speech_to_text(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "d_model"), words = width(reader, "vocab_size");
  const std::int64_t channels = width(reader, "conv_channels");
  const Json& kernels = reader.array("conv_kernel_sizes");
  std::int64_t ahead = width(reader, "input_feat_per_channel");
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i].is_number_integer() || kernels[i] < 1 || kernels[i] > 1024) {
      reader.fail("conv_kernel_sizes", "expected a size for each convolution");
    }
    const std::int64_t out = i + 1 == kernels.size() ? 2 * hidden : channels;
    const std::string at = "encoder.conv." + std::to_string(i);
    laid.add(at + ".weight", {out, ahead, kernels[i].get<std::int64_t>()}, 1);
    laid.add(at + ".bias", {out});
    ahead = out / 2;
  }
  lay_bart_stack(reader, laid, false, true);
  laid.norm("encoder.layer_norm", hidden, true);
  laid.table("decoder.embed_tokens", words, hidden);
  lay_bart_stack(reader, laid, true, true);
  laid.norm("decoder.layer_norm", hidden, true);
  laid.head("lm_head", words, hidden, flag_or(reader, "tie_word_embeddings", true));
}

// Lays the convolutions ahead of wav2vec 2.0's layers; returns the columns of the last.
std::int64_t lay_sound_convolutions(Reader& reader, Laid& laid) {
  constexpr std::int64_t kMost = 1 << 16;
  constexpr std::int64_t kUsualWidth = 512, kUsualKernels[] = {10, 3, 3, 3, 3, 2, 2};
  const auto listed = [&](const char* key, std::size_t i, std::int64_t fallback) {
    if (!has_value(reader, key)) return fallback;
    const Json& list = reader.array(key);
    const bool whole = i < list.size() && list[i].is_number_integer();
    const std::int64_t found = whole ? list[i].get<std::int64_t>() : 0;
    if (found < 1 || found > kMost) reader.fail(key, "expected a size for each convolution");
    return found;
  };
  const bool all =
      has_value(reader, "conv_pos_kernel_size") ||  // data2vec's
      (has_value(reader, "feat_extract_norm") && reader.text("feat_extract_norm") == "layer");
  const bool bias = flag_or(reader, "conv_bias", false);
  const auto count = static_cast<std::size_t>(size_or(reader, "num_feat_extract_layers", 7, 64));
  std::int64_t columns = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t wide = listed("conv_dim", i, kUsualWidth);
    const std::int64_t kernel =
        listed("conv_kernel", i, i < std::size(kUsualKernels) ? kUsualKernels[i] : 0);
    const std::string at = "feature_extractor.conv_layers." + std::to_string(i) + ".";
    laid.add(at + "conv.weight", {wide, columns, kernel}, 1);
    if (bias) laid.add(at + "conv.bias", {wide});
    if (i == 0 || all) laid.norm(at + "layer_norm", wide, true);
    columns = wide;
  }
  return columns;
}

void lay_sound_head(Reader& reader, Laid& laid, std::int64_t hidden) {
  constexpr std::int64_t kUsualWords = 32, kUsualColumns = 256, kUsualClasses = 2;
  if (laid.ends_in({End::kWords, End::kCausal})) {
    laid.linear("lm_head", hidden, width_or(reader, "vocab_size", kUsualWords), true);
  }
  if (!laid.ends_in({End::kClasses})) return;
  const std::int64_t columns = width_or(reader, "classifier_proj_size", kUsualColumns);
  expect_flag(reader, "use_weighted_layer_sum", false);
  laid.linear("projector", hidden, columns, true);
  laid.linear("classifier", columns, classes_of(reader, kUsualClasses), true);
}

// Lays WavLM's gates of distances, with a table of distances in the first layer.
void lay_distance_gates(Reader& reader, Laid& laid, std::int64_t hidden, const std::string& at,
                        bool first) {
  constexpr std::int64_t kUsualBuckets = 320, kGates = 8;
  const std::int64_t heads = size(reader, "num_attention_heads", operators::kMaxHeads);
  laid.add(at + "attention.gru_rel_pos_const", {1, heads, 1, 1});
  laid.linear(at + "attention.gru_rel_pos_linear", hidden / heads, kGates, true);
  if (!first) return;
  laid.table(at + "attention.rel_attn_embed", width_or(reader, "num_buckets", kUsualBuckets),
             heads);
}

// Lays wav2vec 2.0 and its kin: convolutions over the sound's wave, positions by one more.
// `mask`: with a row for masked sound, though nothing may be masked.
void lay_wav2vec2(Reader& reader, Laid& laid, bool gated, bool mask = false) {
  constexpr std::int64_t kUsualKernel = 128, kUsualGroups = 16;
  const Sizes sizes = sizes_of(reader);
  for (const char* key : {"add_adapter", "conv_pos_batch_norm"}) expect_flag(reader, key, false);
  if (has_value(reader, "adapter_attn_dim")) reader.fail("adapter_attn_dim", "only null is known");
  const auto masked = [&](const char* key, bool usual) {
    const Json* share = reader.find(key);
    return share != nullptr && share->is_number() ? share->get<double>() > 0 : usual;
  };
  if (mask || masked("mask_time_prob", true) || masked("mask_feature_prob", false)) {
    laid.add("masked_spec_embed", {sizes.hidden});
  }
  const std::int64_t columns = lay_sound_convolutions(reader, laid);
  if (flag_or(reader, "feat_proj_layer_norm", true)) {
    laid.norm("feature_projection.layer_norm", columns, true);
  }
  laid.linear("feature_projection.projection", columns, sizes.hidden, true);
  const std::int64_t kernel = width_or(reader, "num_conv_pos_embeddings", kUsualKernel);
  const std::int64_t groups = width_or(reader, "num_conv_pos_embedding_groups", kUsualGroups);
  if (sizes.hidden % groups != 0) {
    reader.fail("num_conv_pos_embedding_groups", "expected a divisor of hidden_size");
  }
  if (const char* own = "conv_pos_kernel_size"; has_value(reader, own)) {
    const std::int64_t side = size(reader, own, 1 << 10);
    const std::int64_t count = size_or(reader, "num_conv_pos_embeddings", 5, 64);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string at = "encoder.pos_conv_embed.layers." + std::to_string(i) + ".conv";
      laid.add(at + ".weight", {sizes.hidden, sizes.hidden / groups, side}, 1);
      laid.add(at + ".bias", {sizes.hidden});
    }
  } else {
    laid.add("encoder.pos_conv_embed.bias", {sizes.hidden});
    laid.add("encoder.pos_conv_embed.original0", {1, 1, kernel});
    laid.add("encoder.pos_conv_embed.original1", {sizes.hidden, sizes.hidden / groups, kernel}, 1);
  }
  laid.norm("encoder.layer_norm", sizes.hidden, true);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const std::string at = "encoder.layers." + std::to_string(i) + ".";
    if (gated) lay_distance_gates(reader, laid, sizes.hidden, at, i == 0);
    lay_layer_of(laid, sizes, at);
  }
  lay_sound_head(reader, laid, sizes.hidden);
}
void wav2vec2(Reader& reader, Laid& laid) { lay_wav2vec2(reader, laid, false); }
void unispeech_sat(Reader& reader, Laid& laid) { lay_wav2vec2(reader, laid, false, true); }
void wavlm(Reader& reader, Laid& laid) { lay_wav2vec2(reader, laid, true); }

// Lays GPT-2 with an attention to the encoder in each layer.
std::int64_t lay_crossing_gpt2(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "n_embd"), words = width(reader, "vocab_size");
  const std::int64_t inner = width_or(reader, "n_inner", 4 * hidden);
  const std::int64_t count = layers(reader, "n_layer");
  laid.table("decoder.wpe", width_or(reader, "n_positions", 1024), hidden);
  laid.table("decoder.wte.embed_tokens", words, hidden);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string at = "decoder.h." + std::to_string(i) + ".";
    laid.norm(at + "ln_1", hidden, true);
    laid.linear(at + "attn.c_attn", hidden, 3 * hidden, true);
    laid.linear(at + "attn.c_proj", hidden, hidden, true);
    laid.norm(at + "ln_cross_attn", hidden, true);
    laid.linear(at + "crossattention.c_attn", hidden, 2 * hidden, true);
    laid.linear(at + "crossattention.q_attn", hidden, hidden, true);
    laid.linear(at + "crossattention.c_proj", hidden, hidden, true);
    laid.norm(at + "ln_2", hidden, true);
    laid.linear(at + "mlp.c_fc", hidden, inner, true);
    laid.linear(at + "mlp.c_proj", inner, hidden, true);
  }
  laid.norm("decoder.ln_f", hidden, true);
  laid.head("lm_head", words, hidden, flag_or(reader, "tie_word_embeddings", true));
  return hidden;
}

}  // namespace

std::int64_t lay_crossing_decoder(Reader& reader, const std::string& type, Laid& laid) {
  if (type == "gpt2") return lay_crossing_gpt2(reader, laid);
  if (type != "bart" && type != "mbart" && type != "trocr") return 0;
  lay_bart(reader, laid, *std::ranges::find(kBarts, type, &BartKind::type));
  return width_or(reader, "cross_attention_hidden_size", width(reader, "d_model"));
}

const std::vector<Family>& encoders() {
  static const std::vector<Family> rows = {
      {"bert", bert},
      {"ernie", bert},
      {"megatron-bert", megatron_bert},
      {"layoutlm", layoutlm},
      {"dpr", plain_bert},
      {"splinter", plain_bert},
      {"rembert", rembert},
      {"xlnet", xlnet},
      {"roberta", roberta},
      {"xlm-roberta", roberta},
      {"camembert", roberta},
      {"data2vec-text", roberta},
      {"roberta-prelayernorm", roberta_prelayernorm},
      {"xlm-roberta-xl", xlm_roberta_xl},
      {"longformer", longformer},
      {"big_bird", big_bird},
      {"distilbert", distilbert},
      {"albert", albert},
      {"electra", electra},
      {"deberta", deberta},
      {"deberta-v2", deberta_v2},
      {"mpnet", mpnet},
      {"modernbert", modernbert},
      {"t5", t5},
      {"mt5", mt5},
      {"umt5", umt5},
      {"longt5", t5},
      {"bart", bart<kBarts[0]>},
      {"plbart", bart<kBarts[1]>},
      {"mbart", bart<kBarts[2]>},
      {"m2m_100", bart<kBarts[3]>},
      {"pegasus", bart<kBarts[4]>},
      {"marian", bart<kBarts[5]>},
      {"blenderbot", bart<kBarts[6]>},
      {"blenderbot-small", bart<kBarts[7]>},
      {"trocr", bart<kBarts[8]>},
      {"speech_to_text", speech_to_text},
      {"whisper", whisper},
      {"wav2vec2", wav2vec2},
      {"hubert", wav2vec2},
      {"data2vec-audio", wav2vec2},
      {"unispeech", wav2vec2},
      {"unispeech-sat", unispeech_sat},
      {"wavlm", wavlm},
  };
  return rows;
}

}  // namespace syncline::job::models
