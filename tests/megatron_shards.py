"""Megatron-Core's own network of one rank, built without a GPU and without weights."""
import contextlib

import torch
import torch.distributed


@contextlib.contextmanager
def one_rank(rank, world, degrees):
    """Process groups as this rank would have them, over processes that are not there."""
    from megatron.core import parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    try:
        parallel_state.initialize_model_parallel(
            degrees["tp"], degrees["pp"], degrees.get("chunks"), context_parallel_size=degrees["cp"],
            expert_model_parallel_size=degrees["ep"], create_gloo_process_groups=False)
        yield parallel_state
    finally:
        parallel_state.destroy_model_parallel()
        torch.distributed.destroy_process_group()


def parameters_of(rank, world, degrees, config, flags):
    """Numbers of parameters and of layers that a rank has, over all of its chunks."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    torch.cuda.current_device = lambda: "meta"
    torch.cuda.Stream = torch.cuda.Event = lambda *_, **__: None
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    parameters = layers = 0
    with one_rank(rank, world, degrees) as state, torch.device("meta"):
        chunks = degrees.get("chunks") or 1
        for chunk in range(chunks):
            where = {"vp_stage": chunk} if chunks > 1 else {}
            first = {"ignore_virtual": False, **where} if chunks > 1 else {}
            if config.num_moe_experts:
                spec = get_gpt_decoder_block_spec(config, use_transformer_engine=False,
                                                  normalization=config.normalization, **where)
            else:
                spec = get_gpt_layer_local_spec(qk_layernorm=config.qk_layernorm, normalization=config.normalization,
                                                multi_latent_attention=config.multi_latent_attention)
            model = GPTModel(
                config, spec, vocab_size=flags["padded_vocab_size"], max_sequence_length=int(flags["max_position_embeddings"]),
                pre_process=state.is_pipeline_first_stage(**first), post_process=state.is_pipeline_last_stage(**first),
                share_embeddings_and_output_weights="untie_embeddings_and_output_weights" not in flags,
                position_embedding_type=flags["position_embedding_type"], **where)
            parameters += sum(p.numel() for p in model.parameters())
            layers += len(model.decoder.layers)
    return parameters, layers
