// Towers of images, and models of text and images.
#include <algorithm>
#include <array>

#include "catalogue/architectures/architecture.h"
#include "formats/json/text.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

// Defaults of transformers for keys that a part's config leaves out.
struct Usual {
  std::string_view type;
  const char* keys;
};
constexpr auto kUsual = std::to_array<Usual>({
    {"clip_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "image_size": 224, "patch_size": 32})"},
    {"clip_text_model",
     R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
         "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77})"},
    {"siglip_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "image_size": 224, "patch_size": 16})"},
    {"siglip2_vision_model",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "num_patches": 256, "patch_size": 16})"},
    {"internvl_vision",
     R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
         "num_attention_heads": 16})"},
    {"siglip_text_model",
     R"({"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072,
         "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 64})"},
    {"pixtral",
     R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
         "num_attention_heads": 16, "image_size": 1024, "patch_size": 16})"},
    {"qwen2_vl", R"({"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4,
                     "patch_size": 14})"},
    {"qwen2_5_vl",
     R"({"depth": 32, "hidden_size": 3584, "intermediate_size": 3420, "patch_size": 14,
         "out_hidden_size": 3584})"},
    {"qwen3_vl",
     R"({"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
         "out_hidden_size": 3584, "num_position_embeddings": 2304,
         "deepstack_visual_indexes": [8, 16, 24]})"},
    {"llama4_vision_model",
     R"({"hidden_size": 768, "num_hidden_layers": 34, "num_attention_heads": 16,
         "intermediate_size": 5632, "image_size": 448, "patch_size": 14,
         "vision_output_dim": 7680, "projector_input_dim": 4096, "projector_output_dim": 4096})"},
    {"mllama_vision_model",
     R"({"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
         "num_global_layers": 8, "image_size": 448, "patch_size": 14, "max_num_tiles": 4,
         "vision_output_dim": 7680, "intermediate_layers_indices": [3, 7, 15, 23, 30]})"},
    {"mllama_text_model",
     R"({"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
         "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]})"},
    {"llama", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                  "num_hidden_layers": 32, "num_attention_heads": 32})"},
    {"mistral", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "num_key_value_heads": 8})"},
    {"qwen2", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
                  "num_hidden_layers": 32, "num_attention_heads": 32,
                  "num_key_value_heads": 32})"},
    {"gemma", R"({"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576,
                  "num_hidden_layers": 28, "num_attention_heads": 16,
                  "num_key_value_heads": 16, "head_dim": 256})"},
    {"gemma2", R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216,
                   "num_hidden_layers": 26, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "head_dim": 256})"},
    {"gemma3_text",
     R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
         "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
         "head_dim": 256})"},
    {"llama4_text",
     R"({"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192,
         "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
         "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 1,
         "num_local_experts": 16})"},
});

// A part of a config with defaults for missing keys; the reader must not outlive it.
struct Part {
  Part(Reader& whole, const char* key, std::string_view usual_type)
      : json(Json::object()), file(whole.file()), place(whole.place_of(key)) {
    const Json* own = has_value(whole, key) ? whole.find(key) : nullptr;
    if (own != nullptr && !own->is_object()) whole.fail(key, "expected an object");
    const bool typed =
        own != nullptr && own->contains("model_type") && (*own)["model_type"].is_string();
    type = typed ? (*own)["model_type"].get<std::string>() : std::string(usual_type);
    const bool same = type == "siglip2_text_model";  // as the first version's
    const auto* row = std::ranges::find(kUsual, same ? "siglip_text_model" : type, &Usual::type);
    if (row != kUsual.end()) json = parse_json_text("usual keys", row->keys);
    if (own != nullptr) json.merge_patch(*own);
  }
  Reader reader() const { return {json, file, place}; }

  Json json;
  std::string file, place, type;
};

void lay_classes(Reader& reader, Laid& laid, std::int64_t hidden, const char* name) {
  constexpr std::int64_t kUsualClasses = 2;
  if (laid.ends_in({End::kClasses})) {
    laid.linear(name, hidden, classes_of(reader, kUsualClasses), true);
  }
}

// Patches of an image; the square root of how many there are.
std::int64_t patches_across(Reader& reader) {
  const std::int64_t image = size(reader, "image_size", operators::kMaxImage);
  const std::int64_t patch = size(reader, "patch_size", image);
  return image / patch;
}

void lay_patches(Reader& reader, Laid& laid, const std::string& name, std::int64_t hidden,
                 bool bias) {
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  laid.add(name + ".weight", {hidden, channels_of(reader), patch, patch}, 1);
  if (bias) laid.add(name + ".bias", {hidden});
}

// Lays the layers of CLIP's and SigLIP's towers, norms first.
void lay_clip_layers(Reader& reader, Laid& laid, const std::string& name) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t count = layers(reader, "num_hidden_layers");
  const bool bias = flag_or(reader, "qkv_bias", true);  // ViT's
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string at = name + "layers." + std::to_string(i) + ".";
    laid.norm(at + "layer_norm1", hidden, true);
    for (const char* part : {"k_proj", "v_proj", "q_proj"}) {
      laid.linear(at + part, hidden, hidden, bias);
    }
    laid.linear(at + "out_proj", hidden, hidden, true);
    laid.norm(at + "layer_norm2", hidden, true);
    laid.linear(at + "fc1", hidden, inner, true);
    laid.linear(at + "fc2", inner, hidden, true);
  }
}

void clip_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  laid.add("vision.class_embedding", {hidden});
  lay_patches(reader, laid, "vision.patch_embedding", hidden, false);
  laid.table("vision.position_embedding", across * across + 1, hidden);
  laid.norm("vision.pre_layrnorm", hidden, true);
  lay_clip_layers(reader, laid, "vision.");
  laid.norm("vision.post_layernorm", hidden, true);
}

