#!/usr/bin/env python3
"""Asks transformers which parameters the model of a config.json trains: random sizes of each family, as
the package's own configurations write them."""

import collections
import json
import random
import sys

CASES_A_FAMILY = 4
NOISE = ("transformers_version", "torch_dtype", "dtype", "initializer_range", "use_cache", "id2label",
         "label2id", "begin_suppress_tokens", "suppress_tokens", "layer_types", "no_rope_layers",
         "time_step_limit")
WANTED = {  # of a family: classes that the architectures of a file name
    "bert": ["Model", "ForMaskedLM", "ForPreTraining", "ForQuestionAnswering"],
    "tasks": ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
              "ForQuestionAnswering"],
    "pictures": ["Model", "ForImageClassification"],
    "painted": ["Model", "ForImageClassification", "ForSemanticSegmentation"],
    "boxes": ["Model", "ForObjectDetection"],
    "videos": ["Model", "ForVideoClassification"],
    "xlnet": ["Model", "LMHeadModel", "ForSequenceClassification", "ForTokenClassification"],
    "spoken": ["ForCTC", "ForSequenceClassification"],
    "sound": ["Model", "ForCTC", "ForSequenceClassification"],
    "written": ["Model", "ForConditionalGeneration", "ForCausalLM"],
    "encoder": ["Model", "ForMaskedLM", "ForSequenceClassification"],
    "causal": ["ForCausalLM"],
    "decoder": ["ForCausalLM", "ForCausalLM", "ForCausalLM", "Model"],
}


def some(pick, *choices):
    return pick.choice(choices)


def decoder(pick, **more):
    heads = some(pick, 4, 6, 8)
    sizes = {"vocab_size": some(pick, 1000, 1536, 2051), "hidden_size": heads * some(pick, 16, 32),
             "intermediate_size": some(pick, 96, 160, 352), "num_hidden_layers": some(pick, 2, 3, 5),
             "num_attention_heads": heads, "max_position_embeddings": some(pick, 128, 512)}
    sizes.update(more)
    return sizes


def llama(pick, tied=True, **more):
    sizes = decoder(pick)
    sizes["num_key_value_heads"] = some(pick, sizes["num_attention_heads"], 2, 1)
    if tied:
        sizes["tie_word_embeddings"] = some(pick, True, False)
    sizes.update(more)
    return sizes


def wide(pick, **more):  # heads of a width of their own
    return llama(pick, head_dim=some(pick, 16, 48), **more)


def experts(pick, **more):
    return dict({"num_experts_per_tok": some(pick, 1, 2, 4)}, **more)


def gpt2_names(pick, **more):
    heads = some(pick, 4, 8)
    sizes = {"vocab_size": some(pick, 1000, 2051), "n_embd": heads * some(pick, 16, 32),
             "n_layer": some(pick, 2, 3), "n_head": heads, "n_positions": some(pick, 64, 256)}
    sizes.update(more)
    return sizes


def bloom(pick):
    heads = some(pick, 4, 8)
    return {"vocab_size": 1024, "hidden_size": heads * some(pick, 16, 32), "n_layer": some(pick, 2, 4),
            "n_head": heads}


def opt(pick):
    sizes = decoder(pick)
    sizes["ffn_dim"] = sizes.pop("intermediate_size")
    if pick.random() < 0.4:
        sizes["word_embed_proj_dim"] = 48
    if pick.random() < 0.3:
        sizes["do_layer_norm_before"] = False
    return sizes


def falcon(pick):
    sizes = decoder(pick)
    del sizes["intermediate_size"]
    kind = some(pick, "7b", "40b", "rw")
    sizes.update({"7b": {}, "40b": {"new_decoder_architecture": True, "num_kv_heads": 2},
                  "rw": {"multi_query": False, "parallel_attn": False, "bias": True, "alibi": True}}[kind])
    return sizes


def t5(pick, **more):
    sizes = {"vocab_size": 1000, "d_model": some(pick, 64, 96), "d_kv": some(pick, 16, 24),
             "d_ff": some(pick, 128, 200), "num_layers": some(pick, 2, 3), "num_heads": some(pick, 4, 6)}
    sizes["num_decoder_layers"] = some(pick, sizes["num_layers"], 1)
    sizes["feed_forward_proj"] = some(pick, "relu", "gated-gelu")
    sizes.update(more)
    return sizes


