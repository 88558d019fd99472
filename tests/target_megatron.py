"""Exports to Megatron-LM, judged by Megatron-Core and by the list of Megatron-LM's flags."""
import json
import pathlib
import re

from target_run import Plan, plait, recorded

ROOT = pathlib.Path(__file__).resolve().parent.parent


def flag_table():
    """Megatron-LM's flags with their numbers of values, as the test beside the exporter lists them."""
    text = (ROOT / "src" / "export" / "megatron_test.cpp").read_text()
    return {flag: int(n) for flag, n in re.findall(r'\{"(--[a-z0-9-]+)", (\d)\}', text)}


def parsed_flags(words):
    table, flags, at = flag_table(), {}, 0
    while at < len(words):
        flag = words[at]
        assert flag in table, f"not a flag of Megatron-LM: {flag}"
        end = at + 1
        while end < len(words) and not words[end].startswith("--"):
            end += 1
        values = words[at + 1:end]
        assert table[flag] == 9 and values or len(values) == table[flag], (flag, values)
        assert flag not in flags, f"{flag} twice"
        flags[flag[2:].replace("-", "_")] = values[0] if table[flag] == 1 else values or True
        at = end
    return flags


def check_megatron(out):
    import torch
    from megatron.core.optimizer import optimizer_config
    from megatron.core.parallel_state import RankGenerator
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig
    plan = Plan(out / "plan.json")
    [call] = recorded(out / "run.sh", DATA_PATH="data", VOCAB_FILE="words", CHECKPOINTS="kept here")
    words = call["words"]
    at = next(i for i, word in enumerate(words) if word.endswith(".py"))
    f = parsed_flags(words[at + 1:])
    tp, pp = int(f["tensor_model_parallel_size"]), int(f["pipeline_model_parallel_size"])
    cp, ep = int(f.get("context_parallel_size", 1)), int(f.get("expert_model_parallel_size", 1))
    if tp > 1 or cp > 1:
        assert call["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    world = len(plan.devices)
    dp = world // (tp * pp * cp)
    assert int(f["global_batch_size"]) % (int(f["micro_batch_size"]) * dp) == 0
    assert dp * cp % int(f.get("num_distributed_optimizer_instances", 1)) == 0
    # The layers of every stage.
    layers = int(f.get("num_layers") or f["encoder_num_layers"])
    if "encoder_num_layers" in f:  # pretrain_t5.py: one stage, both stacks of the same size
        chunks = 1
        assert pp == 1 and words[at].endswith("pretrain_t5.py")
        assert layers == plan.network["layers"] == int(f["decoder_num_layers"]) == plan.network["decoder_layers"]
        got = plan.layers_by_chunk()
    elif "pipeline_model_parallel_layout" in f:
        layout = PipelineParallelLayerLayout.from_str(f["pipeline_model_parallel_layout"], pp)
        layout.validate_layer_layout(layers, None)
        chunks = layout.virtual_pipeline_model_parallel_size
        from megatron.core.transformer.enums import LayerType
        got = [layout.layout[p][v].count(LayerType.decoder) for v in range(chunks) for p in range(pp)]
    else:
        chunks = int(f.get("num_virtual_stages_per_pipeline_rank", 1))
        got = [layers // (pp * chunks)] * (pp * chunks)
    assert got == plan.layers_by_chunk(), (got, plan.layers_by_chunk())
    # The groups of every rank are the plan's devices.
    ranks = RankGenerator(tp=tp, ep=1, dp=dp, pp=pp, cp=cp, order="tp-cp-ep-dp-pp")
    size = tp * cp
    want = [stage["devices"][i:i + tp] for stage in plan.stages for i in range(0, len(stage["devices"]), tp)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("tp")) == sorted(want)
    want = [[stage["devices"][d * size + i] for d in range(dp)] for stage in plan.stages for i in range(size)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("dp")) == sorted(want)
    want = [[stage["devices"][i] for stage in plan.stages] for i in range(dp * size)]
    assert sorted([plan.devices[r] for r in g] for g in ranks.get_ranks("pp")) == sorted(want)
    # The network and its parallelism.
    latent = "multi_latent_attention" in f
    number = lambda key, kind=int, fallback=None: kind(f[key]) if key in f else fallback
    kind = MLATransformerConfig if latent else TransformerConfig
    more = dict(q_lora_rank=number("q_lora_rank"), kv_lora_rank=number("kv_lora_rank"),
                qk_head_dim=number("qk_head_dim"), qk_pos_emb_head_dim=number("qk_pos_emb_head_dim"),
                v_head_dim=number("v_head_dim"), rope_type=f["rope_type"]) if latent else {}
    biased = "disable_bias_linear" not in f
    if "moe_layer_freq" in f:
        more["moe_layer_freq"] = eval(f["moe_layer_freq"])  # as Megatron-LM does
        assert len(more["moe_layer_freq"]) == layers
    if "window_size" in f:
        more["window_size"] = tuple(int(n) for n in f["window_size"].split(","))  # as Megatron-LM does
        more["window_attn_skip_freq"] = eval(f.get("window_attn_skip_freq", "None"))
        from megatron.core.transformer.utils import is_layer_window_attention
        full = [n for n in range(layers) if not is_layer_window_attention(
            more["window_size"], more["window_attn_skip_freq"], n + 1)]
        assert full == plan.network["window"].get("full", []), (full, plan.network["window"])
        assert more["window_size"] == (plan.network["window"]["size"] - 1, 0)
    if "fp8_format" in f:
        more |= dict(fp8=f["fp8_format"], fp8_recipe=f["fp8_recipe"])
    built = kind(num_layers=layers, hidden_size=int(f["hidden_size"]),
         num_attention_heads=int(f["num_attention_heads"]), ffn_hidden_size=int(f["ffn_hidden_size"]),
         num_query_groups=number("num_query_groups"), kv_channels=number("kv_channels"),
         hidden_dropout=float(f["hidden_dropout"]), attention_dropout=float(f["attention_dropout"]),
         layernorm_epsilon=float(f["norm_epsilon"]), add_bias_linear=biased,
         add_qkv_bias="add_qkv_bias" in f, gated_linear_unit="swiglu" in f,
         activation_func=torch.nn.functional.silu if "swiglu" in f else torch.nn.functional.gelu,
         normalization=f["normalization"], qk_layernorm="qk_layernorm" in f,
         num_moe_experts=number("num_experts"), moe_ffn_hidden_size=number("moe_ffn_hidden_size"),
         moe_router_topk=number("moe_router_topk", int, 2),
         moe_shared_expert_intermediate_size=number("moe_shared_expert_intermediate_size"),
         moe_router_pre_softmax="moe_router_pre_softmax" in f,
         moe_token_dispatcher_type=f.get("moe_token_dispatcher_type", "allgather"),
         tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp, context_parallel_size=cp,
         expert_model_parallel_size=ep, sequence_parallel="sequence_parallel" in f,
         virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
         pipeline_model_parallel_layout=f.get("pipeline_model_parallel_layout"),
         recompute_granularity=f.get("recompute_granularity"),
         recompute_method=f.get("recompute_method"), recompute_num_layers=number("recompute_num_layers"),
         recompute_modules=f.get("recompute_modules"),
         bf16="bf16" in f, fp16="fp16" in f, params_dtype=torch.bfloat16 if "bf16" in f else torch.float16
         if "fp16" in f else torch.float32, pipeline_dtype=torch.bfloat16, **more)
    optimizer_config.is_te_min_version = lambda *_: True  # Transformer Engine needs a GPU
    optimizer_config.OptimizerConfig(
        optimizer=f["optimizer"], use_distributed_optimizer="use_distributed_optimizer" in f,
        use_precision_aware_optimizer="use_precision_aware_optimizer" in f,
        optimizer_cpu_offload="optimizer_cpu_offload" in f,
        optimizer_offload_fraction=float(f.get("optimizer_offload_fraction", 0)),
        overlap_param_gather="overlap_param_gather" in f, bf16="bf16" in f, fp16="fp16" in f,
        fp8_recipe=f.get("fp8_recipe"))
    if words[at].endswith("pretrain_gpt.py") and not latent:  # which needs Transformer Engine
        f["padded_vocab_size"] = plan.padded_vocabulary(f)
        check_megatron_shards(out, plan, built, f, {"tp": tp, "pp": pp, "cp": cp, "ep": ep,
                                                    "chunks": chunks if chunks > 1 else None})


def check_megatron_shards(out, plan, config, flags, degrees):
    """Megatron-Core's own network has in every stage the parameters that plait counts there."""
    from megatron_shards import parameters_of
    config.bias_activation_fusion = config.bias_dropout_fusion = False
    config.masked_softmax_fusion = config.moe_grouped_gemm = config.perform_initialization = False
    # Neither changes parameters, and what stands for Transformer Engine refuses both.
    config.sequence_parallel, config.context_parallel_size = False, 1
    width = 4 if "bf16" not in flags and "fp16" not in flags else 2
    stages = json.loads(plait("estimate", out / "plan.json", "--json").stdout)["stages"]
    for number in {0, len(stages) // 2, len(stages) - 1}:
        rank = number * len(plan.stages[0]["devices"])
        parameters, _ = parameters_of(rank, len(plan.devices), degrees, config, flags)
        own = stages[number]["memory"]["weights_GiB"] * 2**30 / width
        # plait cuts biases that every rank has whole, and pads no table of words in memory.
        assert abs(parameters / own - 1) < 3e-3, (number, parameters, own)