void siglip_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  // The second version says the patches, not the image.
  const bool said = has_value(reader, "num_patches");
  const std::int64_t across = said ? 0 : patches_across(reader);
  if (said) {
    const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
    laid.linear("vision.patch_embedding", channels_of(reader) * patch * patch, hidden, true);
  } else {
    lay_patches(reader, laid, "vision.patch_embedding", hidden, true);
  }
  laid.table("vision.position_embedding", said ? width(reader, "num_patches") : across * across,
             hidden);
  lay_clip_layers(reader, laid, "vision.");
  laid.norm("vision.post_layernorm", hidden, true);
  if (!flag_or(reader, "vision_use_head", true)) return;
  laid.add("vision.head.probe", {1, 1, hidden});
  laid.add("vision.head.attention.in_proj_weight", {3 * hidden, hidden});
  laid.add("vision.head.attention.in_proj_bias", {3 * hidden});
  laid.linear("vision.head.attention.out_proj", hidden, hidden, true, 0);
  laid.norm("vision.head.layernorm", hidden, true);
  laid.linear("vision.head.fc1", hidden, inner, true, 0);
  laid.linear("vision.head.fc2", inner, hidden, true, 0);
}

void pixtral_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t heads = size(reader, "num_attention_heads", operators::kMaxHeads);
  const std::int64_t wide = heads * width_or(reader, "head_dim", hidden / heads);
  lay_patches(reader, laid, "vision.patch_conv", hidden, false);
  laid.norm("vision.ln_pre", hidden, false);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "vision.layers." + std::to_string(i) + ".";
    laid.norm(at + "attention_norm", hidden, false);
    for (const char* part : {"k_proj", "v_proj", "q_proj"}) {
      laid.linear(at + part, hidden, wide, false);
    }
    laid.linear(at + "o_proj", wide, hidden, false);
    laid.norm(at + "ffn_norm", hidden, false);
    laid.linear(at + "gate_proj", hidden, inner, false);
    laid.linear(at + "up_proj", hidden, inner, false);
    laid.linear(at + "down_proj", inner, hidden, false);
  }
}

// Lays the tower of a vision_config, by its type; returns its columns.
std::int64_t lay_vision(Reader& reader, const char* usual_type, Laid& laid) {
  const Part part(reader, "vision_config", usual_type);
  Reader own = part.reader();
  if (part.type == "clip_vision_model") {
    clip_vision(own, laid);
  } else if (part.type == "siglip_vision_model" || part.type == "siglip2_vision_model") {
    siglip_vision(own, laid);
  } else if (part.type == "pixtral") {
    pixtral_vision(own, laid);
  } else {
    own.fail("model_type", "'" + part.type +
                               "' is not known, only clip_vision_model, siglip_vision_model, "
                               "pixtral; `syncline init --tensors FILE` takes what torch prints");
  }
  return width(own, "hidden_size");
}

std::int64_t text_width(Reader& reader, const char* usual_type) {
  const Part part(reader, "text_config", usual_type);
  Reader own = part.reader();
  return width(own, "hidden_size");
}

void lay_llava(Reader& reader, Laid& laid, const char* usual_vision, const char* usual_text,
               bool newline) {
  const std::int64_t hidden = text_width(reader, usual_text);
  if (newline) laid.add("image_newline", {hidden});
  const std::int64_t seen = lay_vision(reader, usual_vision, laid);
  const bool bias = flag_or(reader, "multimodal_projector_bias", true);
  // Later ones concatenate the outputs of several layers.
  const bool several =
      has_value(reader, "vision_feature_layer") && reader.json()["vision_feature_layer"].is_array();
  const std::int64_t taken =
      several ? static_cast<std::int64_t>(reader.array("vision_feature_layer").size()) : 1;
  laid.linear("projector.linear_1", seen * std::clamp<std::int64_t>(taken, 1, 64), hidden, bias);
  laid.linear("projector.linear_2", hidden, hidden, bias);
  lay_text(reader, usual_text, laid);
}
void llava(Reader& reader, Laid& laid) {
  lay_llava(reader, laid, "clip_vision_model", "llama", false);
}
void llava_next(Reader& reader, Laid& laid) {
  lay_llava(reader, laid, "clip_vision_model", "llama", true);
}
void llava_onevision(Reader& reader, Laid& laid) {
  lay_llava(reader, laid, "siglip_vision_model", "qwen2", true);
}

// Lays LLaVA with the outputs of several layers and a norm of them.
void vipllava(Reader& reader, Laid& laid) {
  constexpr std::int64_t kUsualLayers = 5;
  const Json* taken = reader.find("vision_feature_layers");
  const std::int64_t many = taken != nullptr && taken->is_array() && !taken->empty()
                                ? static_cast<std::int64_t>(taken->size())
                                : kUsualLayers;
  const std::int64_t hidden = text_width(reader, "llama");
  const std::int64_t seen =
      lay_vision(reader, "clip_vision_model", laid) * std::min<std::int64_t>(many, 64);
  laid.norm("projector.projector_layernorm", seen, true);
  laid.linear("projector.linear_1", seen, hidden, true);
  laid.linear("projector.linear_2", hidden, hidden, true);
  lay_text(reader, "llama", laid);
}

// Returns a side that is given as one number, or as two equal ones.
std::int64_t side_in(Reader& reader, const char* key, std::int64_t fallback) {
  const Json* value = has_value(reader, key) ? reader.find(key) : nullptr;
  if (value == nullptr || !value->is_array()) {
    return size_or(reader, key, fallback, operators::kMaxImage);
  }
  const bool square = value->size() == 2 && (*value)[0].is_number_integer() &&
                      (*value)[0] == (*value)[1] && (*value)[0] > 0 &&
                      (*value)[0] <= operators::kMaxImage;
  if (!square) reader.fail(key, "only two equal sides are known");
  return (*value)[0].get<std::int64_t>();
}

