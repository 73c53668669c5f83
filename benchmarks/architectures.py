"""Every causal architecture that transformers can build tiny: does kvviz run it rightly, refuse it, or err?

``python -m benchmarks.architectures [NAME …]`` prints a row each. The try that decides reads 9 tokens; a model that it
lets pass then reads 24, beyond its own windows, and is compared again: with the stock model under the same masks, with
the stock model's tokens run at the places that slot positions give them, and with itself in blocks of other sizes.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SECONDS, BYTES = 120, 10 * 2**30
TOKENS, BUDGET, SINKS = 24, 6, 2
ALLOWED = 1e-3  # nats; softmax and cosines in float32 inside the models leave up to 7e-4, what is wrong 0.1 and more


def verdict(name: str) -> str:
    """One line about an architecture; runs in a process of its own, which may die."""
    import torch
    import transformers

    from benchmarks.tiny_zoo import tiny_config, tiny_model
    from kvviz.analysis.trial import try_model

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    ids = torch.arange(5, 5 + TOKENS)
    try:
        model = sharpened(tiny_model(tiny_config(name))).double()
        try:
            model(input_ids=ids[None, :9])
        except RuntimeError:  # parts that know no float64
            model = model.float()
            model(input_ids=ids[None, :9])
    except BaseException as error:
        return f"not built  {type(error).__name__}: {' '.join(str(error).split())[:110]}"
    trial = try_model(model)
    if not trial.is_ok:
        return f"refused    {trial.reason}"
    try:
        gaps = {case: gap for case, gap in further_gaps(model, ids, trial).items() if gap is not None}
    except Exception:
        return f"wrong      a traceback after the try: {traceback.format_exc(limit=-2)!r}"
    word = "right" if all(gap <= ALLOWED for gap in gaps.values()) else "wrong"
    parts = [f"{case} {gap:.1e}" for case, gap in gaps.items()]
    refused = {**trial.policies, **trial.storages, "slot": trial.slot}
    parts += [f"without {what}" for what, answer in refused.items() if answer is not True]
    return f"{word:10} {', '.join(parts)}"


def sharpened(model):
    """With flat attention a wrong mask would hardly show, so query and key weights are scaled up."""
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        if any(part in name for part in ("q_proj", "k_proj", "c_attn", "query_key_value", "qkv")):
            parameter.mul_(4)
    return model


def further_gaps(model, ids, trial) -> dict[str, float | None]:
    """Gaps in log-probability beyond what the try looked at; None where the model refuses the setup."""
    import torch

    from kvviz.analysis.against_stock import gap_between
    from kvviz.choices.setup import parse_setup
    from kvviz.models.stock import stock_logits
    from kvviz.run.engine import Pass
    from tests.naive_slots import renumbered_logits

    def read(block: int, **words: str):
        run = Pass(model, parse_setup(words), prompt_tokens=TOKENS // 2)
        return torch.cat([run.feed(ids[start : start + block]) for start in range(0, TOKENS, block)])

    def gap(policy: str, expected: Callable, block: int = TOKENS, **words: str) -> float | None:
        setup = parse_setup({"policy": policy, **words})
        return None if trial.refusal(setup) else gap_between(read(block, policy=policy, **words), expected())

    h2o, streaming = f"h2o:budget={BUDGET},recent=3", f"streaming:budget={BUDGET},sinks={SINKS}"
    return {
        "full": gap("full", lambda: stock_logits(model, ids)),
        "stepped": gap("full", lambda: stock_logits(model, ids), block=1),
        "window": gap(f"window:budget={BUDGET}", lambda: stock_logits(model, ids, window=BUDGET), block=7),
        "h2o in blocks": gap(h2o, lambda: read(1, policy=h2o), block=7),
        "slot": gap(streaming, lambda: renumbered_logits(model, ids, BUDGET, SINKS), block=7, positions="slot"),
    }


def apart(name: str) -> str:
    """``verdict`` in a child process with a limit on time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict"
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            path.write_text(verdict(name))
            os._exit(0)
        os.waitpid(child, 0)
        return path.read_text() if path.exists() else "not built  the process died or took too long"


def main() -> None:
    import torch
    import transformers

    from benchmarks.tiny_zoo import FAMILIES, VARIANTS

    torch.set_num_threads(1)  # a thread pool does not survive a fork
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    counts: Counter[str] = Counter()
    for name in sys.argv[1:] or [*FAMILIES, *VARIANTS]:
        line = apart(name)
        counts[line[:10].strip()] += 1
        print(f"{name:28} {line}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.most_common()))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