def bart(pick):
    return {"vocab_size": 1000, "d_model": some(pick, 64, 96), "encoder_layers": some(pick, 2, 3),
            "decoder_layers": some(pick, 1, 2), "encoder_ffn_dim": 160, "decoder_ffn_dim": 96,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "max_position_embeddings": some(pick, 64, 100)}


def whisper(pick):
    sizes = bart(pick)
    del sizes["max_position_embeddings"]
    sizes.update(num_mel_bins=some(pick, 80, 128), max_source_positions=100,
                 max_target_positions=some(pick, 40, 64))
    return sizes


def encoder(pick, **more):
    sizes = decoder(pick, type_vocab_size=some(pick, 1, 2))
    sizes.update(more)
    return sizes


def mamba(pick):
    return {"vocab_size": 1000, "hidden_size": some(pick, 64, 96), "state_size": some(pick, 8, 16),
            "num_hidden_layers": some(pick, 2, 3), "expand": 2, "conv_kernel": 4,
            "time_step_rank": some(pick, "auto", 5), "tie_word_embeddings": some(pick, True, False)}


def mamba2(pick):
    heads = some(pick, 4, 8)
    return {"vocab_size": 1000, "hidden_size": heads * 16, "state_size": some(pick, 8, 16), "expand": 2,
            "num_hidden_layers": some(pick, 2, 3), "num_heads": heads, "head_dim": 32,
            "n_groups": some(pick, 1, 2), "tie_word_embeddings": some(pick, True, False)}


def vision(pick, **more):
    heads = 4
    sizes = {"hidden_size": heads * some(pick, 16, 24), "intermediate_size": some(pick, 96, 160),
             "num_hidden_layers": some(pick, 2, 3), "num_attention_heads": heads,
             "image_size": some(pick, 56, 112), "patch_size": some(pick, 14, 28)}
    sizes.update(more)
    return sizes


def qwen_vision(pick, text, newer):
    sizes = {"depth": some(pick, 2, 3), "num_heads": 4, "patch_size": 14}
    if newer:
        return dict(sizes, hidden_size=some(pick, 64, 96), intermediate_size=some(pick, 96, 160),
                    out_hidden_size=text["hidden_size"])
    return dict(sizes, embed_dim=some(pick, 64, 96), mlp_ratio=4, hidden_size=text["hidden_size"])


def qwen_vl(pick, newer=True):
    text = llama(pick, tied=False)
    return {"text_config": text, "vision_config": qwen_vision(pick, text, newer),
            "tie_word_embeddings": some(pick, True, False)}


def qwen3_vl(pick):
    text = wide(pick, tied=False, rope_scaling={"rope_type": "default", "mrope_section": [4, 2, 2]})
    return {"text_config": text, "tie_word_embeddings": some(pick, True, False),
            "vision_config": {"depth": 3, "hidden_size": some(pick, 64, 96), "intermediate_size": 160,
                              "num_heads": 4, "patch_size": 16, "out_hidden_size": text["hidden_size"],
                              "num_position_embeddings": some(pick, 64, 144),
                              "deepstack_visual_indexes": some(pick, [0, 1], [0, 1, 2])}}


def llava(pick):
    kind = some(pick, "llama", "mistral", "qwen2")
    return {"text_config": dict(llama(pick, tied=False), model_type=kind, tie_word_embeddings=False),
            "vision_config": dict(vision(pick), model_type=some(pick, "clip_vision_model", "siglip_vision_model")),
            "tie_word_embeddings": False}


def mistral3(pick):
    return {"text_config": dict(wide(pick, tied=False), model_type="mistral"),
            "vision_config": dict(vision(pick, head_dim=24), model_type="pixtral"),
            "spatial_merge_size": 2, "multimodal_projector_bias": some(pick, True, False),
            "tie_word_embeddings": False}


def gemma3(pick):
    return {"text_config": wide(pick, tied=False), "vision_config": vision(pick)}


def llama4(pick):
    text = wide(pick, tied=False)
    text.update(experts(pick, num_local_experts=4, intermediate_size_mlp=some(pick, 96, 128),
                        interleave_moe_layer_step=some(pick, 1, 2), num_experts_per_tok=1))
    heads = 4
    return {"text_config": text,
            "vision_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": heads,
                              "intermediate_size": 256, "image_size": 56, "patch_size": 14,
                              "vision_output_dim": 96, "projector_input_dim": 96,
                              "projector_output_dim": 96, "pixel_shuffle_ratio": 0.5}}