// Lays InternVL's tower: BEiT's layers with a bias of the attention's output alone.
void internvl_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t patch = side_in(reader, "patch_size", 14);
  const std::int64_t across = side_in(reader, "image_size", 448) / patch;
  const bool bias = flag_or(reader, "attention_bias", false);
  const bool rms = has_value(reader, "norm_type") && reader.text("norm_type") == "rms_norm";
  for (const char* key : {"use_qk_norm", "use_mask_token"}) expect_flag(reader, key, false);
  laid.add("vision.cls_token", {1, 1, hidden});
  laid.add("vision.patch_embeddings.weight", {hidden, channels_of(reader), patch, patch}, 1);
  laid.add("vision.patch_embeddings.bias", {hidden});
  if (flag_or(reader, "use_absolute_position_embeddings", true)) {
    laid.add("vision.position_embeddings", {1, across * across + 1, hidden});
  }
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "vision.layer." + std::to_string(i) + ".";
    laid.norm(at + "layernorm_before", hidden, !rms);
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      laid.linear(at + part, hidden, hidden, bias);
    }
    laid.linear(at + "projection_layer", hidden, hidden, true);
    laid.add(at + "lambda_1", {hidden});
    laid.norm(at + "layernorm_after", hidden, !rms);
    laid.linear(at + "fc1", hidden, inner, true);
    laid.linear(at + "fc2", inner, hidden, true);
    laid.add(at + "lambda_2", {hidden});
  }
  if (!flag_or(reader, "use_mean_pooling", true)) laid.norm("vision.layernorm", hidden, true);
}

// Lays InternVL: four patches in a token of text.
void internvl(Reader& reader, Laid& laid) {
  const Part part(reader, "vision_config", "internvl_vision");
  Reader seen = part.reader();
  const Json* ratio = reader.find("downsample_ratio");
  if (ratio != nullptr && ratio->is_number() && ratio->get<double>() != 0.5) {
    reader.fail("downsample_ratio", "only 0.5 is known");
  }
  internvl_vision(seen, laid);
  const std::int64_t four = 4 * width(seen, "hidden_size");
  const std::int64_t hidden = text_width(reader, "qwen2");
  laid.norm("projector.layer_norm", four, true);
  laid.linear("projector.linear_1", four, hidden, true);
  laid.linear("projector.linear_2", hidden, hidden, true);
  lay_text(reader, "qwen2", laid);
}

void lfm2_vl(Reader& reader, Laid& laid) {
  const std::int64_t seen = lay_vision(reader, "siglip2_vision_model", laid);
  const std::int64_t side = size_or(reader, "downsample_factor", 2, 64), ahead = seen * side * side;
  const std::int64_t between = width_or(reader, "projector_hidden_size", 2560);
  const bool bias = flag_or(reader, "projector_bias", true);
  const Part text(reader, "text_config", "lfm2");
  Reader own = text.reader();
  laid.norm("projector.layer_norm", ahead, true);
  laid.linear("projector.linear_1", ahead, between, bias);
  laid.linear("projector.linear_2", between, width(own, "hidden_size"), bias);
  lay_text(reader, "lfm2", laid);
}

void paligemma(Reader& reader, Laid& laid) {
  const std::int64_t seen = lay_vision(reader, "siglip_vision_model", laid);
  constexpr std::int64_t kUsualColumns = 2048;
  laid.linear("projector.linear", seen, width_or(reader, "projection_dim", kUsualColumns), true);
  lay_text(reader, "gemma", laid);
}

void mistral3(Reader& reader, Laid& laid) {
  const std::int64_t seen = lay_vision(reader, "pixtral", laid);
  const std::int64_t hidden = text_width(reader, "mistral");
  const std::int64_t side = size_or(reader, "spatial_merge_size", 2, operators::kMaxImage);
  const bool bias = flag_or(reader, "multimodal_projector_bias", false);
  laid.norm("projector.norm", seen, false);
  laid.linear("projector.merging_layer", seen * side * side, seen, false);
  laid.linear("projector.linear_1", seen, hidden, bias);
  laid.linear("projector.linear_2", hidden, hidden, bias);
  lay_text(reader, "mistral", laid);
}

void gemma3(Reader& reader, Laid& laid) {
  const std::int64_t seen = lay_vision(reader, "siglip_vision_model", laid);
  const std::int64_t hidden = text_width(reader, "gemma3_text");
  laid.add("projector.mm_input_projection_weight", {seen, hidden}, 1);
  laid.norm("projector.mm_soft_emb_norm", seen, false);
  lay_text(reader, "gemma3_text", laid);
}

// Qwen's tower: patches of two frames, groups of four merged into one token.
struct QwenTower {
  std::int64_t hidden, inner, out;
  bool rms, gated, patch_bias;
};

void lay_qwen_blocks(Reader& reader, Laid& laid, const QwenTower& tower) {
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  const std::int64_t channels = size_or(reader, "in_channels", 3, operators::kMaxHidden);
  laid.add("vision.patch_embed.proj.weight", {tower.hidden, channels, 2, patch, patch}, 1);
  if (tower.patch_bias) laid.add("vision.patch_embed.proj.bias", {tower.hidden});
  if (has_value(reader, "num_position_embeddings")) {
    laid.table("vision.pos_embed", width(reader, "num_position_embeddings"), tower.hidden);
  }
  for (std::int64_t i = 0, count = layers(reader, "depth"); i < count; ++i) {
    const std::string at = "vision.blocks." + std::to_string(i) + ".";
    laid.norm(at + "norm1", tower.hidden, !tower.rms);
    laid.linear(at + "attn.qkv", tower.hidden, 3 * tower.hidden, true);
    laid.linear(at + "attn.proj", tower.hidden, tower.hidden, true);
    laid.norm(at + "norm2", tower.hidden, !tower.rms);
    if (tower.gated) laid.linear(at + "mlp.gate_proj", tower.hidden, tower.inner, true);
    laid.linear(at + "mlp.up_proj", tower.hidden, tower.inner, true);
    laid.linear(at + "mlp.down_proj", tower.inner, tower.hidden, true);
  }
}

