// The part of TorchTitan's configuration module that no plan changes.
namespace plait {

extern const char* const kTorchtitanModule;
const char* const kTorchtitanModule = R"PY(

import dataclasses
from functools import partial

import torch
from torch import nn
from torchtitan.config import CompileConfig, ParallelismConfig
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.common.config_utils import (
    decoder_vocab_size, get_attention_config, make_ffn_config, make_gqa_config)
from torchtitan.models.common.param_init import depth_scaled_std, skip_param_init
from torchtitan.models.llama3.config_registry import llama3_8b
from torchtitan.models.llama3.model import Llama3Model, Llama3TransformerBlock


def normal(std):
    return {"weight": partial(nn.init.trunc_normal_, std=std), "bias": nn.init.zeros_}


def norm():
    return RMSNorm.Config(normalized_shape=NETWORK["dim"], eps=NETWORK["norm_eps"],
                          param_init={"weight": nn.init.ones_})


def layer(number):
    n = NETWORK
    depth = normal(depth_scaled_std(0.02, number))
    rope = ComplexRoPE.Config(dim=n["head_dim"], max_seq_len=TRAINING["seq_len"], **n["rope"])
    return Llama3TransformerBlock.Config(
        attention_norm=norm(),
        ffn_norm=norm(),
        attention=make_gqa_config(
            dim=n["dim"], n_heads=n["n_heads"], n_kv_heads=n["n_kv_heads"], head_dim=n["head_dim"],
            wqkv_param_init=normal(0.02), wo_param_init=depth,
            inner_attention=get_attention_config("flex"), fuse_qkv=True, rope=rope),
        feed_forward=make_ffn_config(dim=n["dim"], hidden_dim=n["hidden_dim"],
                                     w1_param_init=normal(0.02), w2w3_param_init=depth))


def network():
    n = NETWORK
    table = {"weight": skip_param_init if n["tied"] else partial(nn.init.normal_, std=1.0)}
    return Llama3Model.Config(
        dim=n["dim"], vocab_size=n["vocab_size"], enable_weight_tying=n["tied"],
        tok_embeddings=Embedding.Config(num_embeddings=n["vocab_size"], embedding_dim=n["dim"],
                                        param_init=table),
        norm=norm(),
        lm_head=Linear.Config(in_features=n["dim"], out_features=n["vocab_size"],
                              param_init=normal(n["dim"] ** -0.5)),
        layers=[layer(number) for number in range(n["n_layers"])])


def plait_plan():
    """The configuration; TorchTitan calls it."""
    if TF32:
        torch.set_float32_matmul_precision("high")
    config = llama3_8b()
    model = network()
    if FLOAT8:
        from torchtitan.components.quantization import Float8LinearConverter
        model = Float8LinearConverter.Config(recipe_name="rowwise", filter_fqns=["lm_head"],
                                             model_compile_enabled=COMPILE).build().convert(model)
    spec = dataclasses.replace(config.model_spec, flavor="plait", model=model)
    recompute = {"none": None, "selective": SelectiveAC.Config(), "full": FullAC.Config()}
    return dataclasses.replace(
        config,
        model_spec=spec,
        training=dataclasses.replace(config.training, **TRAINING),
        parallelism=ParallelismConfig(**PARALLELISM),
        activation_checkpoint=recompute[RECOMPUTE],
        compile=CompileConfig(enable=COMPILE, enable_async_tensor_parallel=ASYNC_TENSOR_PARALLEL),
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec))))
)PY";

}  // namespace plait
