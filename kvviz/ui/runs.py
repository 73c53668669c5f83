"""From an Experiment to a Trace: the model is loaded once, the text read once, results are shared by all sessions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kvviz import texts, tokens
from kvviz.experiment import Experiment, Text
from kvviz.models import Loaded, ModelError, load
from kvviz.replay import Cancelled, replay
from kvviz.trace import Trace
from kvviz.ui.jobs import WORKER, Job, Stopped

TOKENS_ON_A_PAGE = 2048  # longer texts belong to the command line
BLOCK = 64  # smaller than the command line's: a run that is no longer wanted stops within a fraction of a second

_models: dict[tuple[str, str | None], Loaded] = {}
_models_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Run:
    """A trace and how its tokens are written."""

    trace: Trace
    texts: list[str]  # (T,) each token with every sign visible
    labels: list[str]  # (T,) the same, numbered, so that equal tokens stay apart
    count_from: int
    notes: tuple[str, ...]


def loaded_model(name: str, dtype: str | None, progress: Any = None) -> Loaded:
    """The model, loaded at the first call; later calls answer at once."""
    with _models_lock:
        if (name, dtype) not in _models:
            _models[name, dtype] = load(name, dtype=dtype, progress=progress)
        return _models[name, dtype]


def model_if_loaded(name: str, dtype: str | None) -> Loaded | None:
    return _models.get((name, dtype))


@lru_cache(maxsize=16)
def token_ids(name: str, dtype: str | None, content: str) -> tuple[int, ...]:
    """The whole text as tokens, cut later; a long text takes half a second, so it is remembered."""
    return tuple(tokens.encode(loaded_model(name, dtype).tokenizer, content, TOKENS_ON_A_PAGE))


def compute_run(experiment: Experiment, layer: int | None, job: Job) -> Run:
    """Replay the experiment with all measures, and with the maps of one layer where asked."""
    loaded = loaded_model(experiment.model, experiment.dtype, job.report)
    ids = token_ids(experiment.model, experiment.dtype, experiment.text.content)
    notes = length_notes(len(ids), experiment)
    ids = ids[: experiment.tokens]
    config = loaded.model.config.get_text_config(decoder=True)
    if layer is not None and layer >= config.num_hidden_layers:
        layer = config.num_hidden_layers - 1
        notes = (*notes, f"This model has layers 0 to {layer}; the last one is shown.")
    trace = replay(
        loaded.model,
        ids,
        experiment.setup,
        prompt_tokens=min(experiment.prompt_tokens, len(ids)) if experiment.prompt_tokens else None,
        block=BLOCK,
        measure=True,
        maps=[] if layer is None else [(layer, head) for head in range(config.num_attention_heads)],
        progress=lambda share: job.report(
            f"{loaded.card.title} reads {len(ids)} tokens under {experiment.setup}", share
        ),
        is_cancelled=job.is_unwanted,
    )
    shown = tokens.labels(loaded.tokenizer, ids)
    first = experiment.text.count_from
    return Run(trace, shown, tokens.unique_labels(shown, first), first, (*notes, *trace.notes))


def length_notes(available: int, experiment: Experiment) -> tuple[str, ...]:
    if available < min(experiment.tokens, TOKENS_ON_A_PAGE):
        return (f"The text has only {available} tokens; all of them are used.",)
    if experiment.tokens > TOKENS_ON_A_PAGE:
        return (f"The pages read at most {TOKENS_ON_A_PAGE:,} tokens; use the command line for {experiment.tokens:,}.",)
    return ()


def key_of(experiment: Experiment, layer: int | None) -> tuple[Any, ...]:
    """What the result depends on; a text is named by its hash, so that keys stay small."""
    return (replace(experiment, text=Text("", None), seed=0), experiment.text.sha256, experiment.text.count_from, layer)


def jobs_for(owner: str, experiments: list[Experiment], layer: int | None = None) -> list[Job]:
    """One job for each experiment; those computed before are done at once, whatever maps were taken with them."""
    wanted = []
    for experiment in experiments:
        key = key_of(experiment, layer)
        if layer is None:
            key = next((k for k in list(WORKER.results) if k[:-1] == key[:-1]), key)
        wanted.append((key, lambda job, e=experiment: compute_run(e, layer, job)))
    return WORKER.want(owner, wanted)


def sentence(error: Exception) -> str:
    """What a page says about a run that failed; a traceback belongs in the log."""
    if isinstance(error, (ValueError, ModelError)):
        return str(error)
    if isinstance(error, (Stopped, Cancelled)):
        return "This run was stopped because nobody waited for it; change a setting or reload the page."
    return f"The run failed ({type(error).__name__}); the server's log has the details. Another setting may work."


known_texts: dict[str, str] = {}


def remember_text(content: str) -> None:
    """Keep a text that is too long for a link, so that the link opens on this server while it runs."""
    known_texts[Text(content).sha256] = content
    while len(known_texts) > 64 or sum(map(len, known_texts.values())) > 64 * texts.MAX_UPLOAD_BYTES:
        known_texts.pop(next(iter(known_texts)))