// Lays a merger of four patches. `joined`: the norm is of the four together.
void lay_merger(Laid& laid, const QwenTower& tower, const std::string& at, bool joined) {
  const std::int64_t four = 4 * tower.hidden;
  laid.norm(at + "ln_q", joined ? four : tower.hidden, !tower.rms);
  laid.linear(at + "mlp.0", four, four, true, 0.25);
  laid.linear(at + "mlp.2", four, tower.out, true, 0.25);
}

void qwen2_vl(Reader& reader, Laid& laid) {
  const Part part(reader, "vision_config", "qwen2_vl");
  Reader own = part.reader();
  const std::int64_t hidden = width(own, "embed_dim");
  const QwenTower tower{
      hidden, hidden * size_or(own, "mlp_ratio", 4, 64), width(own, "hidden_size"), false, false,
      false};
  lay_qwen_blocks(own, laid, tower);
  lay_merger(laid, tower, "vision.merger.", false);
  lay_text(reader, "qwen2", laid);
}

void qwen2_5_vl(Reader& reader, Laid& laid) {
  const Part part(reader, "vision_config", "qwen2_5_vl");
  Reader own = part.reader();
  const QwenTower tower{width(own, "hidden_size"),
                        width(own, "intermediate_size"),
                        width(own, "out_hidden_size"),
                        true,
                        true,
                        false};
  lay_qwen_blocks(own, laid, tower);
  lay_merger(laid, tower, "vision.merger.", false);
  lay_text(reader, "qwen2", laid);
}

void lay_qwen3_vl(Reader& reader, Laid& laid, const char* text) {
  const Part part(reader, "vision_config", "qwen3_vl");
  Reader own = part.reader();
  const QwenTower tower{width(own, "hidden_size"),
                        width(own, "intermediate_size"),
                        width(own, "out_hidden_size"),
                        false,
                        false,
                        true};
  lay_qwen_blocks(own, laid, tower);
  lay_merger(laid, tower, "vision.merger.", false);
  const char* key = "deepstack_visual_indexes";
  const std::size_t more = has_value(own, key) ? own.array(key).size() : 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(more, operators::kMaxLayers); ++i) {
    lay_merger(laid, tower, "vision.deepstack_merger_list." + std::to_string(i) + ".", true);
  }
  lay_text(reader, text, laid);
}
void qwen3_vl(Reader& reader, Laid& laid) { lay_qwen3_vl(reader, laid, "qwen3"); }
void qwen3_5(Reader& reader, Laid& laid) { lay_qwen3_vl(reader, laid, "qwen3_5_text"); }
void qwen3_5_moe(Reader& reader, Laid& laid) { lay_qwen3_vl(reader, laid, "qwen3_5_moe_text"); }

void llama4_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  laid.linear("vision.patch_embedding.linear", channels_of(reader) * patch * patch, hidden, false);
  laid.add("vision.class_embedding", {hidden});
  laid.table("vision.positional_embedding_vlm", across * across + 1, hidden);
  laid.norm("vision.layernorm_pre", hidden, true);
  lay_clip_layers(reader, laid, "vision.");
  laid.norm("vision.layernorm_post", hidden, true);
  const std::int64_t out = width(reader, "projector_output_dim");
  laid.linear("vision.vision_adapter.fc1", width(reader, "intermediate_size"),
              width(reader, "projector_input_dim"), false);
  laid.linear("vision.vision_adapter.fc2", out, out, false);
}

void llama4(Reader& reader, Laid& laid) {
  const Part part(reader, "vision_config", "llama4_vision_model");
  Reader own = part.reader();
  llama4_vision(own, laid);
  laid.linear("projector.linear_1", width(own, "vision_output_dim"),
              text_width(reader, "llama4_text"), false);
  lay_text(reader, "llama4_text", laid);
}

// Lays layers of Mllama's tower; those of the second kind are `gated`.
void lay_mllama_layers(Reader& reader, Laid& laid, const char* key, const std::string& name,
                       bool gated) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  for (std::int64_t i = 0, count = layers(reader, key); i < count; ++i) {
    const std::string at = name + "layers." + std::to_string(i) + ".";
    laid.norm(at + "input_layernorm", hidden, true);
    for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      laid.linear(at + part, hidden, hidden, false);
    }
    laid.norm(at + "post_attention_layernorm", hidden, true);
    laid.linear(at + "fc1", hidden, inner, true);
    laid.linear(at + "fc2", inner, hidden, true);
    if (gated) laid.add(at + "gate_attn", {1});
    if (gated) laid.add(at + "gate_ffn", {1});
  }
}

void mllama_vision(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  const std::int64_t rows = across * across + 1;
  const std::int64_t tiles = size(reader, "max_num_tiles", 64);
  constexpr std::size_t kUsualRatios = 8;
  const Json* ratios = reader.find("supported_aspect_ratios");
  const auto kinds = static_cast<std::int64_t>(
      1 + (ratios != nullptr && ratios->is_array() ? ratios->size() : kUsualRatios));
  laid.add("vision.class_embedding", {hidden});
  lay_patches(reader, laid, "vision.patch_embedding", hidden, false);
  laid.add("vision.gated_positional_embedding.gate", {1});
  laid.add("vision.gated_positional_embedding.embedding", {rows, hidden});
  laid.table("vision.gated_positional_embedding.tile_embedding", kinds, tiles * rows * hidden);
  for (const char* part : {"pre", "post"}) {
    const std::string at = std::string("vision.") + part + "_tile_positional_embedding.";
    laid.add(at + "gate", {1});
    laid.table(at + "embedding", kinds, tiles * hidden);
  }
  laid.norm("vision.layernorm_pre", hidden, true);
  lay_mllama_layers(reader, laid, "num_hidden_layers", "vision.transformer.", false);
  laid.norm("vision.layernorm_post", hidden, true);
  lay_mllama_layers(reader, laid, "num_global_layers", "vision.global_transformer.", true);
}