def mllama(pick):
    text = llama(pick, tied=False, num_hidden_layers=5, cross_attention_layers=some(pick, [1, 3], [2]), pad_token_id=0,
                 rope_scaling={"rope_type": "default"},
                 tie_word_embeddings=False)
    return {"text_config": text,
            "vision_config": {"hidden_size": 64, "attention_heads": 4, "intermediate_size": 160,
                              "num_hidden_layers": 4, "num_global_layers": some(pick, 1, 2),
                              "image_size": 56, "patch_size": 14, "max_num_tiles": 4,
                              "intermediate_layers_indices": some(pick, [1, 2], [0, 1, 3]),
                              "vision_output_dim": 64 * 3}}


def clip(pick):
    text = {"vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 40}
    return {"text_config": text, "vision_config": vision(pick), "projection_dim": 48}


def qwen3_next(pick):
    return wide(pick, tied=False, num_hidden_layers=some(pick, 4, 6), linear_num_key_heads=2,
                linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=some(pick, 16, 24),
                num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64,
                shared_expert_intermediate_size=96)


def wave(pick):
    sizes = encoder(pick)
    sizes.update(conv_dim=[32, some(pick, 32, 48)], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
                 num_conv_pos_embedding_groups=4, conv_bias=some(pick, True, False),
                 feat_extract_norm=some(pick, "group", "layer"), mask_time_prob=some(pick, 0.0, 0.05))
    return sizes


def beit(pick):
    return vision(pick, use_relative_position_bias=some(pick, True, False), use_mask_token=some(pick, True, False),
                  use_absolute_position_embeddings=some(pick, True, False))


def seen(pick, text, vision_type, **more):
    return dict({"text_config": dict(wide(pick, tied=False), model_type=text),
                 "vision_config": dict(vision(pick, vision_use_head=False), model_type=vision_type)}, **more)


def stages(pick, **more):
    return dict({"image_size": some(pick, 64, 128), "depths": [some(pick, 1, 2), 2, some(pick, 1, 3)]}, **more)


def swin(pick):
    wide = some(pick, 24, 48)
    return stages(pick, embed_dim=wide, hidden_size=4 * wide, num_heads=[2, 4, some(pick, 4, 8)], mlp_ratio=some(pick, 2.0, 4.0),
                  window_size=some(pick, 4, 7), qkv_bias=some(pick, True, False))


def convnext(pick, **more):
    return stages(pick, num_stages=3, hidden_sizes=[16, some(pick, 24, 32), 48], patch_size=4, **more)


def layers_at_pages(pick):
    return encoder(pick, max_2d_position_embeddings=some(pick, 64, 128))


def sound(pick, text, **more):
    return {"text_config": dict(wide(pick, tied=False), model_type=text, tie_word_embeddings=False),
            "audio_config": more}


def channels(pick, sizes, **more):  # images of fewer or more than three colours
    return dict(sizes(pick), num_channels=some(pick, 1, 4), **more)


def lfm2(pick):
    sizes = llama(pick, tied=False, num_hidden_layers=3)
    sizes.update(layer_types=["conv", some(pick, "conv", "full_attention"), "full_attention"],
                 conv_bias=some(pick, True, False), block_multiple_of=some(pick, 16, 32),
                 block_auto_adjust_ff_dim=some(pick, True, False))
    return sizes


def next_layers(pick, **more):  # delta nets, and attention in each so many
    sizes = wide(pick, tied=False, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
                 linear_value_head_dim=some(pick, 16, 24), num_hidden_layers=some(pick, 4, 6),
                 full_attention_interval=some(pick, 2, 4), tie_word_embeddings=some(pick, True, False))
    return dict(sizes, **more)


def mixed(pick):
    return {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": some(pick, 48, 96)}


def qwen3_5(pick, kind, **more):
    text = dict(next_layers(pick, **more), model_type=kind + "_text")
    return {"text_config": text, "tie_word_embeddings": text.pop("tie_word_embeddings"), "vision_config": {
        "depth": 3, "hidden_size": some(pick, 64, 96), "intermediate_size": 160, "num_heads": 4, "patch_size": 16,
        "out_hidden_size": text["hidden_size"], "num_position_embeddings": some(pick, 64, 144)}}


def written_from_images(pick):
    seen = channels(pick, vision, qkv_bias=some(pick, True, False), model_type=some(pick, "vit", "deit"))
    told = dict(FAMILIES["trocr"][2](pick), model_type="trocr", cross_attention_hidden_size=seen["hidden_size"])
    return {"encoder": seen, "decoder": told}


# model_type, perhaps of a kind: [what it is, classes' prefix, sizes]
FAMILIES = {
    "llama": ["decoder", "Llama", llama],
    "mistral": ["decoder", "Mistral", wide],
    "ministral": ["decoder", "Ministral", wide],
    "qwen2": ["decoder", "Qwen2", llama],
    "qwen3": ["decoder", "Qwen3", wide],
    "mixtral": ["decoder", "Mixtral", lambda p: llama(p, **experts(p, num_local_experts=4))],
    "qwen3_moe": ["decoder", "Qwen3Moe", lambda p: wide(p, **experts(
        p, num_experts=8, moe_intermediate_size=48, mlp_only_layers=[], decoder_sparse_step=1))],
    "gemma": ["decoder", "Gemma", lambda p: wide(p, tied=False)],
    "gemma2": ["decoder", "Gemma2", lambda p: wide(p, tied=False)],
    "gemma3_text": ["decoder", "Gemma3", lambda p: wide(p, tied=False)],
    "phi3": ["decoder", "Phi3", llama],
    "qwen2_moe": ["decoder", "Qwen2Moe", lambda p: llama(p, **experts(
        p, num_experts=8, moe_intermediate_size=48, shared_expert_intermediate_size=some(p, 96, 128)))],
    "glm4": ["decoder", "Glm4", wide],
    "glm": ["decoder", "Glm", wide],
    "glm4_moe": ["decoder", "Glm4Moe", lambda p: wide(p, **experts(
        p, n_routed_experts=8, moe_intermediate_size=48, n_shared_experts=some(p, 1, 2),
        first_k_dense_replace=1, use_qk_norm=some(p, True, False), attention_bias=some(p, True, False)))],
    "olmo2": ["decoder", "Olmo2", llama],
    "olmo3": ["decoder", "Olmo3", llama],
    "olmoe": ["decoder", "Olmoe", lambda p: llama(p, **experts(p, num_experts=8))],
    "smollm3": ["decoder", "SmolLM3", llama],
    "granite": ["decoder", "Granite", llama],
    "seed_oss": ["decoder", "SeedOss", wide],
    "exaone4": ["decoder", "Exaone4", llama],
    "hunyuan_v1_dense": ["decoder", "HunYuanDenseV1", wide],
    "ernie4_5": ["decoder", "Ernie4_5", wide],
    "arcee": ["decoder", "Arcee", llama],
    "nemotron": ["decoder", "Nemotron", llama],
    "deepseek_v3": ["decoder", "DeepseekV3", lambda p: decoder(
        p, n_routed_experts=8, n_shared_experts=1, moe_intermediate_size=48, num_experts_per_tok=2, n_group=2,
        topk_group=1, first_k_dense_replace=1, q_lora_rank=some(p, 32, None), kv_lora_rank=24,
        qk_nope_head_dim=16, v_head_dim=16, qk_rope_head_dim=8)],
    "gpt_oss": ["decoder", "GptOss", lambda p: wide(p, **experts(p, num_local_experts=4))],
    "qwen3_next": ["decoder", "Qwen3Next", qwen3_next],
    "gpt2": ["decoder", "GPT2LMHeadModel", gpt2_names],
    "gpt_neox": ["decoder", "GPTNeoX", lambda p: decoder(p, tie_word_embeddings=some(p, True, False))],
    "gpt_neo": ["decoder", "GPTNeo", lambda p: {
        "vocab_size": 1000, "hidden_size": 64, "num_layers": 2, "num_heads": 4,
        "max_position_embeddings": some(p, 64, 128), "attention_types": [[["global", "local"], 1]],
        "intermediate_size": some(p, None, 96)}],
    "gptj": ["decoder", "GPTJ", lambda p: gpt2_names(p, rotary_dim=8)],
    "codegen": ["decoder", "CodeGen", lambda p: gpt2_names(p, rotary_dim=8)],
    "gpt_bigcode": ["decoder", "GPTBigCode", lambda p: gpt2_names(p, multi_query=some(p, True, False))],
    "opt": ["decoder", "OPT", opt],
    "bloom": ["decoder", "Bloom", bloom],
    "falcon": ["decoder", "Falcon", falcon],
    "phi": ["decoder", "Phi", lambda p: decoder(p)],
    "starcoder2": ["decoder", "Starcoder2", lambda p: llama(p, tied=False, use_bias=some(p, True, False))],
    "stablelm": ["decoder", "StableLm", lambda p: llama(p, use_qkv_bias=some(p, True, False))],
    "cohere": ["decoder", "Cohere", lambda p: llama(p, tied=False, use_qk_norm=some(p, True, False))],
    "cohere2": ["decoder", "Cohere2", lambda p: llama(p, tied=False)],
    "olmo": ["decoder", "Olmo", llama],
    "mamba": ["decoder", "Mamba", mamba],
    "mamba2": ["decoder", "Mamba2", mamba2],
    "bert": ["bert", "Bert", encoder],
    "roberta": ["encoder", "Roberta", encoder],
    "xlm-roberta": ["encoder", "XLMRoberta", encoder],
    "camembert": ["encoder", "Camembert", encoder],
    "distilbert": ["encoder", "DistilBert", lambda p: {
        "vocab_size": 1000, "dim": 64, "hidden_dim": 160, "n_layers": 3, "n_heads": 4,
        "max_position_embeddings": some(p, 64, 128)}],
    "albert": ["encoder", "Albert", lambda p: encoder(p, embedding_size=some(p, 32, 48))],
    "electra": ["encoder", "Electra", lambda p: encoder(p, embedding_size=32)],
    "deberta-v2": ["encoder", "DebertaV2", lambda p: encoder(
        p, type_vocab_size=0, relative_attention=True, position_buckets=some(p, 16, 32),
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        position_biased_input=False)],
    "mpnet": ["encoder", "MPNet", lambda p: decoder(p)],
    "modernbert": ["encoder", "ModernBert", lambda p: decoder(p)],
    "t5": ["seq2seq", "T5ForConditionalGeneration", t5],
    "mt5": ["seq2seq", "MT5ForConditionalGeneration", t5],
    "umt5": ["seq2seq", "UMT5ForConditionalGeneration", t5],
    "bart": ["seq2seq", "BartForConditionalGeneration", bart],
    "mbart": ["seq2seq", "MBartForConditionalGeneration", bart],
    "m2m_100": ["seq2seq", "M2M100ForConditionalGeneration", bart],
    "whisper": ["seq2seq", "WhisperForConditionalGeneration", whisper],
    "vit": ["images", "ViTForImageClassification", vision],
    "deit": ["images", "DeiTForImageClassification", vision],
    "dinov2": ["images", "Dinov2Model", lambda p: {
        "hidden_size": 64, "num_hidden_layers": some(p, 2, 3), "num_attention_heads": 4,
        "mlp_ratio": some(p, 2, 4), "image_size": 56, "patch_size": 14,
        "use_swiglu_ffn": some(p, True, False)}],
    "clip": ["both", "CLIPModel", clip],
    "siglip": ["both", "SiglipModel", lambda p: {k: v for k, v in clip(p).items() if k != "projection_dim"}],
    "llava": ["both", "LlavaForConditionalGeneration", llava],
    "mistral3": ["both", "Mistral3ForConditionalGeneration", mistral3],
    "gemma3": ["both", "Gemma3ForConditionalGeneration", gemma3],
    "qwen2_vl": ["both", "Qwen2VLForConditionalGeneration", lambda p: qwen_vl(p, False)],
    "qwen2_5_vl": ["both", "Qwen2_5_VLForConditionalGeneration", qwen_vl],
    "qwen3_vl": ["both", "Qwen3VLForConditionalGeneration", qwen3_vl],
    "llama4": ["both", "Llama4ForConditionalGeneration", llama4],
    "mllama": ["both", "MllamaForConditionalGeneration", mllama],
    "ernie": ["bert", "Ernie", lambda p: encoder(p, use_task_id=some(p, True, False))],
    "megatron-bert": ["bert", "MegatronBert", encoder],
    "data2vec-text": ["tasks", "Data2VecText", encoder],
    "roberta-prelayernorm": ["tasks", "RobertaPreLayerNorm", encoder],
    "xlm-roberta-xl": ["tasks", "XLMRobertaXL", encoder],
    "longformer": ["tasks", "Longformer", encoder],
    "big_bird": ["encoder", "BigBird", encoder],
    "deberta": ["tasks", "Deberta", lambda p: encoder(
        p, type_vocab_size=0, relative_attention=True, pos_att_type=some(p, ["c2p"], ["p2c", "c2p"]),
        position_biased_input=some(p, True, False))],
    "plbart": ["written", "PLBart", bart],
    "pegasus": ["written", "Pegasus", bart],
    "blenderbot": ["written", "Blenderbot", bart],
    "blenderbot-small": ["written", "BlenderbotSmall", bart],
    "marian": ["images", "MarianMTModel", lambda p: dict(bart(p), pad_token_id=0)],
    "biogpt": ["decoder", "BioGpt", decoder],
    "xglm": ["decoder", "XGLM", lambda p: {"vocab_size": 1000, "d_model": 64, "num_layers": some(p, 2, 3),
                                           "ffn_dim": some(p, 96, 160), "attention_heads": 4}],
    "mpt": ["decoder", "Mpt", lambda p: {"vocab_size": 1000, "d_model": some(p, 64, 96), "n_layers": 2, "n_heads": 4}],
    "helium": ["decoder", "Helium", lambda p: llama(p, num_attention_heads=4, hidden_size=64, head_dim=16,
                                                    num_key_value_heads=some(p, 1, 2))],
    "falcon_mamba": ["decoder", "FalconMamba", mamba],
    "ijepa": ["pictures", "IJepa", vision],
    "vit_msn": ["pictures", "ViTMSN", vision],
    "vit_mae": ["images", "ViTMAEForPreTraining", lambda p: vision(p, decoder_hidden_size=48, decoder_num_attention_heads=4,
                                                                   decoder_num_hidden_layers=some(p, 1, 2))],
    "beit": ["pictures", "Beit", beit],
    "data2vec-vision": ["pictures", "Data2VecVision", beit],
    "dinov2_with_registers": ["pictures", "Dinov2WithRegisters", lambda p: {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56, "patch_size": 14,
        "num_register_tokens": some(p, 2, 4), "use_swiglu_ffn": some(p, True, False)}],
    "audio-spectrogram-transformer": ["images", "ASTForAudioClassification", lambda p: {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_mel_bins": some(p, 64, 128), "max_length": some(p, 128, 256)}],
    "wav2vec2": ["sound", "Wav2Vec2", wave],
    "hubert": ["sound", "Hubert", wave],
    "wavlm": ["sound", "WavLM", lambda p: dict(wave(p), num_buckets=some(p, 32, 64))],
    "granitemoeshared": ["decoder", "GraniteMoeShared", lambda p: llama(p, **experts(
        p, num_local_experts=4, shared_intermediate_size=some(p, 0, 48, 96)))],
    "llava_next": ["both", "LlavaNextForConditionalGeneration", lambda p: seen(
        p, some(p, "llama", "mistral"), "clip_vision_model", tie_word_embeddings=False)],
    "llava_onevision": ["both", "LlavaOnevisionForConditionalGeneration", lambda p: seen(
        p, "qwen2", "siglip_vision_model", tie_word_embeddings=False)],
    "vipllava": ["both", "VipLlavaForConditionalGeneration", lambda p: seen(
        p, "llama", "clip_vision_model", tie_word_embeddings=False, vision_feature_layers=some(p, [-1, -2], [-1]))],
    "internvl": ["both", "InternVLForConditionalGeneration", lambda p: dict(
        seen(p, "qwen2", "internvl_vision", tie_word_embeddings=False), downsample_ratio=0.5)],
    "phimoe": ["decoder", "Phimoe", lambda p: llama(p, **experts(
        p, num_local_experts=4, attention_bias=some(p, True, False), lm_head_bias=some(p, True, False)))],
    "clip_text_model": ["images", "CLIPTextModel", lambda p: {
        "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": some(p, 2, 3),
        "num_attention_heads": 4, "max_position_embeddings": some(p, 40, 77)}],
    "paligemma": ["both", "PaliGemmaForConditionalGeneration", lambda p: seen(
        p, some(p, "gemma", "gemma2"), "siglip_vision_model", projection_dim=some(p, 48, 96))],
    "swin": ["pictures", "Swin", swin],
    "swinv2": ["pictures", "Swinv2", swin],
    "convnext": ["pictures", "ConvNext", lambda p: convnext(p, layer_scale_init_value=some(p, 1e-6, 0.0))],
    "convnextv2": ["pictures", "ConvNextV2", convnext],
    "segformer": ["painted", "Segformer", lambda p: stages(
        p, num_encoder_blocks=3, hidden_sizes=[16, some(p, 24, 32), 48], sr_ratios=[4, 2, 1], strides=[4, 2, 2],
        patch_sizes=[7, 3, 3], mlp_ratios=[4, some(p, 2, 4), 4], num_attention_heads=[1, 2, 4],
        decoder_hidden_size=some(p, 32, 64))],
    "yolos": ["boxes", "Yolos", lambda p: vision(
        p, image_size=some(p, [56, 112], [112, 56]), num_detection_tokens=some(p, 10, 20),
        use_mid_position_embeddings=some(p, True, False))],
    "videomae": ["videos", "VideoMAE", lambda p: vision(
        p, num_frames=8, tubelet_size=some(p, 2, 4), qkv_bias=some(p, True, False),
        use_mean_pooling=some(p, True, False))],
    "dinov3_vit": ["images", "DINOv3ViTModel", lambda p: vision(
        p, num_register_tokens=some(p, 2, 4), use_gated_mlp=some(p, True, False), mlp_bias=some(p, True, False),
        key_bias=some(p, True, False), proj_bias=some(p, True, False))],
    "siglip2": ["both", "Siglip2Model", lambda p: {
        "text_config": clip(p)["text_config"],
        "vision_config": {k: v for k, v in vision(p, num_patches=some(p, 16, 36)).items() if k != "image_size"}}],
    "siglip2_vision_model": ["images", "Siglip2VisionModel", lambda p: {
        k: v for k, v in vision(p, num_patches=some(p, 16, 36), vision_use_head=some(p, True, False)).items()
        if k != "image_size"}],
    "layoutlm": ["tasks", "LayoutLM", layers_at_pages],
    "dpr": ["images", "DPRContextEncoder", encoder],
    "splinter": ["images", "SplinterModel", encoder],
    "rembert": ["tasks", "RemBert", lambda p: encoder(
        p, input_embedding_size=some(p, 32, 48), output_embedding_size=some(p, 64, 96))],
    "xlnet": ["xlnet", "XLNet", lambda p: {"vocab_size": 1000, "d_model": some(p, 64, 96), "n_layer": some(p, 2, 3),
                                           "n_head": 4, "d_inner": some(p, 96, 160)}],
    "longt5": ["seq2seq", "LongT5ForConditionalGeneration", lambda p: t5(
        p, encoder_attention_type=some(p, "local", "transient-global"))],
    "trocr": ["seq2seq", "TrOCRForCausalLM", lambda p: {
        "vocab_size": 1000, "d_model": some(p, 64, 96), "decoder_layers": some(p, 1, 2), "decoder_ffn_dim": 96,
        "decoder_attention_heads": 4, "cross_attention_hidden_size": some(p, 48, 80),
        "max_position_embeddings": some(p, 64, 100)}],
    "speech_to_text": ["seq2seq", "Speech2TextForConditionalGeneration", lambda p: dict(
        bart(p), conv_channels=some(p, 64, 96), input_feat_per_channel=some(p, 40, 80))],
    "data2vec-audio": ["sound", "Data2VecAudio", lambda p: {k: v for k, v in dict(
        wave(p), num_conv_pos_embeddings=some(p, 3, 5), conv_pos_kernel_size=some(p, 9, 19)).items()
        if k != "feat_extract_norm"}],
    "unispeech": ["spoken", "UniSpeech", wave],
    "unispeech-sat": ["spoken", "UniSpeechSat", wave],
    "qwen2_audio": ["both", "Qwen2AudioForConditionalGeneration", lambda p: sound(
        p, "qwen2", d_model=some(p, 64, 96), encoder_layers=some(p, 2, 3), encoder_ffn_dim=160,
        encoder_attention_heads=4, num_mel_bins=some(p, 80, 128))],
    "voxtral": ["both", "VoxtralForConditionalGeneration", lambda p: sound(
        p, "llama", hidden_size=some(p, 64, 96), num_hidden_layers=some(p, 2, 3), intermediate_size=256,
        num_attention_heads=4, num_mel_bins=some(p, 80, 128))],
    "vit of other images": ["pictures", "ViT", lambda p: vision(
        p, num_channels=some(p, 1, 4), qkv_bias=some(p, True, False))],
    "segformer of other images": ["painted", "Segformer", lambda p: channels(p, FAMILIES["segformer"][2])],
    "convnext of other images": ["pictures", "ConvNext", lambda p: channels(p, convnext)],
    "swin of other images": ["pictures", "Swin", lambda p: channels(p, swin)],
    "siglip2_vision_model of other images": ["images", "Siglip2VisionModel", lambda p: channels(
        p, FAMILIES["siglip2_vision_model"][2])],
    "qwen2_5_vl of other images": ["both", "Qwen2_5_VLForConditionalGeneration", lambda p: {
        "text_config": llama(p, tied=False, num_hidden_layers=2), "vision_config": {
            "depth": 2, "num_heads": 4, "patch_size": 14, "hidden_size": 64, "intermediate_size": 96,
            "in_channels": some(p, 1, 4), "out_hidden_size": 64}}],
    "vit_mae of other images": ["images", "ViTMAEForPreTraining", lambda p: channels(
        p, FAMILIES["vit_mae"][2], qkv_bias=some(p, True, False))],
    "trocr of other tables": ["seq2seq", "TrOCRForCausalLM", lambda p: dict(
        FAMILIES["trocr"][2](p), use_learned_position_embeddings=False, layernorm_embedding=some(p, True, False))],
    "lfm2": ["decoder", "Lfm2", lfm2],
    "lfm2_vl": ["both", "Lfm2VlForConditionalGeneration", lambda p: {
        "text_config": dict(lfm2(p), model_type="lfm2"), "downsample_factor": 2, "projector_bias": some(p, True, False),
        "projector_hidden_size": some(p, 48, 96), "vision_config": dict(
            FAMILIES["siglip2_vision_model"][2](p), model_type="siglip2_vision_model")}],
    "vision-encoder-decoder": ["images", "VisionEncoderDecoderModel", written_from_images],
}

# Of transformers 5 alone.
NEWER = {
    "ministral3": ["decoder", "Ministral3", wide],
    "qwen3_5_text": ["causal", "Qwen3_5", next_layers],
    "qwen3_5_moe_text": ["causal", "Qwen3_5Moe", lambda p: next_layers(p, **mixed(p))],
    "qwen3_5": ["both", "Qwen3_5ForConditionalGeneration", lambda p: qwen3_5(p, "qwen3_5")],
    "qwen3_5_moe": ["both", "Qwen3_5MoeForConditionalGeneration", lambda p: qwen3_5(p, "qwen3_5_moe", **mixed(p))],
}


def class_of(pick, kind, prefix):
    import transformers
    if kind not in WANTED:
        return getattr(transformers, prefix)
    if prefix.endswith("LMHeadModel"):
        return getattr(transformers, prefix)
    end = pick.choice(WANTED[kind])
    name = prefix + end
    if name in ("Gemma3Model",):
        name = "Gemma3TextModel"
    return getattr(transformers, name)


def kept(config):
    """Without what says nothing of sizes."""
    noise = {key for key in config if key in NOISE or key.endswith(("_token_id", "_token_index", "dropout"))}
    if {"conv", "linear_attention"} & set(config.get("layer_types") or []):
        noise.remove("layer_types")
    return {key: kept(value) if isinstance(value, dict) else value
            for key, value in config.items() if key not in noise}


def case_of(model_type, family, pick):
    import torch
    from transformers import CONFIG_MAPPING
    kind, prefix, sizes = family
    model_type = model_type.split(" ")[0]
    drawn = sizes(pick)
    if kind not in ("both", "images"):
        drawn["pad_token_id"] = 0  # within so few words
    config = CONFIG_MAPPING[model_type](**drawn)
    name = class_of(pick, kind, prefix)
    with torch.device("meta"):
        model = name(config=config) if model_type == "vision-encoder-decoder" else name(config)
        model.tie_weights()
    parameters = {key: value for key, value in model.named_parameters() if value.requires_grad}
    written = kept(json.loads(config.to_json_string(use_diff=True)))
    written["model_type"] = model_type
    written["architectures"] = [name.__name__]
    shapes = collections.Counter("x".join(map(str, p.shape)) for p in parameters.values())
    return {"config": written, "parameters": sum(p.numel() for p in parameters.values()),
            "tensors": len(parameters), "shapes": dict(sorted(shapes.items()))}


def main():
    import common
    import transformers
    common.quiet()
    cases = []
    families = FAMILIES if transformers.__version__.startswith("4.") else NEWER
    for family in families:
        for number in range(CASES_A_FAMILY):
            pick = random.Random(f"{family} {number}")
            try:
                case = case_of(family, families[family], pick)
            except Exception as error:
                raise RuntimeError(f"{family} {number}: {error}") from error
            cases.append(dict({"seed": len(cases), "family": family}, **case))
    common.write(sys.argv[1], {"framework": "transformers", "version": transformers.__version__}, cases)


if __name__ == "__main__":
    main()
