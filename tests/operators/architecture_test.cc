// Generated operators against what is known of the architectures: parameters, FLOPs in closed form
// and as published, tensors of the shipped workloads, and the graph's own consistency.
#include "catalogue/architectures/architecture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace syncline::operators {
namespace {

Generated made(const char* name, ArchitectureOptions options = {}) {
  const Architecture* row = find_architecture(name);
  EXPECT_NE(row, nullptr) << name;
  options.optimizer = row->optimizer;
  return generate(*row, options);
}

ArchitectureOptions batch_of(std::int64_t batch) {
  ArchitectureOptions options;
  options.batch = batch;
  return options;
}

ArchitectureOptions text_of(std::int64_t batch, std::int64_t sequence) {
  ArchitectureOptions options = batch_of(batch);
  options.sequence = sequence;
  return options;
}

double matrix_flops_of(const OperatorList& list, StepPart part) {
  double flops = 0;
  for (const auto& op : list.operators) {
    if (op.part == part) flops += op.matrix_flops;
  }
  return flops;
}

double forward_products(const Generated& made) {
  return matrix_flops_of(made.operators, StepPart::kForward);
}

nlohmann::json shipped(const std::string& name) {
  std::ifstream file(std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/workloads/" + name + ".json");
  return nlohmann::json::parse(file);
}

void expect_same_tensors(const Generated& made, const std::string& name, bool names) {
  const auto tensors = shipped(name).at("tensors");
  ASSERT_EQ(made.tensors.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::int64_t elements = 1;
    for (const auto& extent : tensors[i].at("shape")) elements *= extent.get<std::int64_t>();
    EXPECT_EQ(made.tensors[i].elements, elements) << tensors[i].at("name");
    if (names) {
      EXPECT_EQ(made.tensors[i].name, tensors[i].at("name").get<std::string>());
    }
  }
}

// The model behind the documents' logs, tensor by tensor, in backward order.
TEST(Architecture, ResNet50IsPaddles) {
  ArchitectureOptions options;
  options.classes = 10;
  const Generated ten = made("resnet50", options);
  expect_same_tensors(ten, "resnet50_paddle_class10", true);
  EXPECT_EQ(ten.tensors.size(), 161u);
  EXPECT_EQ(ten.buffers.size(), 106u);
  EXPECT_EQ(parameters_of(made("resnet50")), 25557032);
}

// The two versions differ in the order of BN's two parameters only, which are of one size, so
// torchvision's measured workload is the same list of sizes.
TEST(Architecture, ResNet50OfTorchvisionHasTheSameSizes) {
  expect_same_tensors(made("resnet50_v1.5"), "resnet50_v100", false);
}

TEST(Architecture, TransformersAreThePublishedCheckpoints) {
  for (const auto& [name, count] :
       {std::pair{"bert_base", 109482240}, {"bert_large", 335141888}, {"gpt2_small", 124439808}}) {
    expect_same_tensors(made(name), name, true);
    EXPECT_EQ(parameters_of(made(name)), count) << name;
  }
}

// Model cards and papers: transformers' num_parameters() of each checkpoint, torchvision's table.
TEST(Architecture, ParametersAreThePublishedOnes) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"gpt2_medium", 354823168}, {"gpt2_large", 774030080},   {"gpt2_xl", 1557611200},
      {"vit_b_16", 86567656},     {"vit_l_16", 304326632},     {"llama2_7b", 6738415616},
      {"vit_b_32", 88224232},     {"vit_l_32", 306535400},     {"vit_h_14", 632045800},
      {"resnet18", 11689512},     {"resnet34", 21797672},      {"resnet101", 44549160},
      {"resnet152", 60192808},    {"vgg11", 132863336},        {"vgg13", 133047848},
      {"vgg16", 138357544},       {"vgg19", 143667240},        {"wide_resnet50_2", 68883240},
      {"llama3_8b", 8030261248},  {"llama3.2_1b", 1235814400}, {"tinyllama_1.1b", 1100048384},
      {"mistral_7b", 7241732096}, {"qwen2_7b", 7615616512},    {"qwen2.5_0.5b", 494032768},
      {"qwen3_0.6b", 596049920},  {"llama3_70b", 70553706496}, {"llama3.1_405b", 405853388800},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameters_of(made(name)), count) << name;
}

