"""The run report for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def report_markdown(report: Mapping[str, Any]) -> str:
    """The report for people: the same numbers, a line each, and what becomes of them under other setups."""
    rates, needles = report["tokens_per_second"], report["needles"]
    lines = {
        "model, number format": f"{report['model']}, {report['dtype']}",
        "device, threads": f"{report['device']}, {report['threads']}",
        "setup": f"`{report['setup']}`",
        "prompt, new tokens, sequences at once": f"{report['prompt_tokens']}, {report['new_tokens']}, "
        f"{report['concurrency']}",
        "peak memory of the host": mib(report["peak_host_bytes"]),
        "peak memory of the GPU": mib(report["peak_device_bytes"]),
        "prefill": f"{report['prefill_seconds']:.3g} s",
        "time to the first token (TTFT)": f"{report['ttft_seconds']:.3g} s",
        f"decode, median of {report['repeats']}": f"{rates['median']:.3g} tokens/s "
        f"({rates['low']:.3g} to {rates['high']:.3g})",
        "cache at the end": mib(report["cache_bytes"]),
        "needles found": needle_words(needles),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in lines.items())
    rows = "\n".join(
        f"| `{row['setup']}` | {row['nll']:.3f} | {mib(row['cache_bytes'])} | {row['tokens_per_second']:.3g} |"
        for row in report["after"]
    )
    head = "| setup | loss (nats a token) | cache | decode (tokens/s) |\n|---|---|---|---|"
    return f"| measured | |\n|---|---|\n{table}\n\nAfter eviction, quantisation and offload:\n\n{head}\n{rows}\n"


def mib(count: int | None) -> str:
    return "none" if count is None else f"{count / 2**20:,.1f} MiB"


def needle_words(needles: Mapping[str, Any] | None) -> str:
    """How many, with the interval; why not where there are none."""
    if needles is None:
        return "the prompt is too short for one"
    if needles["void"]:
        return "void: the full cache itself finds less than 95 % of them at this length"
    low, high = needles["interval"]
    return f"{needles['found']} of {needles['of']} (95 % interval {low:.0%} to {high:.0%})"