// Lays a layer of the text model, which looks at itself, or at the image through two gates.
void lay_mllama_text_layer(Reader& reader, Laid& laid, const std::string& at, bool crosses) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t heads = size(reader, "num_attention_heads", operators::kMaxHeads);
  const std::int64_t wide = hidden / heads;
  const std::int64_t keys =
      wide * size_or(reader, "num_key_value_heads", heads, operators::kMaxHeads);
  laid.norm(at + "input_layernorm", hidden, false);
  laid.linear(at + "q_proj", hidden, hidden, false);
  laid.linear(at + "k_proj", hidden, keys, false);
  laid.linear(at + "v_proj", hidden, keys, false);
  if (crosses) {
    laid.norm(at + "q_norm", wide, false);
    laid.norm(at + "k_norm", wide, false);
  }
  laid.linear(at + "o_proj", hidden, hidden, false);
  if (crosses) laid.add(at + "cross_attn_attn_gate", {1});
  laid.norm(at + "post_attention_layernorm", hidden, false);
  for (const char* part : {"gate_proj", "up_proj"}) laid.linear(at + part, hidden, inner, false);
  laid.linear(at + "down_proj", inner, hidden, false);
  if (crosses) laid.add(at + "cross_attn_mlp_gate", {1});
}

void mllama(Reader& reader, Laid& laid) {
  constexpr std::int64_t kMoreWords = 8;
  const Part vision(reader, "vision_config", "mllama_vision_model");
  const Part text(reader, "text_config", "mllama_text_model");
  Reader seen = vision.reader(), own = text.reader();
  mllama_vision(seen, laid);
  const std::int64_t hidden = width(own, "hidden_size"), words = width(own, "vocab_size");
  laid.linear("projector", width(seen, "vision_output_dim"), hidden, true);
  const Json& crossing = own.array("cross_attention_layers");
  laid.table("model.embed_tokens", words + kMoreWords, hidden);
  for (std::int64_t i = 0, count = layers(own, "num_hidden_layers"); i < count; ++i) {
    const bool crosses = std::ranges::find(crossing, Json(i)) != crossing.end();
    lay_mllama_text_layer(own, laid, "model.layers." + std::to_string(i) + ".", crosses);
  }
  laid.norm("model.norm", hidden, false);
  laid.head("lm_head", words, hidden, false);
}

void clip_text(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  laid.table("text.token_embedding.word_emb", width(reader, "vocab_size"), hidden);
  laid.table("text.position_embedding", width(reader, "max_position_embeddings"), hidden);
  lay_clip_layers(reader, laid, "text.");
  laid.norm("text.final_layer_norm", hidden, true);
}

// Lays a text and an image tower, each with a product to a common width.
void clip(Reader& reader, Laid& laid) {
  const Part vision(reader, "vision_config", "clip_vision_model");
  const Part text(reader, "text_config", "clip_text_model");
  Reader seen = vision.reader(), own = text.reader();
  if (laid.ends_in({End::kClasses})) {
    clip_vision(seen, laid);
    return lay_classes(reader, laid, width(seen, "hidden_size"), "classifier");
  }
  const std::int64_t hidden = width(own, "hidden_size");
  const std::int64_t common = width_or(reader, "projection_dim", 512);
  laid.add("logit_scale", {});
  clip_text(own, laid);
  clip_vision(seen, laid);
  laid.linear("visual_projection", width(seen, "hidden_size"), common, false, 0);
  laid.linear("text_projection", hidden, common, false, 0);
}

void siglip(Reader& reader, Laid& laid) {
  const Part vision(reader, "vision_config", "siglip_vision_model");
  const Part text(reader, "text_config", "siglip_text_model");
  Reader seen = vision.reader(), own = text.reader();
  if (laid.ends_in({End::kClasses})) {
    siglip_vision(seen, laid);
    return lay_classes(reader, laid, width(seen, "hidden_size"), "classifier");
  }
  const std::int64_t hidden = width(own, "hidden_size");
  laid.add("logit_scale", {1});
  laid.add("logit_bias", {1});
  clip_text(own, laid);
  laid.linear("text.head", hidden, width_or(own, "projection_size", hidden), true, 0);
  siglip_vision(seen, laid);
}

// Lays ViT in torch's order of use; `tokens`: of the class, and DeiT's second one.
void lay_vit(Reader& reader, Laid& laid, int tokens, bool positions = true) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  if (tokens > 0) laid.add("embeddings.cls_token", {1, 1, hidden});
  if (tokens > 1) laid.add("embeddings.distillation_token", {1, 1, hidden});
  if (positions) laid.add("embeddings.position_embeddings", {1, across * across + tokens, hidden});
  lay_patches(reader, laid, "embeddings.patch_embeddings", hidden, true);
  lay_clip_layers(reader, laid, "encoder.");
  laid.norm("layernorm", hidden, true);
}

