// Towers of images in stages, each with fewer and wider positions than the one ahead of it.
#include <algorithm>
#include <string>

#include "catalogue/architectures/architecture.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

// Returns an entry of a list of sizes.
std::int64_t listed(Reader& reader, const char* key, std::size_t i) {
  const Json& list = reader.array(key);
  const bool whole = i < list.size() && list[i].is_number_integer();
  const std::int64_t found = whole ? list[i].get<std::int64_t>() : 0;
  if (found < 1 || found > operators::kMaxHidden) reader.fail(key, "expected a size a stage");
  return found;
}

std::size_t stages_of(Reader& reader) {
  constexpr std::size_t kMaxStages = 16;
  const std::size_t stages = reader.array("depths").size();
  if (stages < 1 || stages > kMaxStages) reader.fail("depths", "expected 1 to 16 stages");
  return stages;
}

// Returns the positions of a square image at a step between them, as a share of the tokens that
// FLOPs are counted for.
double positions_at(std::int64_t image, std::int64_t step) {
  const auto across = static_cast<double>(std::max<std::int64_t>(image / step, 1));
  constexpr double kCounted = 1024;
  return across * across / kCounted;
}

std::int64_t image_of(Reader& reader, std::int64_t usual) {
  return size_or(reader, "image_size", usual, operators::kMaxImage);
}

void lay_last(Reader& reader, Laid& laid, std::int64_t wide) {
  constexpr std::int64_t kUsualClasses = 2;
  if (!laid.ends_in({End::kClasses})) return;
  laid.linear("classifier", wide, classes_of(reader, kUsualClasses), true, 0);
}

// Lays a block of Swin: attention in windows, with a table of distances, or in the second version
// two products that make them.
void lay_window_block(Reader& reader, Laid& laid, const std::string& at, std::int64_t wide,
                      std::int64_t heads, double share, bool second) {
  constexpr std::int64_t kBetween = 512, kUsualWindow = 7;
  const std::int64_t reach = 2 * size_or(reader, "window_size", kUsualWindow, 1 << 10) - 1;
  const Json* ratio = reader.find("mlp_ratio");
  const double times = ratio != nullptr && ratio->is_number() ? ratio->get<double>() : 4;
  if (times < 1 || times > 64) reader.fail("mlp_ratio", "expected 1 to 64");
  const auto inner = static_cast<std::int64_t>(times * static_cast<double>(wide));
  const bool bias = flag_or(reader, "qkv_bias", true);
  laid.norm(at + "layernorm_before", wide, true);
  if (second) {
    laid.add(at + "attention.logit_scale", {heads, 1, 1});
    laid.linear(at + "attention.position_mlp.0", 2, kBetween, true, 0);
    laid.linear(at + "attention.position_mlp.2", kBetween, heads, false, 0);
  } else {
    laid.table(at + "attention.relative_position_bias_table", reach * reach, heads);
  }
  for (const char* part : {"query", "key", "value"}) {
    laid.linear(at + part, wide, wide, bias && !(second && part[0] == 'k'), share);
  }
  laid.linear(at + "output", wide, wide, true, share);
  laid.norm(at + "layernorm_after", wide, true);
  laid.linear(at + "intermediate", wide, inner, true, share);
  laid.linear(at + "out", inner, wide, true, share);
}

void lay_swin(Reader& reader, Laid& laid, bool second) {
  constexpr std::int64_t kUsualWide = 96, kUsualPatch = 4, kMerged = 4;
  const std::int64_t patch = size_or(reader, "patch_size", kUsualPatch, operators::kMaxImage);
  const std::int64_t image = image_of(reader, 224);
  const std::size_t stages = stages_of(reader);
  std::int64_t wide = width_or(reader, "embed_dim", kUsualWide), step = patch;
  expect_flag(reader, "use_absolute_embeddings", false);
  laid.add("embeddings.patch_embeddings.weight", {wide, channels_of(reader), patch, patch},
           positions_at(image, step));
  laid.add("embeddings.patch_embeddings.bias", {wide});
  laid.norm("embeddings.norm", wide, true);
  for (std::size_t i = 0; i < stages; ++i) {
    const std::string stage = "encoder.layers." + std::to_string(i) + ".";
    const std::int64_t heads = listed(reader, "num_heads", i);
    for (std::int64_t block = 0, all = listed(reader, "depths", i); block < all; ++block) {
      lay_window_block(reader, laid, stage + "blocks." + std::to_string(block) + ".", wide, heads,
                       positions_at(image, step), second);
    }
    if (i + 1 == stages) break;
    step *= 2;
    laid.linear(stage + "downsample.reduction", kMerged * wide, 2 * wide, false,
                positions_at(image, step));
    laid.norm(stage + "downsample.norm", second ? 2 * wide : kMerged * wide, true);
    wide *= 2;
  }
  laid.norm("layernorm", wide, true);
  lay_last(reader, laid, wide);
}
void swin(Reader& reader, Laid& laid) { lay_swin(reader, laid, false); }
void swinv2(Reader& reader, Laid& laid) { lay_swin(reader, laid, true); }