// Their papers' tables, to the digits given there; Mixtral's and Qwen3's checkpoints to the last.
TEST(Architecture, ParametersOfExpertsAreThePublishedOnes) {
  const ArchitectureOptions short_text = text_of(1, 8);
  EXPECT_EQ(parameters_of(made("mixtral_8x7b", short_text)), 46702792704);
  EXPECT_EQ(parameters_of(made("qwen3_30b_a3b", short_text)), 30532122624);
  const auto billions = [&](const char* name) {
    return static_cast<double>(parameters_of(made(name, short_text))) / 1e9;
  };
  EXPECT_NEAR(billions("deepseek_v2"), 236, 0.5);
  EXPECT_NEAR(billions("deepseek_v3"), 671, 0.5);
  EXPECT_NEAR(billions("nemotron4_15b"), 15.6, 0.05);
  EXPECT_NEAR(billions("nemotron4_340b"), 341, 0.5);
}

ArchitectureOptions cut(int tensor, int context, int expert, int expert_tensor,
                        bool sequence = false) {
  ArchitectureOptions options = text_of(2, 64);
  options.dtype = DType::kBf16;
  options.parallel.tensor = tensor;
  options.parallel.context = context;
  options.parallel.expert = expert;
  options.parallel.expert_tensor = expert_tensor;
  options.parallel.sequence = sequence;
  return options;
}

double ratio(std::int64_t whole, std::int64_t part) {
  return static_cast<double>(whole) / static_cast<double>(part);
}

// Each weight is cut among those who share it, but for norms, routers and ways down to a latent;
// keys and values no further than their heads go.
TEST(Architecture, ACutLeavesEachRankItsShareOfEveryWeight) {
  for (const char* name : {"llama3_8b", "mixtral_8x7b", "deepseek_v2", "nemotron4_15b"}) {
    const bool experts = find_architecture(name)->shape.experts > 0;
    const Generated whole = made(name, cut(1, 1, 1, 1));
    for (const int tensor : {2, 4, 8, 16}) {
      const Generated own = made(name, experts ? cut(tensor, 1, 4, 2) : cut(tensor, 1, 1, 1));
      ASSERT_EQ(own.tensors.size(), whole.tensors.size());
      for (std::size_t i = 0; i < own.tensors.size(); ++i) {
        const std::string& weight = whole.tensors[i].name;
        const auto has = [&](const char* part) { return weight.find(part) != std::string::npos; };
        const bool kept = has("norm") || has("mlp.gate.") || has("_a_proj");
        const bool few = has("k_proj") || has("v_proj");
        const double among = has(".experts.") ? 8 : kept ? 1 : few && tensor > 8 ? 8 : tensor;
        EXPECT_EQ(own.tensors[i].expert, has(".experts."));
        EXPECT_EQ(ratio(whole.tensors[i].elements, own.tensors[i].elements), among)
            << name << " " << tensor << " " << weight;
      }
    }
  }
}