// Lays YOLOS: ViT with tokens of the objects, and positions between its layers too.
void yolos(Reader& reader, Laid& laid) {
  constexpr std::int64_t kUsualObjects = 100, kCorners = 4;
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t objects = width_or(reader, "num_detection_tokens", kUsualObjects);
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  const Json& sides = reader.array("image_size");
  std::int64_t rows = 1;
  for (const Json& side : sides) {
    const bool whole = side.is_number_integer() && side >= patch && side <= operators::kMaxImage;
    if (!whole || sides.size() != 2) reader.fail("image_size", "expected two sides in pixels");
    rows *= side.get<std::int64_t>() / patch;
  }
  laid.add("embeddings.cls_token", {1, 1, hidden});
  laid.add("embeddings.detection_tokens", {1, objects, hidden});
  laid.add("embeddings.position_embeddings", {1, rows + objects + 1, hidden});
  lay_patches(reader, laid, "embeddings.patch_embeddings", hidden, true);
  const std::int64_t count = layers(reader, "num_hidden_layers");
  if (flag_or(reader, "use_mid_position_embeddings", true) && count > 1) {
    laid.add("encoder.mid_position_embeddings", {count - 1, 1, rows + objects + 1, hidden});
  }
  lay_clip_layers(reader, laid, "encoder.");
  laid.norm("layernorm", hidden, true);
  if (laid.ends_in({End::kNone})) laid.linear("pooler.dense", hidden, hidden, true);
  if (!laid.ends_in({End::kBoxes})) return;
  for (const auto& [name, out] : {std::pair{"class_labels_classifier", classes_of(reader, 2) + 1},
                                  {"bbox_predictor", kCorners}}) {
    laid.linear(name + std::string(".0"), hidden, hidden, true, 0);
    laid.linear(name + std::string(".1"), hidden, hidden, true, 0);
    laid.linear(name + std::string(".2"), hidden, out, true, 0);
  }
}

// Lays VideoMAE: patches of several frames; nobody trains its positions.
void videomae(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  const bool bias = flag_or(reader, "qkv_bias", true);
  const bool mean = flag_or(reader, "use_mean_pooling", true);
  laid.add("embeddings.patch_embeddings.weight",
           {hidden, channels_of(reader), size_or(reader, "tubelet_size", 2, 64), patch, patch}, 1);
  laid.add("embeddings.patch_embeddings.bias", {hidden});
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    laid.norm(at + "layernorm_before", hidden, true);
    for (const char* part : {"query", "key", "value"}) {
      laid.linear(at + part, hidden, hidden, bias && part[0] != 'k');
    }
    laid.linear(at + "output", hidden, hidden, true);
    laid.norm(at + "layernorm_after", hidden, true);
    laid.linear(at + "intermediate", hidden, inner, true);
    laid.linear(at + "out", inner, hidden, true);
  }
  if (!mean || laid.ends_in({End::kClasses})) laid.norm("norm", hidden, true);
  laid.ends_in({End::kNone});
  lay_classes(reader, laid, hidden, "classifier");
}

// Lays DINOv3: positions are turns of queries and keys.
void dinov3_vit(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t inner = width(reader, "intermediate_size");
  const bool gated = flag_or(reader, "use_gated_mlp", false);
  const bool bias = flag_or(reader, "mlp_bias", true);
  const Json* registers = reader.find("num_register_tokens");
  laid.add("embeddings.cls_token", {1, 1, hidden});
  laid.add("embeddings.mask_token", {1, 1, hidden});
  if (registers != nullptr && *registers != 0) {
    laid.add("embeddings.register_tokens", {1, size(reader, "num_register_tokens", 1024), hidden});
  }
  lay_patches(reader, laid, "embeddings.patch_embeddings", hidden, true);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "layer." + std::to_string(i) + ".";
    laid.norm(at + "norm1", hidden, true);
    laid.linear(at + "k_proj", hidden, hidden, flag_or(reader, "key_bias", false));
    laid.linear(at + "v_proj", hidden, hidden, flag_or(reader, "value_bias", true));
    laid.linear(at + "q_proj", hidden, hidden, flag_or(reader, "query_bias", true));
    laid.linear(at + "o_proj", hidden, hidden, flag_or(reader, "proj_bias", true));
    laid.add(at + "layer_scale1", {hidden});
    laid.norm(at + "norm2", hidden, true);
    if (gated) laid.linear(at + "mlp.gate_proj", hidden, inner, bias);
    laid.linear(at + "mlp.up_proj", hidden, inner, bias);
    laid.linear(at + "mlp.down_proj", inner, hidden, bias);
    laid.add(at + "layer_scale2", {hidden});
  }
  laid.norm("norm", hidden, true);
  laid.ends_in({End::kNone});
}

// Lays Whisper's encoder ahead of a text model; Voxtral has Llama's names and two products between.
template <bool voxtral>
void sound_and_text(Reader& reader, Laid& laid) {
  const Part part(reader, "audio_config", voxtral ? "voxtral_encoder" : "qwen2_audio_encoder");
  Json keys = {
      {"d_model", 1280}, {"encoder_layers", 32}, {"encoder_ffn_dim", 5120}, {"num_mel_bins", 128}};
  keys.merge_patch(part.json);
  for (const auto& [theirs, here] : {std::pair{"hidden_size", "d_model"},
                                     {"num_hidden_layers", "encoder_layers"},
                                     {"intermediate_size", "encoder_ffn_dim"}}) {
    if (voxtral && part.json.contains(theirs)) keys[here] = keys[theirs];
  }
  Reader sound(keys, part.file, part.place);
  lay_sound_encoder(sound, laid);
  const Part text(reader, "text_config", voxtral ? "llama" : "qwen2");
  Reader own = text.reader();
  const std::int64_t hidden = width(own, "hidden_size");
  if (voxtral) laid.linear("projector.1", width(sound, "encoder_ffn_dim"), hidden, false);
  if (voxtral) laid.linear("projector.2", hidden, hidden, false);
  if (!voxtral) laid.linear("projector", width(sound, "d_model"), hidden, true);
  lay_text(reader, voxtral ? "llama" : "qwen2", laid);
}

