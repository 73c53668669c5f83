"""What the try of a model found stands on its card and in the menus; a model that failed it is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, FalconConfig

from kvviz.analysis.trial import Trial, try_model
from kvviz.choices.setup import Setup, parse_setup
from kvviz.models import ModelError
from kvviz.ui.shell import runs
from kvviz.ui.shell.model_card import TRIED_TOKENS, trial_words
from tests.cli.test_command_line import Bytes
from tests.run.test_bytes_held import latent
from tests.tiny import COMMON, tiny


def loads(monkeypatch: pytest.MonkeyPatch, model: Any) -> list[str]:
    """Every model that is asked for is this one; the names that were loaded."""
    names: list[str] = []

    def load(name: str, progress: Any = None) -> Any:
        names.append(name)
        return SimpleNamespace(model=model, tokenizer=Bytes())

    monkeypatch.setattr(runs, "load", load)
    monkeypatch.setattr(runs, "_models", {})
    monkeypatch.setattr(runs, "_refused", {})
    return names


def test_a_model_that_ignores_policies_is_refused_at_once_and_ever_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pictures were those of the full cache under every policy, also on the Receptive field page."""
    config = FalconConfig(**COMMON, num_hidden_layers=2, num_attention_heads=4)
    names = loads(monkeypatch, AutoModelForCausalLM.from_config(config).double().eval())
    for _ in range(2):
        with pytest.raises(ModelError, match="falcon models are refused"):
            runs.loaded_model("some/falcon")
    assert names == ["some/falcon"] and runs.model_if_loaded("some/falcon") is None


def test_what_a_model_cannot_do_is_said_in_the_menus(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, latent())
    assert runs.unfit("some/latent", "policy") == {}  # not loaded yet: nothing is known
    loaded = runs.loaded_model("some/latent")
    unfit = runs.unfit("some/latent", "policy")
    assert {"h2o", "snapkv", "random"} <= set(unfit) and "window" not in unfit
    assert all("heads cannot keep different tokens" in reason for reason in unfit.values())
    assert set(runs.unfit("some/latent", "storage")) == {"int8", "int4", "int2"}
    assert runs.unfit("some/latent", "positions") == {} == runs.unfit("some/latent", "softmax")
    assert "heads cannot keep" in runs.refusal(loaded, parse_setup({"policy": "h2o:budget=8"}))
    assert runs.refusal(loaded, Setup()) == ""


def test_the_card_tells_the_gap_and_what_does_not_work() -> None:
    whole, part = trial_words(try_model(tiny("llama"))), trial_words(try_model(latent()))
    assert whole.startswith(f"Tried on {TRIED_TOKENS} tokens") and "(1e-04 allowed)" in whole
    assert whole.endswith("All policies, storages and positions work.") and part.endswith("int8, int4 and int2.")
    learned = Trial("gpt2", 1e-5, 2e-5, 1e-5, 2e-3, slot="no rotary positions")
    assert trial_words(learned).endswith("Not on this model: slot positions.")
    assert "2.0e-05 nats (2e-03 allowed)" in trial_words(learned)


def test_the_card_says_how_many_tokens_the_try_reads() -> None:
    from kvviz.analysis import trial

    assert trial.TOKENS == TRIED_TOKENS == len(trial.some_ids(tiny("llama")))
    assert torch.unique(trial.some_ids(tiny("llama"))).numel() == TRIED_TOKENS