// Products: a tensor group shares them, a context group its tokens; experts get as many tokens
// wherever they are.
TEST(Architecture, ACutSharesTheProducts) {
  const auto products = [](const char* name, const ArchitectureOptions& options) {
    return forward_products(made(name, options));
  };
  const double whole = products("llama3_8b", cut(1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(products("llama3_8b", cut(4, 1, 1, 1)) * 4, whole);
  EXPECT_DOUBLE_EQ(products("llama3_8b", cut(8, 1, 1, 1, true)) * 8, whole);
  EXPECT_DOUBLE_EQ(products("llama3_8b", cut(1, 4, 1, 1)) * 4, whole);
  EXPECT_DOUBLE_EQ(products("llama3_8b", cut(2, 2, 1, 1)) * 4, whole);
  const double mixture = products("mixtral_8x7b", cut(1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(products("mixtral_8x7b", cut(1, 1, 4, 1)), mixture);
}

// Both ends of a pipeline hold the embedding that a model's head shares.
TEST(Architecture, APipelinesEndsShareATiedEmbedding) {
  ArchitectureOptions options = cut(2, 1, 1, 1);
  EXPECT_EQ(made("llama3.2_1b", options).tied, 0);
  options.parallel.pipeline = 2;
  EXPECT_EQ(made("llama3.2_1b", options).tied, 128256 / 2 * 2048 * 2);
  EXPECT_EQ(made("gpt2_medium", options).tied, (50257 + 1) / 2 * 1024 * 2);
  EXPECT_EQ(made("llama3_8b", options).tied, 0);
}

// What stands on the links, against sums by hand for Llama 3 8B's sizes: hidden 4096, 32 layers,
// 8 heads of 128 keys and values, bf16.
TEST(Architecture, InnerCollectivesInClosedForm) {
  const Bytes tokens = 2 * 64 * 4096 * 2;
  const auto one = [](const ArchitectureOptions& options, const char* name = "llama3_8b") {
    return inner_collectives([&] {
      ArchitectureOptions all = options;
      all.shape = complete_shape(find_architecture(name)->shape);
      return all;
    }());
  };
  EXPECT_TRUE(one(cut(1, 1, 1, 1)).empty());
  const auto reduced = one(cut(4, 1, 1, 1));
  ASSERT_EQ(reduced.size(), 1u);
  EXPECT_EQ(reduced[0].form, Inner::Form::kAllReduce);
  EXPECT_EQ(reduced[0].bytes, tokens);
  EXPECT_EQ(reduced[0].forward, 65);  // two a layer, and the embedding's
  const auto scattered = one(cut(4, 1, 1, 1, true));
  ASSERT_EQ(scattered.size(), 2u);
  EXPECT_EQ(scattered[0].bytes, tokens);
  EXPECT_EQ(scattered[0].forward + scattered[1].forward, 130);
  // Beside products: three quarters of qkv's, proj's, gate's and up's, and down's in four parts;
  // the ends stay alone.
  ArchitectureOptions beside = cut(4, 1, 1, 1, true);
  beside.parallel.overlap_tensor = true;
  const auto hidden = one(beside);
  ASSERT_EQ(hidden.size(), 6u);
  const double tokens_a_rank = 2 * 64;
  const double columns[] = {4096 + 2 * 1024, 4096, 2 * 14336, 14336};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(hidden[i].forward, 32);
    EXPECT_DOUBLE_EQ(hidden[i].hidden_flops, 2 * tokens_a_rank * 4096 * columns[i] / 4 * 3 / 4);
  }
  EXPECT_EQ(hidden[4].forward, 1);
  EXPECT_EQ(hidden[5].hidden_flops, 0);
  const auto ring = one(cut(2, 4, 1, 1));
  ASSERT_EQ(ring.size(), 2u);
  EXPECT_EQ(ring[1].form, Inner::Form::kRing);
  EXPECT_EQ(ring[1].bytes, 2 * (2 * 64 / 4) * 4 * 128 * 2);  // keys and values, 4 heads a rank
  ArchitectureOptions dealt = cut(2, 4, 1, 1);
  dealt.parallel.context_all_to_all = true;
  const auto heads = one(dealt);
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[1].form, Inner::Form::kAllToAll);
  EXPECT_EQ(heads[1].bytes, 2 * 64 / 4 * (32 + 2 * 8) / 2 * 128 * 2);  // queries, keys and values
  EXPECT_EQ(heads[2].bytes, 2 * 64 / 4 * 32 / 2 * 128 * 2);            // and what comes out
  EXPECT_EQ(heads[1].forward, 32);
  const auto routed = one(cut(1, 1, 8, 1), "mixtral_8x7b");
  ASSERT_EQ(routed.size(), 1u);
  EXPECT_EQ(routed[0].form, Inner::Form::kAllToAll);
  EXPECT_EQ(routed[0].bytes, 2 * tokens);  // each token goes to two experts
  EXPECT_EQ(routed[0].forward, 64);        // there and back
  EXPECT_EQ(routed[0].hidden_flops, 0);
  // Beside half of a layer's products: qkv and proj, and two experts of three products.
  ArchitectureOptions overlapped = cut(1, 1, 8, 1);
  overlapped.parallel.overlap_expert = true;
  EXPECT_DOUBLE_EQ(one(overlapped, "mixtral_8x7b")[0].hidden_flops,
                   128.0 * 4096 * (4096 + 2 * 1024 + 4096 + 2 * 3 * 14336));
}

// A family takes its sizes from the shape; so given, it is the named one.
TEST(Architecture, AFamilyOfAGivenShapeIsTheNamedOne) {
  for (const auto& [family, name] : {std::pair{"llama", "qwen2.5_0.5b"},
                                     {"gpt2", "gpt2_medium"},
                                     {"bert", "bert_base"},
                                     {"vit", "vit_b_16"}}) {
    ArchitectureOptions options;
    options.shape = find_architecture(name)->shape;
    const Generated given = made(family, options);
    const Generated named = made(name);
    ASSERT_EQ(given.tensors.size(), named.tensors.size()) << name;
    EXPECT_EQ(parameters_of(given), parameters_of(named)) << name;
  }
}

// The tied embedding is complete last, the untied head first.
TEST(Architecture, LlamasGradientsComeInBackwardOrder) {
  const Generated untied = made("tinyllama_1.1b");
  EXPECT_EQ(untied.tensors.front().name, "lm_head.weight");
  EXPECT_EQ(untied.tensors[1].name, "model.norm.weight");
  EXPECT_EQ(untied.tensors.back().name, "model.embed_tokens.weight");
  const Generated tied = made("llama3.2_1b");
  EXPECT_EQ(tied.tensors.front().name, "model.norm.weight");
  EXPECT_EQ(tied.tensors.back().name, "model.embed_tokens.weight");
}

// 6 FLOPs a weight and token, and 12 x layers x width x sequence a token in attention (Kaplan et
// al., 2020; Chowdhery et al., 2022), of which a causal kernel does half; the embedding is looked
// up, the head multiplies.
TEST(Architecture, LlamaFlopsInClosedForm) {
  for (const char* name : {"tinyllama_1.1b", "llama3.2_1b", "qwen3_0.6b"}) {
    const TransformerShape shape = complete_shape(find_architecture(name)->shape);
    const Generated one = made(name, text_of(3, 256));
    double weights = 0;  // in products
    for (const auto& tensor : one.tensors) {
      const bool looked_up = tensor.name == "model.embed_tokens.weight" && !shape.tied;
      if (tensor.shape.size() == 2 && !looked_up) weights += static_cast<double>(tensor.elements);
    }
    const auto width = static_cast<double>(shape.heads * shape.head_width);
    const double attention = 6 * static_cast<double>(shape.layers) * width * 256;
    const double flops =
        forward_products(one) + matrix_flops_of(one.operators, StepPart::kBackward);
    EXPECT_NEAR(flops / (3 * 256 * (6 * weights + attention)), 1, 1e-12) << name;
  }
}

// torchvision's table: 17.56 and 61.55 billion multiply-adds an image, attention's products left
// out there.
TEST(Architecture, VitFlopsArePublished) {
  const auto without_attention = [](const Generated& one) {
    double flops = 0;
    for (const auto& op : one.operators->operators) {
      const bool counted = op.part == StepPart::kForward && op.kind != "flash_attn";
      if (counted) flops += op.matrix_flops;
    }
    return flops / 2;
  };
  EXPECT_NEAR(without_attention(made("vit_b_16")), 17.56e9, 0.8e9);
  EXPECT_NEAR(without_attention(made("vit_l_16")), 61.55e9, 2e9);
}

// torch.autocast: products in half precision, gradients in fp32, nothing left to cast in the
// update. In bf16 alone parameters are bf16, and their gradients are cast there, not for products.
TEST(Architecture, UnderAutocastGradientsAreFp32) {
  ArchitectureOptions options = text_of(2, 64);
  options.dtype = DType::kBf16;
  options.fp32_gradients = true;
  const Generated autocast = made("gpt2_small", options);
  options.fp32_gradients = false;
  const Generated half = made("gpt2_small", options);
  ASSERT_EQ(autocast.tensors.size(), half.tensors.size());
  for (std::size_t i = 0; i < half.tensors.size(); ++i) {
    EXPECT_EQ(autocast.tensors[i].dtype, DType::kFp32);
    EXPECT_EQ(autocast.tensors[i].name, half.tensors[i].name);
    EXPECT_EQ(half.tensors[i].dtype, DType::kBf16);
  }
  EXPECT_EQ(count_of(half.operators, "cast"), static_cast<int>(half.tensors.size()));
  EXPECT_GT(count_of(autocast.operators, "cast"), 0);
  EXPECT_DOUBLE_EQ(forward_products(autocast), forward_products(half));
}

// One kernel does the work of the written scores, and moves less through memory.
TEST(Architecture, FlashAttentionIsTheSameWork) {
  ArchitectureOptions options = text_of(4, 512);
  const Generated plain = made("bert_base", options);
  options.flash_attention = true;
  const Generated flash = made("bert_base", options);
  EXPECT_EQ(parameters_of(flash), parameters_of(plain));
  EXPECT_DOUBLE_EQ(forward_products(flash), forward_products(plain));
  const auto moved = [](const Generated& one) {
    double bytes = 0;
    for (const auto& op : one.operators->operators) bytes += traffic(one.operators, op);
    return bytes;
  };
  EXPECT_LT(moved(flash), 0.8 * moved(plain));
}

TEST(Architecture, Vgg16HasItsPublishedParameters) {
  const Generated vgg = made("vgg16");
  EXPECT_EQ(parameters_of(vgg), 138357544);
  EXPECT_EQ(vgg.tensors.size(), 32u);
  EXPECT_EQ(vgg.tensors.front().name, "classifier.6.bias");
  EXPECT_EQ(vgg.tensors.back().name, "features.0.weight");
}

TEST(Architecture, Vgg19HasItsPublishedParameters) {
  const Generated vgg = made("vgg19");
  EXPECT_EQ(parameters_of(vgg), 143667240);
  EXPECT_EQ(vgg.tensors.size(), 38u);
}

// One image forward, in multiply-adds: 4.1 G for ResNet-50 v1.5 (torchvision's figure
// is 4.09), 3.86 for version 1, whose strided 1 x 1 convolutions work on a quarter of the image (He
// et al.: 3.8); 15.5 for VGG-16, 19.6 for VGG-19.
TEST(Architecture, ForwardFlopsAreThePublishedOnes) {
  EXPECT_NEAR(forward_products(made("resnet50_v1.5")) / 2, 4.09e9, 0.01e9);
  EXPECT_NEAR(forward_products(made("resnet50")) / 2, 3.86e9, 0.01e9);
  EXPECT_NEAR(forward_products(made("vgg16")) / 2, 15.47e9, 0.01e9);
  EXPECT_NEAR(forward_products(made("vgg19")) / 2, 19.63e9, 0.01e9);
}

// The shipped workloads count products and little else on the weights; query, key and value
// products hang on the value weight there.
TEST(Architecture, ForwardFlopsAgreeWithTheShippedWorkloads) {
  const auto sum = [](const nlohmann::json& workload, const char* suffix) {
    double flops = 0;
    for (const auto& tensor : workload.at("tensors")) {
      const auto name = tensor.at("name").get<std::string>();
      const bool norm =
          name.find("bn") != std::string::npos || name.find("downsample.1") != std::string::npos ||
          name.find("LayerNorm") != std::string::npos || name.find("ln_") != std::string::npos;
      const bool weight = name.size() > 7 && name.substr(name.size() - 7) == ".weight";
      if (weight && !norm) flops += tensor.at(suffix).get<double>();
    }
    return flops;
  };
  EXPECT_DOUBLE_EQ(forward_products(made("resnet50_v1.5", batch_of(32))),
                   sum(shipped("resnet50_v100"), "forward_flops"));
  const auto over_shipped = [&](const char* name, std::int64_t batch, std::int64_t sequence) {
    return forward_products(made(name, text_of(batch, sequence))) /
           sum(shipped(name), "forward_flops");
  };
  EXPECT_NEAR(over_shipped("bert_base", 64, 64), 1, 2e-3);
  EXPECT_NEAR(over_shipped("bert_large", 8, 64), 1, 2e-3);
  EXPECT_NEAR(over_shipped("gpt2_small", 8, 1024), 1, 8e-3);
}

// 2 FLOPs a weight and token in every product, and 2 x 2 x sequence x hidden a token and layer in
// attention; the pooler sees one token a sample.
TEST(Architecture, TransformerFlopsInClosedForm) {
  for (const std::int64_t sequence : {1, 64, 128, 512}) {
    constexpr double kBatch = 4, kHidden = 768, kLayers = 12;
    const double tokens = kBatch * static_cast<double>(sequence);
    const double weights = 12 * kHidden * kHidden * kLayers;
    const double scores = 4 * static_cast<double>(sequence) * kHidden * kLayers;
    const double pooler = 2 * kHidden * kHidden * kBatch;
    const double bert = tokens * (2 * weights + scores) + pooler;
    EXPECT_DOUBLE_EQ(forward_products(made("bert_base", text_of(4, sequence))), bert);
    const double gpt = tokens * (2 * weights + scores + 2 * kHidden * 50257);
    EXPECT_DOUBLE_EQ(forward_products(made("gpt2_small", text_of(4, sequence))), gpt);
  }
}

// Backward: a gradient of the input and one of the weight for each product, but for the product
// that reads the model's input.
TEST(Architecture, BackwardProductsAreTwiceTheForwardOnes) {
  const Generated bert = made("bert_base", text_of(2, 64));
  EXPECT_DOUBLE_EQ(matrix_flops_of(bert.operators, StepPart::kBackward),
                   2 * forward_products(bert));
  const Generated resnet = made("resnet50");
  const double first = 2.0 * 112 * 112 * 64 * 3 * 49;
  EXPECT_DOUBLE_EQ(matrix_flops_of(resnet.operators, StepPart::kBackward),
                   2 * forward_products(resnet) - first);
}

TEST(Architecture, WorkIsProportionalToTheBatch) {
  for (const char* name : {"resnet50", "vgg16", "bert_base", "gpt2_small"}) {
    const double one = forward_products(made(name, text_of(1, 64)));
    EXPECT_DOUBLE_EQ(forward_products(made(name, text_of(8, 64))), 8 * one) << name;
  }
}

TEST(Architecture, LaunchesWhatPaddleDoes) {
  const OperatorList list = made("resnet50").operators;
  EXPECT_EQ(count_of(list, "conv2d"), 53);
  EXPECT_EQ(count_of(list, "batch_norm"), 53);
  EXPECT_EQ(count_of(list, "relu"), 49);             // 1 + 3 in each of 16 blocks
  EXPECT_EQ(count_of(list, "elementwise_add"), 17);  // 16 residuals and the bias
  EXPECT_EQ(count_of(list, "conv2d_grad"), 53);
  EXPECT_EQ(count_of(list, "sum"), 16);  // each block's input has two readers
  EXPECT_EQ(count_of(list, "momentum"), 161);
  EXPECT_EQ(count_of(list, "cast"), 0);
  EXPECT_EQ(count_of(made("bert_base").operators, "adam"), 199);
}

// FusedMultiHeadAttention and FusedFeedForward: 10 and 4 kernels forward, 11 and 5 with the
// normalisation first.
TEST(Architecture, FusedLayersLaunchPaddlesNumberOfKernels) {
  const auto forward = [](const OperatorList& list, const std::string& prefix) {
    int kernels = 0;
    for (const auto& op : list.operators) {
      if (op.part == StepPart::kForward && op.kind.rfind(prefix, 0) == 0) kernels += op.kernels;
    }
    return kernels;
  };
  ArchitectureOptions options = text_of(2, 64);
  options.fused_attention = options.fused_feedforward = true;
  const Generated bert = made("bert_base", options);
  EXPECT_EQ(forward(bert.operators, "fused_attention."), 12 * 10);
  EXPECT_EQ(forward(bert.operators, "fused_feedforward."), 12 * 4);
  const Generated gpt = made("gpt2_small", options);
  EXPECT_EQ(forward(gpt.operators, "fused_attention."), 12 * 11);
  EXPECT_EQ(forward(gpt.operators, "fused_feedforward."), 12 * 5);
  // The work and the parameters are the same, in fewer tensors: one for query, key and value.
  const Generated plain = made("bert_base", text_of(2, 64));
  EXPECT_DOUBLE_EQ(forward_products(bert), forward_products(plain));
  EXPECT_EQ(parameters_of(bert), parameters_of(plain));
  EXPECT_EQ(bert.tensors.size(), plain.tensors.size() - 4 * 12);
}

// Mixed precision: products' gradients travel in half precision, normalisations' in fp32.
TEST(Architecture, MixedPrecisionAsPaddles) {
  ArchitectureOptions options;
  options.dtype = DType::kFp16;
  const Generated amp = made("resnet50", options);
  int half = 0;
  for (const auto& tensor : amp.tensors) {
    const bool norm = tensor.name.rfind("bn", 0) == 0;
    EXPECT_EQ(tensor.dtype, norm ? DType::kFp32 : DType::kFp16) << tensor.name;
    half += tensor.dtype == DType::kFp16;
  }
  EXPECT_EQ(half, 55);
  EXPECT_EQ(count_of(amp.operators, "cast"), 2 * 55);  // the parameter, and its gradient back
}

// Every value is written before it is read, once; every gradient is written in the backward pass.
TEST(Architecture, GraphsAreConsistent) {
  for (const auto& row : architectures()) {
    for (const DType dtype : {DType::kFp32, DType::kFp16}) {
      for (const bool fused : {false, true}) {
        ArchitectureOptions options = text_of(2, 32);
        options.shape = {.layers = 2,
                         .hidden = 64,
                         .heads = 4,
                         .kv_heads = 2,
                         .words = 100,
                         .positions = 64,
                         .tied = fused,
                         .bias = true,
                         .head_norm = true};
        options.flash_attention = options.fp32_gradients = fused;
        options.dtype = dtype;
        options.fused_attention = options.fused_feedforward = options.fused_linear = fused;
        const Generated one = generate(row, options);
        const auto& list = *one.operators;
        std::vector<int> written(list.values.size(), 0);
        for (const auto& op : list.operators) {
          for (const auto& output : op.outputs) ++written[static_cast<std::size_t>(output.value)];
        }
        std::set<int> ready;
        for (const auto& op : list.operators) {
          for (const auto& input : op.inputs) {
            const bool source = written[static_cast<std::size_t>(input.value)] == 0;
            EXPECT_TRUE(source || ready.contains(input.value)) << row.name << " " << op.kind;
          }
          for (const auto& output : op.outputs) ready.insert(output.value);
        }
        for (const int count : written) EXPECT_LE(count, 1) << row.name;
        ASSERT_EQ(list.gradients.size(), one.tensors.size());
        for (std::size_t i = 0; i < list.gradients.size(); ++i) {
          const auto value = static_cast<std::size_t>(list.gradients[i]);
          EXPECT_EQ(written[value], 1);
          EXPECT_EQ(list.values[value].name, one.tensors[i].name + "@GRAD");
          EXPECT_EQ(list.values[value].bytes, one.tensors[i].bytes());
        }
      }
    }
  }
}

// A step is the same however many others are asked for in between, and each cut has its own.
TEST(Architecture, StepsAreTheSameWhenAskedForAgain) {
  const Architecture& row = *find_architecture("gpt2_small");
  const auto step = [&](int tensor, int pipeline, std::int64_t batch) {
    ArchitectureOptions options;
    options.sequence = 64;
    options.batch = batch;
    options.parallel.tensor = tensor;
    options.parallel.pipeline = pipeline;
    return generate(row, options);
  };
  const Generated first = step(1, 1, 1);
  EXPECT_EQ(first.tied, 0);
  EXPECT_GT(step(1, 2, 1).tied, 0);
  EXPECT_EQ(step(1, 4, 1).tensors.size(), step(1, 2, 1).tensors.size());
  EXPECT_LT(parameters_of(step(2, 1, 1)), parameters_of(first));
  for (std::int64_t batch = 2; batch < 20; ++batch) {
    EXPECT_DOUBLE_EQ(flops_of(step(1, 1, batch).operators, StepPart::kForward),
                     static_cast<double>(batch) * flops_of(first.operators, StepPart::kForward));
  }
  const Generated again = step(1, 1, 1);
  EXPECT_EQ(again.operators->operators.size(), first.operators->operators.size());
  EXPECT_EQ(again.tensors.size(), first.tensors.size());
  EXPECT_EQ(flops_of(again.operators, StepPart::kBackward),
            flops_of(first.operators, StepPart::kBackward));
}

}  // namespace
}  // namespace syncline::operators