void lay_vit_pooler(Reader& reader, Laid& laid) {
  const std::int64_t hidden = width(reader, "hidden_size");
  if (!laid.ends_in({End::kNone})) return;
  laid.linear("pooler.dense", hidden, width_or(reader, "pooler_output_size", hidden), true);
}

template <int tokens, bool pooled>
void vit(Reader& reader, Laid& laid) {
  lay_vit(reader, laid, tokens);
  if (pooled) lay_vit_pooler(reader, laid);
  const std::int64_t hidden = width(reader, "hidden_size");
  lay_classes(reader, laid, hidden, "classifier");
  if (tokens < 2 || !laid.ends_in({End::kTaught})) return;
  for (const char* name : {"cls_classifier", "distillation_classifier"}) {
    laid.linear(name, hidden, classes_of(reader, 2), true);
  }
}

// Lays ViT and, to train it, a decoder that draws masked patches; nobody trains its positions.
void vit_mae(Reader& reader, Laid& laid) {
  lay_vit(reader, laid, 1, false);
  if (!laid.ends_in({End::kPretrain})) return;
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t own = width_or(reader, "decoder_hidden_size", 512);
  const std::int64_t patch = size(reader, "patch_size", operators::kMaxImage);
  const Json keys = {{"hidden_size", own},
                     {"qkv_bias", flag_or(reader, "qkv_bias", true)},
                     {"intermediate_size", width_or(reader, "decoder_intermediate_size", 2048)},
                     {"num_hidden_layers",
                      size_or(reader, "decoder_num_hidden_layers", 8, operators::kMaxLayers)}};
  Reader decoder(keys, reader.file(), reader.place());
  laid.linear("decoder.decoder_embed", hidden, own, true);
  laid.add("decoder.mask_token", {1, 1, own});
  lay_clip_layers(decoder, laid, "decoder.");
  laid.norm("decoder.decoder_norm", own, true);
  laid.linear("decoder.decoder_pred", own, patch * patch * channels_of(reader), true);
}

// Lays ViT over patches of a sound's spectrum, which overlap.
void audio_spectrogram_transformer(Reader& reader, Laid& laid) {
  constexpr std::int64_t kTokens = 2, kStride = 10, kBands = 128, kLength = 1024;
  const std::int64_t hidden = width(reader, "hidden_size");
  const std::int64_t bands = width_or(reader, "num_mel_bins", kBands);
  const std::int64_t length = width_or(reader, "max_length", kLength);
  const std::int64_t patch = size(reader, "patch_size", std::min(bands, length));
  const std::int64_t down = (bands - patch) / width_or(reader, "frequency_stride", kStride) + 1;
  const std::int64_t along = (length - patch) / width_or(reader, "time_stride", kStride) + 1;
  laid.add("embeddings.cls_token", {1, 1, hidden});
  laid.add("embeddings.distillation_token", {1, 1, hidden});
  laid.add("embeddings.position_embeddings", {1, down * along + kTokens, hidden});
  laid.add("embeddings.patch_embeddings.weight", {hidden, 1, patch, patch}, 1);
  laid.add("embeddings.patch_embeddings.bias", {hidden});
  lay_clip_layers(reader, laid, "encoder.");
  laid.norm("layernorm", hidden, true);
  if (!laid.ends_in({End::kSounds})) return;
  constexpr std::int64_t kUsualClasses = 2;
  laid.norm("classifier.layernorm", hidden, true);
  laid.linear("classifier.dense", hidden, classes_of(reader, kUsualClasses), true);
}

// ViT or DeiT with its pooler, and a decoder of text.
void vision_encoder_decoder(Reader& reader, Laid& laid) {
  const Part seen(reader, "encoder", ""), told(reader, "decoder", "");
  Reader images = seen.reader(), text = told.reader();
  if (seen.type != "vit" && seen.type != "deit") {
    images.fail("model_type", "'" + seen.type + "' is not known here: vit and deit are");
  }
  const std::int64_t hidden = width(images, "hidden_size");
  lay_vit(images, laid, seen.type == "deit" ? 2 : 1);
  laid.linear("encoder.pooler.dense", hidden, hidden, true);
  Laid decoder(End::kCausal);
  const std::int64_t own = lay_crossing_decoder(text, told.type, decoder);
  if (own == 0) {
    text.fail("model_type",
              "'" + told.type + "' is not known here: bart, mbart, trocr and gpt2 are");
  }
  if (own != hidden) laid.linear("enc_to_dec_proj", hidden, own, true);
  laid.append(std::move(decoder.all));
}

void lay_dinov2(Reader& reader, Laid& laid, std::int64_t registers) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  std::int64_t inner = hidden * size_or(reader, "mlp_ratio", 4, 64);
  const bool gated = flag_or(reader, "use_swiglu_ffn", false);
  if (gated) inner = (inner * 2 / 3 + 7) / 8 * 8;
  laid.add("embeddings.cls_token", {1, 1, hidden});
  if (flag_or(reader, "use_mask_token", true)) laid.add("embeddings.mask_token", {1, hidden});
  if (registers > 0) laid.add("embeddings.register_tokens", {1, registers, hidden});
  laid.add("embeddings.position_embeddings", {1, across * across + 1, hidden});
  lay_patches(reader, laid, "embeddings.patch_embeddings", hidden, true);
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    laid.norm(at + "norm1", hidden, true);
    for (const char* part : {"query", "key", "value", "dense"}) {
      laid.linear(at + part, hidden, hidden, true);
    }
    laid.add(at + "layer_scale1", {hidden});
    laid.norm(at + "norm2", hidden, true);
    laid.linear(at + "mlp.in", hidden, gated ? 2 * inner : inner, true);
    laid.linear(at + "mlp.out", inner, hidden, true);
    laid.add(at + "layer_scale2", {hidden});
  }
  laid.norm("layernorm", hidden, true);
  // The classifier reads the class's token and the mean of the others.
  lay_classes(reader, laid, 2 * hidden, "classifier");
}
void dinov2(Reader& reader, Laid& laid) { lay_dinov2(reader, laid, 0); }
void dinov2_with_registers(Reader& reader, Laid& laid) {
  constexpr std::int64_t kUsualTokens = 4;
  lay_dinov2(reader, laid, width_or(reader, "num_register_tokens", kUsualTokens));
}

