"""Built for windows or not: each model is compared with itself as it was trained; no visitor makes it be fetched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kvviz.choices.setup import Setup
from kvviz.models import DEFAULT_MODEL, MODELS, ModelError
from kvviz.models.table import HYBRID_MODEL
from kvviz.run.replay import replay
from kvviz.ui.quality import native
from kvviz.ui.quality.native import PLAN, Reading, reading_words, readings_job, text_ids
from kvviz.ui.shell import runs
from kvviz.ui.shell.jobs import Job
from tests.cli.test_command_line import Bytes
from tests.tiny import tiny


class WithBegin(Bytes):
    bos_token_id = 7


LOADED = {
    DEFAULT_MODEL: SimpleNamespace(model=tiny("llama"), tokenizer=Bytes(), card=MODELS[DEFAULT_MODEL]),
    HYBRID_MODEL: SimpleNamespace(model=tiny("gemma3"), tokenizer=WithBegin(), card=MODELS[HYBRID_MODEL]),
}


def test_each_model_is_compared_with_itself_as_it_was_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "TOKENS", 40)
    monkeypatch.setattr(native, "SCORED_FROM", 20)
    monkeypatch.setattr(runs, "loaded_model", lambda name, tell: LOADED[name])
    key, compute = readings_job()
    rows = compute(Job(key, compute)).rows
    assert [(row.model, row.words) for row in rows] == [plan[:2] for plan in PLAN]
    assert rows[0].added == rows[3].added == 0
    for row, (name, _, setup) in zip(rows, PLAN, strict=True):
        ids = text_ids(LOADED[name])  # type: ignore[arg-type]
        assert row.loss == pytest.approx(float(np.mean(replay(LOADED[name].model, ids, setup).nll[19:])))
        trained = float(np.mean(replay(LOADED[name].model, ids, Setup()).nll[19:]))
        assert row.added == pytest.approx(row.loss - trained)


def test_a_text_begins_as_in_the_models_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "TOKENS", 10)
    plain, begun = (text_ids(LOADED[name]) for name in (DEFAULT_MODEL, HYBRID_MODEL))  # type: ignore[arg-type]
    assert len(plain) == len(begun) == 10 and begun == [7, *plain[:9]]


def test_the_words_have_every_number() -> None:
    added = (0.0, 0.71, 0.81, 0.0, 0.39)
    rows = [Reading(name, words, 2.3, more, 1) for (name, words, _), more in zip(PLAN, added, strict=True)]
    assert reading_words(rows) == (
        "SmolLM2 135M Instruct was trained with full attention: a window of 512 in every layer costs it 0.71 nats a "
        "token, and windows in five of six layers cost 0.81. Gemma 3 270M was trained with windows in five of six "
        "layers: they are how it reads (loss 2.30), and closing its full layers too costs 0.39."
    )


def test_no_link_makes_the_server_fetch_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVVIZ_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=r"python -m kvviz.models.warm gemma-3-270m` fetches 238 MB"):
        runs.loaded_model(HYBRID_MODEL)
    assert not list(tmp_path.iterdir())