// Lays ConvNeXt; its second version normalises responses in place of scaling outputs.
void lay_convnext(Reader& reader, Laid& laid, bool second) {
  constexpr std::int64_t kUsualPatch = 4, kKernel = 7, kInner = 4;
  const std::int64_t image = image_of(reader, 224);
  const std::size_t stages = stages_of(reader);
  std::int64_t step = size_or(reader, "patch_size", kUsualPatch, operators::kMaxImage);
  std::int64_t ahead = channels_of(reader);
  const Json* scale = reader.find("layer_scale_init_value");
  const bool scaled =
      !second && (scale == nullptr || !scale->is_number() || scale->get<double>() > 0);
  for (std::size_t i = 0; i < stages; ++i) {
    const std::string stage = "encoder.stages." + std::to_string(i) + ".";
    const std::int64_t wide = listed(reader, "hidden_sizes", i), side = i == 0 ? step : 2;
    if (i > 0) step *= 2;
    const double share = positions_at(image, step);
    if (i > 0) laid.norm(stage + "downsampling_layer.0", ahead, true);
    laid.add(stage + "downsampling_layer.1.weight", {wide, ahead, side, side}, share);
    laid.add(stage + "downsampling_layer.1.bias", {wide});
    if (i == 0) laid.norm("embeddings.layernorm", wide, true);
    for (std::int64_t block = 0, all = listed(reader, "depths", i); block < all; ++block) {
      const std::string at = stage + "layers." + std::to_string(block) + ".";
      laid.add(at + "dwconv.weight", {wide, 1, kKernel, kKernel}, share);
      laid.add(at + "dwconv.bias", {wide});
      laid.norm(at + "layernorm", wide, true);
      laid.linear(at + "pwconv1", wide, kInner * wide, true, share);
      for (const char* part : {"grn.weight", "grn.bias"}) {
        if (second) laid.add(at + part, {1, 1, 1, kInner * wide});
      }
      laid.linear(at + "pwconv2", kInner * wide, wide, true, share);
      if (scaled) laid.add(at + "layer_scale_parameter", {wide});
    }
    ahead = wide;
  }
  laid.norm("layernorm", ahead, true);
  lay_last(reader, laid, ahead);
}
void convnext(Reader& reader, Laid& laid) { lay_convnext(reader, laid, false); }
void convnextv2(Reader& reader, Laid& laid) { lay_convnext(reader, laid, true); }

// Lays a block of SegFormer: keys and values of fewer positions, and a convolution inside.
void lay_mixed_block(Reader& reader, Laid& laid, const std::string& at, std::size_t stage,
                     double share) {
  constexpr std::int64_t kKernel = 3;
  const std::int64_t wide = listed(reader, "hidden_sizes", stage);
  const std::int64_t inner = wide * listed(reader, "mlp_ratios", stage);
  const std::int64_t fewer = listed(reader, "sr_ratios", stage);
  const double reduced = share / static_cast<double>(fewer * fewer);
  laid.norm(at + "layer_norm_1", wide, true);
  laid.linear(at + "query", wide, wide, true, share);
  if (fewer > 1) {
    laid.add(at + "sr.weight", {wide, wide, fewer, fewer}, reduced);
    laid.add(at + "sr.bias", {wide});
    laid.norm(at + "layer_norm", wide, true);
  }
  for (const char* part : {"key", "value"}) laid.linear(at + part, wide, wide, true, reduced);
  laid.linear(at + "output", wide, wide, true, share);
  laid.norm(at + "layer_norm_2", wide, true);
  laid.linear(at + "dense1", wide, inner, true, share);
  laid.add(at + "dwconv.weight", {inner, 1, kKernel, kKernel}, share);
  laid.add(at + "dwconv.bias", {inner});
  laid.linear(at + "dense2", inner, wide, true, share);
}

void segformer(Reader& reader, Laid& laid) {
  constexpr std::int64_t kUsualColumns = 256, kUsualClasses = 2;
  const std::int64_t image = image_of(reader, 512);
  const std::size_t stages = stages_of(reader);
  std::int64_t ahead = channels_of(reader), step = 1;
  double first = 0;
  for (std::size_t i = 0; i < stages; ++i) {
    const std::int64_t wide = listed(reader, "hidden_sizes", i);
    const std::int64_t side = listed(reader, "patch_sizes", i);
    step = std::min(step * listed(reader, "strides", i), image);
    const double share = positions_at(image, step);
    if (i == 0) first = share;
    const std::string at = "encoder.patch_embeddings." + std::to_string(i);
    laid.add(at + ".weight", {wide, ahead, side, side}, share);
    laid.add(at + ".bias", {wide});
    laid.norm(at + ".layer_norm", wide, true);
    for (std::int64_t block = 0, all = listed(reader, "depths", i); block < all; ++block) {
      lay_mixed_block(reader, laid,
                      "encoder.block." + std::to_string(i) + "." + std::to_string(block) + ".", i,
                      share);
    }
    laid.norm("encoder.layer_norm." + std::to_string(i), wide, true);
    ahead = wide;
  }
  lay_last(reader, laid, ahead);
  if (!laid.ends_in({End::kPixels})) return;
  const std::int64_t columns = width_or(reader, "decoder_hidden_size", kUsualColumns);
  for (std::size_t i = 0; i < stages; ++i) {
    laid.linear("decode_head.linear_c." + std::to_string(i), listed(reader, "hidden_sizes", i),
                columns, true, first);
  }
  laid.add("decode_head.linear_fuse.weight",
           {columns, columns * static_cast<std::int64_t>(stages), 1, 1}, first);
  laid.norm("decode_head.batch_norm", columns, true);
  const std::int64_t classes = classes_of(reader, kUsualClasses);
  laid.add("decode_head.classifier.weight", {classes, columns, 1, 1}, first);
  laid.add("decode_head.classifier.bias", {classes});
}

}  // namespace

const std::vector<Family>& pyramids() {
  static const std::vector<Family> rows = {
      {"swin", swin},           {"swinv2", swinv2},
      {"convnext", convnext},   {"convnextv2", convnextv2},
      {"segformer", segformer},
  };
  return rows;
}

}  // namespace syncline::job::models
