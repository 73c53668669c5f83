"""The README's table of methods, one measured row each; ``python -m benchmarks methods`` makes it.

The language reference, T = 1536, the prompt ends after 1024 tokens and the 512 tokens after it are scored. snapkv and
pyramidkv keep 256 entries of the prompt and add what follows, so they end with 768; the rows with a budget of 768 are
what the same bytes buy other policies.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import stock
from benchmarks.material import loaded, text_ids
from benchmarks.results import Row
from benchmarks.timing import seconds_of
from kvviz.choices.setup import parse_setup
from kvviz.run.replay import replay

TOKENS, PROMPT = 1536, 1024
SPECS = (
    ({"policy": "full"}, ""),
    ({"policy": "window:budget=256"}, ""),
    ({"policy": "rolling:budget=256"}, ""),
    ({"policy": "streaming:budget=256,sinks=4"}, ""),
    ({"policy": "streaming:budget=256,sinks=4", "positions": "slot"}, ""),
    ({"policy": "h2o:budget=256,recent=128"}, ""),
    ({"policy": "h2o:budget=256,recent=128,normalise=1"}, ""),
    ({"policy": "h2o:budget=256,recent=128,sinks=4,normalise=1"}, ""),
    ({"policy": "attention_window:budget=256,recent=128,observe=32"}, ""),
    ({"policy": "tova:budget=256"}, ""),
    ({"policy": "random:budget=256,seed=0"}, ""),
    ({"policy": "recompute:budget=256"}, ""),
    ({"policy": "snapkv:budget=256"}, "256 of the prompt, then all"),
    ({"policy": "pyramidkv:budget=256"}, "256 of the prompt on average, then all"),
    ({"policy": "knorm:budget=256"}, "256 of the prompt, then all"),
    ({"policy": "keydiff:budget=256"}, "256 of the prompt, then all"),
    ({"policy": "lagkv:budget=256"}, "256 of the prompt, then all"),
    ({"policy": "window:budget=768"}, "the bytes of snapkv"),
    ({"policy": "streaming:budget=768,sinks=4"}, "the bytes of snapkv"),
    ({"policy": "h2o:budget=768,recent=384"}, "the bytes of snapkv"),
    ({"policy": "full", "pattern": "sliding:window=256"}, "a pattern hides, it frees nothing"),
    ({"policy": "full", "pattern": "dilated:window=256,dilation=2"}, ""),
    ({"policy": "full", "pattern": "global:window=252,tokens=0/1/2/3"}, ""),
    ({"policy": "full", "pattern": "layered:window=256,full_every=6"}, ""),
    ({"policy": "full", "softmax": "off_by_one"}, ""),
    ({"policy": "full", "storage": "int8"}, ""),
    ({"policy": "full", "storage": "int4"}, ""),
    ({"policy": "full", "storage": "int2"}, ""),
    ({"policy": "streaming:budget=256,sinks=4", "storage": "int4"}, ""),
    ({"policy": "h2o:budget=256,recent=128", "storage": "int4"}, ""),
)


def rows() -> Iterator[Row]:
    """One run a method; times by one plain forward of the stock model, the best of three."""
    model, ids = loaded().model, text_ids(TOKENS)
    stock.forward(model, ids)
    plain = min(seconds_of(lambda: stock.forward(model, ids)) for _ in range(3))
    for words, remark in SPECS:
        setup = parse_setup(words)
        trace = replay(model, ids, setup, prompt_tokens=PROMPT)
        scored = trace.nll[PROMPT - 1 :]
        computed = int(np.isfinite(scored).sum())
        note = remark or (f"{computed} of {len(scored)} tokens computed" if computed < len(scored) else "")
        yield Row(str(setup), note, float(np.nanmean(scored)), trace.cache_bytes, trace.seconds / plain)
