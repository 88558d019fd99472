"""Types of keyword arguments, for type checkers. Written by scripts/python_options.py: do not edit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from typing_extensions import TypedDict

Document = Union[str, os.PathLike[str], Mapping[str, Any]]
Documents = Union[Document, Sequence[Document]]
Number = Union[int, float, str]
Count = Union[int, str]
Words = Union[Count, Sequence[Count]]
Amounts = Union[str, Sequence[str], Mapping[str, Number]]


class SearchOptions(TypedDict, total=False):
    global_batch_size: Count
    gbs: Count
    batch_size: Count
    train_batch_size: Count
    seq: Count
    seq_length: Count
    sequence_length: Count
    seq_len: Count
    seqlen: Count
    max_seq_len: Count
    max_seq_length: Count
    context_length: Count
    block_size: Count
    layers: Count
    precision: Number
    dtype: Number
    mixed_precision: Number
    optimizer: Number
    optim: Number
    attention: Number
    attn_implementation: Number
    framework: Number
    runs_on: Number
    no_overlap: bool
    granularity: Number
    profile: Document
    profile_data_path: Document
    price: Amounts
    prices: Amounts
    gpu_price: Amounts
    catalogue: Documents
    lora: Number
    lora_rank: Number
    lora_r: Number
    lora_dim: Number
    qlora: Number
    qlora_rank: Number
    freeze: Count
    freeze_layers: Count
    flash_kernel: Number
    graph_capture: bool
    zero_group: Count
    hsdp_group: Count
    sharding_group_size: Count
    pure_states: bool
    gradient_bytes: Count
    reduce_bytes: Count
    logit_bytes: Count
    pad_vocabulary: Count
    make_vocab_size_divisible_by: Count
    memory_limit: Number
    max_memory: Number
    gpu_memory: Number
    reserve: Number
    deadline: Number
    budget: Number
    tokens: Count
    steps: Count
    train_iters: Count
    max_steps: Count
    goodput: Number
    effort: Number
    target_gap: Number
    time_limit: Number
    threads: Count
    max_tp: Count
    max_profiled_tp_degree: Count
    rotations: Count
    max_permute_len: Count
    group_scale_variance: Number
    min_group_scale_variance: Number
    max_micro_batch: Count
    max_profiled_batch_size: Count
    max_num_hops: Count
    start_num_stages: Count
    end_num_stages: Count
    initial_point: Number
    tp: Count
    tensor_model_parallel_size: Count
    tensor_parallel_size: Count
    tensor_parallel: Count
    pp: Count
    pipeline_model_parallel_size: Count
    pipeline_parallel_size: Count
    pipeline_parallel: Count
    dp: Count
    data_parallel_size: Count
    data_parallel: Count
    cp: Count
    context_parallel_size: Count
    context_parallel: Count
    ep: Count
    expert_model_parallel_size: Count
    expert_parallel_size: Count
    expert_parallel: Count
    micro_batch: Count
    micro_batch_size: Count
    mbs: Count
    per_device_train_batch_size: Count
    train_micro_batch_size_per_gpu: Count
    micro_batches: Count
    num_micro_batches: Count
    gradient_accumulation_steps: Count
    gradient_accumulation: Count
    grad_accum: Count
    recompute: Number
    recompute_granularity: Number
    recompute_layers: Count
    recompute_num_layers: Count
    zero: Number
    zero_stage: Number
    schedule: Number
    chunks: Count
    vpp: Count
    virtual_pipeline_model_parallel_size: Count
    sp: bool
    sequence_parallel: bool
    no_sp: bool
    no_sequence_parallel: bool
    stages: Words
    free_layout: bool
    offload: Number
    optimizer_cpu_offload_fraction: Number
    optimizer_offload_fraction: Number
    offload_optimizer: Number
    log: Document
    bf16: bool
    fp16: bool
    use_flash_attn: bool
    use_distributed_optimizer: bool
    recompute_activations: bool
    gradient_checkpointing: bool
    activation_checkpointing: bool
    optimizer_cpu_offload: bool
    cpu_offload: bool
    num_layers_per_virtual_pipeline_stage: Count


class PlanOptions(SearchOptions, total=False):
    hostfile_path: Document
    clusterfile: Document
    clusterfile_path: Document
    device: Number
    metis_args: Document
    max_batch: bool
    max_seq: bool
    objective: Number
    planner: Number
    cost_model: Document
    top: Count
    explain_search: bool


class CompareOptions(SearchOptions, total=False):
    hostfile_path: Document
    clusterfile: Document
    clusterfile_path: Document
    device: Number
    metis_args: Document
    objective: Number
    explain_search: bool


class ParetoOptions(SearchOptions, total=False):
    planner: Number
    spot: bool


class ReplanOptions(TypedDict, total=False):
    catalogue: Documents
    memory_limit: Number
    max_memory: Number
    gpu_memory: Number
    reserve: Number
    planner: Number
    time_limit: Number
    threads: Count
    offload: Number
    optimizer_cpu_offload_fraction: Number
    optimizer_offload_fraction: Number
    offload_optimizer: Number
    lost: Words
    lost_devices: Words
    slow: Amounts
    add: Documents
    restart: Number


class EstimateOptions(TypedDict, total=False):
    memory_limit: Number
    max_memory: Number
    gpu_memory: Number
    reserve: Number
    price: Amounts
    prices: Amounts
    gpu_price: Amounts


class EstimateFromOptions(TypedDict, total=False):
    hostfile_path: Document
    global_batch: Count
    global_batch_size: Count
    gbs: Count
    batch_size: Count
    train_batch_size: Count
    seq: Count
    seq_length: Count
    sequence_length: Count
    seq_len: Count
    seqlen: Count
    max_seq_len: Count
    max_seq_length: Count
    context_length: Count
    block_size: Count
    precision: Number
    dtype: Number
    mixed_precision: Number
    framework: Number
    device: Number
    lora: Number
    lora_rank: Number
    lora_r: Number
    lora_dim: Number
    qlora: Number
    qlora_rank: Number
    micro_batch: Count
    micro_batch_size: Count
    mbs: Count
    per_device_train_batch_size: Count
    train_micro_batch_size_per_gpu: Count
    micro_batches: Count
    num_micro_batches: Count
    gradient_accumulation_steps: Count
    gradient_accumulation: Count
    grad_accum: Count
    recompute: Number
    recompute_granularity: Number
    memory_limit: Number
    max_memory: Number
    gpu_memory: Number
    reserve: Number
    price: Amounts
    prices: Amounts
    gpu_price: Amounts
    time_limit: Number
    threads: Count


class ExplainOptions(TypedDict, total=False):
    time_limit: Number
    threads: Count


class CheckOptions(TypedDict, total=False):
    memory_limit: Number
    max_memory: Number
    gpu_memory: Number
    reserve: Number


class ExportOptions(TypedDict, total=False):
    launcher: Number
    nearest: bool
    force: bool
    time_limit: Number


class ValidateOptions(TypedDict, total=False):
    runs: Document
    by: Number
    grade: Number
    least_step: Number
    literal: bool
    profile: Document
    catalogue: Documents


class ImportOptions(TypedDict, total=False):
    form: Number
    model: Any
    seq: Count
