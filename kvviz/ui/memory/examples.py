"""Worked examples of the Memory page."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

PLAIN = {"mem_batch": "1", "mem_dtype": "own", "mem_gpus": "1"}
FULL = {"policy": "full", "b_policy": "full"}
LLAMA_3 = {**PLAIN, "mem_model": "meta-llama/Meta-Llama-3-8B", "mem_tokens": "4096"}
EXAMPLES = (
    Example(
        "4,096 tokens × 4 KiB in one layer",
        "16 MiB in full; with 32 sinks + 480 recent = 512 tokens it is 2 MiB: one eighth.",
        {
            **PLAIN,
            "mem_model": "example/one-layer-of-4-KiB",
            "mem_tokens": "4096",
            "policy": "streaming:budget=512,sinks=32",
            "b_policy": "full",
        },
    ),
    Example(
        "32 layers, 8 KV heads, 4,096 tokens",
        "2·L·S·n·d·b = 512 MiB. The first box shows 32 heads: 2 GiB, four times as much.",
        {**LLAMA_3, **FULL},
    ),
    Example(
        "The same for 4 sequences",
        "2 GiB: the cache grows with every sequence, the weights do not.",
        {**LLAMA_3, **FULL, "mem_batch": "4"},
    ),
    Example(
        "A window of 4,096 at 32 K",
        "Mistral 7B holds 512 MiB where the full cache (its version 0.3) holds 4 GiB: 8 times less.",
        {**PLAIN, **FULL, "mem_model": "mistralai/Mistral-7B-v0.1", "mem_tokens": "32768"},
    ),
    Example(
        "Latent attention",
        "DeepSeek-V3 keeps 512 + 64 numbers per token and layer; one KV head per query head would be 2 × 128 × 128.",
        {**PLAIN, **FULL, "mem_model": "deepseek-ai/DeepSeek-V3", "mem_tokens": "131072"},
    ),
    Example(
        "Windows in some layers",
        "Gemma 3 27B: 52 of 62 layers hold 1,024 tokens, so only ten layers grow.",
        {**PLAIN, **FULL, "mem_model": "google/gemma-3-27b", "mem_tokens": "131072"},
    ),
)
