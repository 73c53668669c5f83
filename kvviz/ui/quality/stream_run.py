"""The stream under one setup: what is kept of it, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.linked_text import Text
from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT
from kvviz.text.signs import unique_labels
from kvviz.ui.quality.common import first_tokens, mean_after, model_for
from kvviz.ui.quality.settings import QualitySettings, stream_limit
from kvviz.ui.quality.setups import Named
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import WORKER, Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural, setup_words


@dataclass(frozen=True, eq=False)
class Stream:
    """What a setup lost along the stream; while it still reads there are fewer losses, and no bytes."""

    losses: NDArray[np.float64]  # (T − 1,) nats
    tokens: int  # T
    prompt_tokens: int
    labels: tuple[str, ...]  # (T,) of the tokens, distinct
    cache_bytes: int | None = None  # at the end
    seconds: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.losses.nbytes + 80 * len(self.labels)

    @property
    def is_whole(self) -> bool:
        """Whether it was read to the end."""
        return self.cache_bytes is not None

    @property
    def late_loss(self) -> float:
        """Mean after the prompt, in nats; NaN where the reading has not come so far."""
        return mean_after(self.losses, self.prompt_tokens)


Read = tuple[Named, Stream]


def streamed_text(view: View) -> Text:
    """The text that the stream reads."""
    is_own = view.of(QualitySettings).stream_text == "own"
    return view.experiment.text if is_own else Text.of_preset(LONG_TEXT)


def stream_job(view: View, setup: Setup) -> tuple[Key, Callable[[Job], Result]]:
    """The stream under one setup: its key and how to compute it."""
    model, text = view.experiment.model, streamed_text(view)
    tokens = min(view.of(QualitySettings).stream_tokens, stream_limit())

    def compute(job: Job) -> Result:
        from kvviz.models.tokens import labels
        from kvviz.run.replay import replay

        loaded = model_for(model, [setup], job)
        ids = first_tokens(model, text.content, tokens)
        names = tuple(unique_labels(labels(loaded.tokenizer, list(ids)), text.count_from))
        doing = f"{loaded.card.title} reads {plural(len(ids), 'token')} under {setup_words(setup)}"
        prompt = max(1, len(ids) // 2)

        def grow(losses: NDArray[np.float64]) -> None:
            job.partial = Stream(losses, len(ids), prompt, names)

        trace = replay(
            loaded.model,
            ids,
            setup,
            prompt_tokens=prompt,
            progress=lambda share: job.report(doing, share),
            is_cancelled=job.is_unwanted,
            on_losses=grow,
        )
        notes = () if len(ids) == tokens else (f"The text has only {plural(len(ids), 'token')}; all are used.",)
        found = Stream(
            np.asarray(trace.nll, dtype=np.float64),
            len(ids),
            prompt,
            names,
            trace.cache_bytes,
            trace.seconds,
            (*notes, *trace.notes),
        )
        return Result(found, found.bytes)

    return ("stream", model, tokens, text.sha256, text.count_from, str(setup)), compute


def there(named: Sequence[Named], keys: Sequence[Key]) -> list[Read]:
    """What has been read so far, finished or not."""
    found = []
    for one, key in zip(named, keys, strict=True):
        result = WORKER.result(key)
        stream = WORKER.partial(key) if result is None else result.value
        if stream is not None:
            found.append((one, stream))
    return found
