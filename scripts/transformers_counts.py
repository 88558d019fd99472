#!/usr/bin/env python3
"""Writes tests/models/transformers_counts.json: parameter counts as `transformers` itself gives them.

    pip install torch transformers
    python3 scripts/transformers_counts.py > tests/models/transformers_counts.json

Models are built on PyTorch's "meta" device, so that no memory is needed. Each row is a config (only
the keys that differ from the class's defaults), the class that was built, and its count.
"""
import json
import sys

import torch
import transformers

SMALL = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, vocab_size=211)
MOE = dict(SMALL, intermediate_size=96, moe_intermediate_size=40)
DEEPSEEK = dict(MOE, n_routed_experts=6, num_experts_per_tok=2, kv_lora_rank=24, q_lora_rank=32,
                qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=20, n_group=2, topk_group=1)

BART = dict(d_model=64, encoder_layers=3, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=8, encoder_ffn_dim=90, decoder_ffn_dim=70, vocab_size=211,
            max_position_embeddings=50)

CASES = [
    # model_type, class, keys
    ("gpt2", "GPT2LMHeadModel", [
        {}, dict(n_embd=1024, n_layer=24, n_head=16), dict(n_embd=1280, n_layer=36, n_head=20),
        dict(n_embd=1600, n_layer=48, n_head=25),
        dict(n_embd=60, n_layer=2, n_head=5, n_inner=77, n_positions=33, vocab_size=101),
        dict(n_embd=60, n_layer=2, n_head=5, tie_word_embeddings=False),
    ]),
    ("gpt_neo", "GPTNeoForCausalLM", [
        {}, dict(hidden_size=48, num_layers=2, num_heads=4, intermediate_size=100,
                 max_position_embeddings=64, attention_types=[[["global", "local"], 1]]),
        dict(hidden_size=48, num_layers=2, num_heads=4, tie_word_embeddings=False,
             attention_types=[[["global"], 2]]),
    ]),
    ("gpt_neox", "GPTNeoXForCausalLM", [
        {}, dict(SMALL, intermediate_size=256), dict(SMALL, attention_bias=False, intermediate_size=99),
        dict(SMALL, use_parallel_residual=False, tie_word_embeddings=True),
    ]),
    ("gptj", "GPTJForCausalLM", [{}, dict(n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_inner=70)]),
    ("opt", "OPTForCausalLM", [
        {}, dict(SMALL, ffn_dim=130, max_position_embeddings=40),
        dict(SMALL, ffn_dim=130, word_embed_proj_dim=24, do_layer_norm_before=False),
        dict(SMALL, ffn_dim=130, enable_bias=False, layer_norm_elementwise_affine=False),
        dict(SMALL, ffn_dim=130, tie_word_embeddings=False),
    ]),
    ("bloom", "BloomForCausalLM", [{}, dict(hidden_size=96, n_layer=3, n_head=6, vocab_size=500)]),
    ("falcon", "FalconForCausalLM", [
        {}, dict(SMALL, new_decoder_architecture=True, num_kv_heads=2),
        dict(SMALL, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1),
        dict(SMALL, multi_query=False, bias=True, alibi=True),
        dict(SMALL, parallel_attn=False, ffn_hidden_size=100, tie_word_embeddings=False),
    ]),
    ("phi", "PhiForCausalLM", [
        {}, dict(SMALL, intermediate_size=100, num_key_value_heads=2),
        dict(SMALL, intermediate_size=100, qk_layernorm=True),
    ]),
    ("phi3", "Phi3ForCausalLM", [
        {}, dict(SMALL, intermediate_size=90, num_key_value_heads=2, pad_token_id=0),
        dict(SMALL, intermediate_size=90, tie_word_embeddings=True, pad_token_id=0),
    ]),
    ("llama", "LlamaForCausalLM", [
        {}, dict(num_attention_heads=64, hidden_size=8192, num_hidden_layers=80,
                 num_key_value_heads=8, intermediate_size=28672),
        dict(SMALL, intermediate_size=100, num_key_value_heads=2, attention_bias=True),
        dict(SMALL, intermediate_size=100, mlp_bias=True, tie_word_embeddings=True),
        dict(SMALL, intermediate_size=100, head_dim=24, num_key_value_heads=1, attention_bias=True,
             mlp_bias=True),
    ]),
    ("mistral", "MistralForCausalLM", [
        {}, dict(SMALL, intermediate_size=90, num_key_value_heads=2),
        dict(SMALL, intermediate_size=90, num_key_value_heads=4, head_dim=8),
    ]),
    ("mixtral", "MixtralForCausalLM", [
        {}, dict(SMALL, intermediate_size=50, num_key_value_heads=2, num_local_experts=5),
        dict(SMALL, intermediate_size=50, num_key_value_heads=4, num_local_experts=2, head_dim=10,
             tie_word_embeddings=True),
    ]),
    ("qwen2", "Qwen2ForCausalLM", [
        {}, dict(SMALL, intermediate_size=80, num_key_value_heads=2),
        dict(SMALL, intermediate_size=80, num_key_value_heads=1, tie_word_embeddings=True),
    ]),
    ("qwen3", "Qwen3ForCausalLM", [
        {}, dict(SMALL, intermediate_size=80, num_key_value_heads=2),
        dict(SMALL, intermediate_size=80, num_key_value_heads=1, head_dim=12, attention_bias=True,
             tie_word_embeddings=True),
    ]),
    ("qwen2_moe", "Qwen2MoeForCausalLM", [
        {}, dict(MOE, num_experts=6, num_key_value_heads=2, shared_expert_intermediate_size=72),
        dict(MOE, num_experts=6, num_key_value_heads=2, decoder_sparse_step=2),
        dict(MOE, num_experts=6, num_key_value_heads=4, mlp_only_layers=[1], qkv_bias=False),
    ]),
    ("qwen3_moe", "Qwen3MoeForCausalLM", [
        {}, dict(MOE, num_experts=6, num_key_value_heads=2, head_dim=20),
        dict(MOE, num_experts=6, num_key_value_heads=2, decoder_sparse_step=2, mlp_only_layers=[1],
             attention_bias=True, tie_word_embeddings=True),
    ]),
    ("gemma", "GemmaForCausalLM", [
        {}, dict(SMALL, intermediate_size=80, num_key_value_heads=1, head_dim=24),
        dict(SMALL, intermediate_size=80, num_key_value_heads=4, attention_bias=True,
             tie_word_embeddings=False),
    ]),
    ("gemma2", "Gemma2ForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2,
                                              head_dim=20)]),
    ("gemma3_text", "Gemma3ForCausalLM", [{}, dict(SMALL, intermediate_size=80,
                                                   num_key_value_heads=2, head_dim=20)]),
    ("olmo2", "Olmo2ForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2,
                                            attention_bias=True)]),
    ("bert", "BertForMaskedLM", [
        {}, dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                 intermediate_size=4096),
        dict(SMALL, intermediate_size=100, type_vocab_size=3, max_position_embeddings=40),
        dict(SMALL, intermediate_size=100, tie_word_embeddings=False),
    ]),
    ("bert", "BertForPreTraining", [{}, dict(SMALL, intermediate_size=100)]),
    ("bert", "BertModel", [dict(SMALL, intermediate_size=100)]),
    ("bert", "BertForSequenceClassification", [dict(SMALL, intermediate_size=100, num_labels=7)]),
    ("roberta", "RobertaForMaskedLM", [{}, dict(SMALL, intermediate_size=100, tie_word_embeddings=False), dict(SMALL, intermediate_size=100, type_vocab_size=1,
                                                max_position_embeddings=42)]),
    ("roberta", "RobertaForSequenceClassification", [dict(SMALL, intermediate_size=100, num_labels=5)]),
    ("roberta", "RobertaModel", [dict(SMALL, intermediate_size=100)]),
    ("t5", "T5ForConditionalGeneration", [
        {}, dict(d_model=1024, num_layers=24, num_heads=16, d_ff=4096),
        dict(d_model=48, num_layers=3, num_decoder_layers=2, num_heads=5, d_kv=7, d_ff=90,
             vocab_size=300, relative_attention_num_buckets=11),
        dict(d_model=48, num_layers=2, num_heads=4, d_kv=12, d_ff=90, feed_forward_proj="gated-gelu"),
        dict(d_model=48, num_layers=2, num_heads=4, d_kv=12, d_ff=90, tie_word_embeddings=False),
    ]),
    ("umt5", "UMT5ForConditionalGeneration", [{}, dict(d_model=48, num_layers=2, num_heads=4, d_kv=12,
                                                       d_ff=90, num_decoder_layers=3)]),
    ("bart", "BartForConditionalGeneration", [{}, BART]),
    ("bart", "BartModel", [BART]),
    ("mbart", "MBartForConditionalGeneration", [{}, BART]),
    ("mvp", "MvpForConditionalGeneration", [{}]),
    ("plbart", "PLBartForConditionalGeneration", [{}, BART]),
    ("pegasus", "PegasusForConditionalGeneration", [{}, BART]),
    ("marian", "MarianMTModel", [{}, dict(BART, pad_token_id=0)]),
    ("m2m_100", "M2M100ForConditionalGeneration", [{}, BART]),
    ("blenderbot", "BlenderbotForConditionalGeneration", [{}, BART]),
    ("blenderbot-small", "BlenderbotSmallForConditionalGeneration", [{}, BART]),
    ("electra", "ElectraForMaskedLM", [{}, dict(SMALL, embedding_size=24, intermediate_size=90),
                                       dict(SMALL, embedding_size=64)]),
    ("electra", "ElectraForPreTraining", [{}]),
    ("electra", "ElectraModel", [dict(SMALL, embedding_size=24)]),
    ("albert", "AlbertForMaskedLM", [
        {}, dict(SMALL, embedding_size=24, intermediate_size=90, type_vocab_size=3),
        dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
    ]),
    ("albert", "AlbertModel", [dict(SMALL, embedding_size=24, intermediate_size=90)]),
    ("albert", "AlbertForPreTraining", [dict(SMALL, embedding_size=24, intermediate_size=90)]),
    ("mt5", "MT5ForConditionalGeneration", [{}, dict(d_model=48, num_layers=2, num_heads=4, d_kv=12,
                                                     d_ff=90)]),
    ("vit", "ViTForImageClassification", [
        {}, dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                 intermediate_size=4096, num_labels=1000),
        dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=90,
             image_size=48, patch_size=8, num_channels=1, qkv_bias=False, num_labels=3),
    ]),
    ("vit", "ViTModel", [dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                              intermediate_size=90, image_size=50, patch_size=8)]),
    ("deepseek_v2", "DeepseekV2ForCausalLM", [
        dict(DEEPSEEK, n_shared_experts=2, first_k_dense_replace=1),
        dict(DEEPSEEK, n_shared_experts=1, q_lora_rank=None, first_k_dense_replace=0,
             attention_bias=True),
        dict(DEEPSEEK, mlp_bias=True),
    ]),
    ("deepseek_v3", "DeepseekV3ForCausalLM", [
        {}, dict(DEEPSEEK, first_k_dense_replace=1), dict(DEEPSEEK, q_lora_rank=None,
                                                          n_shared_experts=2, attention_bias=True),
        dict(DEEPSEEK, first_k_dense_replace=2, tie_word_embeddings=True),
    ]),
    ("olmo", "OlmoForCausalLM", [{}, dict(SMALL, intermediate_size=80, attention_bias=True)]),
    ("granite", "GraniteForCausalLM", [dict(SMALL, intermediate_size=80, mlp_bias=True)]),
    ("smollm3", "SmolLM3ForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2,
                                                pad_token_id=0)]),
    ("starcoder2", "Starcoder2ForCausalLM", [{}, dict(SMALL, intermediate_size=80, use_bias=False)]),
    ("olmoe", "OlmoeForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_experts=6,
                                            num_key_value_heads=2)]),
    ("gpt_oss", "GptOssForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_local_experts=6,
                                               num_key_value_heads=2, head_dim=12)]),
    ("glm4_moe", "Glm4MoeForCausalLM", [
        {}, dict(MOE, n_routed_experts=6, num_key_value_heads=2, use_qk_norm=True),
        dict(MOE, n_routed_experts=6, num_key_value_heads=2, attention_bias=True, head_dim=12),
    ]),
    ("llama", "LlamaForSequenceClassification", [dict(SMALL, intermediate_size=100, num_labels=5)]),
    ("llama", "LlamaModel", [dict(SMALL, intermediate_size=100)]),
    ("gpt2", "GPT2Model", [dict(n_embd=60, n_layer=2, n_head=5)]),
    ("gpt2", "GPT2ForTokenClassification", [dict(n_embd=60, n_layer=2, n_head=5, num_labels=5)]),
    ("llama", "LlamaForTokenClassification", [dict(SMALL, intermediate_size=100, num_labels=5)]),
    ("llama", "LlamaForQuestionAnswering", [dict(SMALL, intermediate_size=100)]),
    ("bert", "BertForTokenClassification", [dict(SMALL, intermediate_size=100, num_labels=9)]),
    ("bert", "BertForQuestionAnswering", [dict(SMALL, intermediate_size=100)]),
    ("bert", "BertForNextSentencePrediction", [dict(SMALL, intermediate_size=100)]),
    ("bert", "BertForMultipleChoice", [dict(SMALL, intermediate_size=100)]),
    ("t5", "T5EncoderModel", [{}, dict(d_model=48, num_layers=2, num_heads=4, d_kv=12, d_ff=90)]),
    ("distilbert", "DistilBertForMaskedLM", [
        {}, dict(dim=64, n_layers=2, n_heads=4, hidden_dim=90, vocab_size=211),
        dict(dim=64, n_layers=2, n_heads=4, hidden_dim=90, tie_word_embeddings=False),
    ]),
    ("distilbert", "DistilBertForSequenceClassification", [dict(dim=64, n_layers=2, n_heads=4)]),
    ("distilbert", "DistilBertModel", [dict(dim=64, n_layers=2, n_heads=4)]),
    ("deit", "DeiTForImageClassification", [dict(num_labels=1000)]),
    ("deit", "DeiTForImageClassificationWithTeacher", [dict(num_labels=1000)]),
    ("deit", "DeiTModel", [dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4)]),
    ("stablelm", "StableLmForCausalLM", [
        {}, dict(SMALL, intermediate_size=80, num_key_value_heads=2, use_qkv_bias=True),
        dict(SMALL, intermediate_size=80, num_key_value_heads=2, use_parallel_residual=True,
             qk_layernorm=True),
    ]),
    ("cohere", "CohereForCausalLM", [
        {}, dict(SMALL, intermediate_size=80, num_key_value_heads=2, use_qk_norm=True),
        dict(SMALL, intermediate_size=80, attention_bias=True),
    ]),
    ("cohere2", "Cohere2ForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2)]),
    ("olmo3", "Olmo3ForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2)]),
    ("glm", "GlmForCausalLM", [{}, dict(SMALL, intermediate_size=80, attention_bias=False,
                                        pad_token_id=0)]),
    ("glm4", "Glm4ForCausalLM", [{}, dict(SMALL, intermediate_size=80, head_dim=12, pad_token_id=0)]),
    ("nemotron", "NemotronForCausalLM", [dict(SMALL, intermediate_size=80, mlp_bias=True,
                                              num_key_value_heads=2)]),
    ("seed_oss", "SeedOssForCausalLM", [{}, dict(SMALL, intermediate_size=80, num_key_value_heads=2,
                                                 attention_out_bias=True, mlp_bias=True)]),
    ("mpt", "MptForCausalLM", [{}, dict(d_model=64, n_layers=2, n_heads=4, vocab_size=211)]),
    ("gpt_bigcode", "GPTBigCodeForCausalLM", [{}, dict(n_embd=60, n_layer=2, n_head=5,
                                                       multi_query=False)]),
    ("codegen", "CodeGenForCausalLM", [{}, dict(n_embd=64, n_layer=2, n_head=4, rotary_dim=8,
                                                n_inner=70)]),
    ("phimoe", "PhimoeForCausalLM", [
        {}, dict(SMALL, intermediate_size=50, num_key_value_heads=2, num_local_experts=4,
                 attention_bias=True, lm_head_bias=True),
    ]),
    ("llama4_text", "Llama4ForCausalLM", [
        {}, dict(SMALL, intermediate_size=50, intermediate_size_mlp=90, num_key_value_heads=2,
                 num_local_experts=4, interleave_moe_layer_step=2, head_dim=12),
        dict(SMALL, intermediate_size=50, intermediate_size_mlp=90, num_key_value_heads=2,
             num_local_experts=4, moe_layers=[0, 2], head_dim=12),
    ]),
]


def count(model_type, class_name, keys):
    config = transformers.AutoConfig.for_model(model_type, **keys)
    with torch.device("meta"):
        model = getattr(transformers, class_name)(config)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


def main():
    rows = []
    for model_type, class_name, configs in CASES:
        for keys in configs:
            try:
                parameters = count(model_type, class_name, keys)
            except Exception as error:
                sys.exit(f"{model_type} {class_name} {keys}: {error}")
            config = dict(model_type=model_type, architectures=[class_name], **keys)
            rows.append(dict(config=config, parameters=parameters))
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    print(f'{{\n  "transformers": "{transformers.__version__}",\n  "rows": [\n{lines}\n  ]\n}}')


if __name__ == "__main__":
    main()