// Lays BEiT: keys without a bias, layers' outputs scaled, distances' biases for each layer.
// `pooled`: the model without a head has a last norm too.
void lay_beit(Reader& reader, Laid& laid, bool pooled) {
  const std::int64_t hidden = width(reader, "hidden_size"), across = patches_across(reader);
  const std::int64_t inner = width(reader, "intermediate_size");
  const std::int64_t heads = size(reader, "num_attention_heads", operators::kMaxHeads);
  const std::int64_t distances = (2 * across - 1) * (2 * across - 1) + 3;
  const Json* scale = reader.find("layer_scale_init_value");
  const bool scaled = scale == nullptr || !scale->is_number() || scale->get<double>() > 0;
  laid.add("embeddings.cls_token", {1, 1, hidden});
  if (flag_or(reader, "use_mask_token", false)) laid.add("embeddings.mask_token", {1, 1, hidden});
  lay_patches(reader, laid, "embeddings.patch_embeddings", hidden, true);
  if (flag_or(reader, "use_absolute_position_embeddings", false)) {
    laid.add("embeddings.position_embeddings", {1, across * across + 1, hidden});
  }
  const auto lay_bias = [&](const std::string& at) {
    laid.table(at + "relative_position_bias_table", distances, heads);
  };
  if (flag_or(reader, "use_shared_relative_position_bias", false)) lay_bias("encoder.");
  for (std::int64_t i = 0, count = layers(reader, "num_hidden_layers"); i < count; ++i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    laid.norm(at + "layernorm_before", hidden, true);
    for (const char* part : {"query", "key", "value"}) {
      laid.linear(at + part, hidden, hidden, part[0] != 'k');
    }
    if (flag_or(reader, "use_relative_position_bias", false)) lay_bias(at);
    laid.linear(at + "output", hidden, hidden, true);
    if (scaled) laid.add(at + "lambda_1", {hidden});
    laid.norm(at + "layernorm_after", hidden, true);
    laid.linear(at + "intermediate", hidden, inner, true);
    laid.linear(at + "out", inner, hidden, true);
    if (scaled) laid.add(at + "lambda_2", {hidden});
  }
  if (pooled || laid.ends_in({End::kClasses})) laid.norm("pooler.layernorm", hidden, true);
  lay_classes(reader, laid, hidden, "classifier");
}
void beit(Reader& reader, Laid& laid) { lay_beit(reader, laid, true); }
void data2vec_vision(Reader& reader, Laid& laid) { lay_beit(reader, laid, false); }

}  // namespace

void lay_text(Reader& reader, const char* usual_type, Laid& laid) {
  // Older files have the keys of the text model at the top.
  const bool flat = !has_value(reader, "text_config");
  const Part part(reader, "text_config", usual_type);
  Json json = flat ? reader.json() : part.json;
  std::string type = flat ? usual_type : part.type;
  if (type.ends_with("_vl_text")) type = usual_type;
  const char* tie = "tie_word_embeddings";  // of the whole, in transformers 5
  if (type.starts_with("qwen3_5") && has_value(reader, tie)) json[tie] = reader.json()[tie];
  Reader own(json, reader.file(), flat ? reader.place() : part.place);
  for (const Family& family : decoders()) {
    if (family.type == type) return family.lay(own, laid);
  }
  if (lay_shaped(own, type, laid)) return;
  own.fail("model_type", "'" + type +
                             "' is not known; `syncline init --tensors FILE` takes what torch "
                             "prints of any model");
}

const std::vector<Family>& towers() {
  static const std::vector<Family> rows = {
      {"vit", vit<1, true>},
      {"deit", vit<2, true>},
      {"ijepa", vit<0, false>},
      {"vit_msn", vit<1, false>},
      {"vit_mae", vit_mae},
      {"audio-spectrogram-transformer", audio_spectrogram_transformer},
      {"beit", beit},
      {"data2vec-vision", data2vec_vision},
      {"dinov2", dinov2},
      {"dinov2_with_registers", dinov2_with_registers},
      {"vision-encoder-decoder", vision_encoder_decoder},
      {"clip", clip},
      {"clip_vision_model", clip_vision},
      {"clip_text_model", clip_text},
      {"siglip", siglip},
      {"siglip_vision_model", siglip_vision},
      {"siglip2", siglip},
      {"siglip2_vision_model", siglip_vision},
      {"yolos", yolos},
      {"videomae", videomae},
      {"dinov3_vit", dinov3_vit},
      {"qwen2_audio", sound_and_text<false>},
      {"voxtral", sound_and_text<true>},
      {"llava", llava},
      {"llava_next", llava_next},
      {"llava_next_video", llava_next},
      {"llava_onevision", llava_onevision},
      {"vipllava", vipllava},
      {"paligemma", paligemma},
      {"lfm2_vl", lfm2_vl},
      {"internvl", internvl},
      {"internvl_vision", internvl_vision},
      {"mistral3", mistral3},
      {"gemma3", gemma3},
      {"qwen2_vl", qwen2_vl},
      {"qwen2_5_vl", qwen2_5_vl},
      {"qwen3_vl", qwen3_vl},
      {"qwen3_5", qwen3_5},
      {"qwen3_5_moe", qwen3_5_moe},
      {"llama4", llama4},
      {"mllama", mllama},
  };
  return rows;
}

}  // namespace syncline::job::models
