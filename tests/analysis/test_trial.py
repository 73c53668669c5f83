"""One try decides what a model may show: whatever parts from the stock model is refused, by name and reason."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    FalconConfig,
    GptOssConfig,
    Llama4TextConfig,
    MambaConfig,
    OpenAIGPTConfig,
    PreTrainedModel,
    RobertaConfig,
    RwkvConfig,
)

from kvviz.analysis.trial import try_model
from kvviz.choices.setup import Setup, parse_setup
from kvviz.cli import inputs
from kvviz.cli.main import main
from kvviz.policies import POLICIES
from tests.cli.test_command_line import Bytes
from tests.run.test_bytes_held import latent
from tests.tiny import COMMON, GQA, NAMES, tiny

HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4}
REFUSED = {
    "falcon": (FalconConfig(**COMMON, **HEADS), "0 of 2 layers use the attention that kvviz gives them"),
    "openai-gpt": (OpenAIGPTConfig(vocab_size=64, n_embd=32, n_layer=2, n_head=4), "0 of 2 layers"),
    "llama4_text": (
        Llama4TextConfig(**GQA, num_local_experts=2, intermediate_size_mlp=48),
        "attend in another order, or see other keys",
    ),
    "bert": (BertConfig(**COMMON, **HEADS), "with the full cache kvviz' log-probabilities differ"),  # sees what follows
    "roberta": (RobertaConfig(**COMMON, **HEADS, is_decoder=True), "with the full cache"),  # positions start at 2
    "mamba": (
        MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2),
        "keep a state instead of keys",
    ),
    "rwkv": (RwkvConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2), "keep a state instead of keys"),
}


def model_of(config: Any) -> PreTrainedModel:
    torch.manual_seed(7)
    return AutoModelForCausalLM.from_config(deepcopy(config)).double().eval().requires_grad_(False)


@pytest.mark.parametrize("name", NAMES)
def test_known_architectures_compute_what_the_stock_model_computes(name: str) -> None:
    trial = try_model(tiny(name))
    assert trial.is_ok and trial.model_type
    gaps = trial.full_gap, trial.stepped_gap, trial.window_gap
    assert all(gap is not None and gap < 1e-6 for gap in gaps)
    assert all(answer is True for answer in (*trial.storages.values(), *trial.policies.values()))
    assert trial.slot is True if name != "gpt2" else "rotary" in str(trial.slot)


@pytest.mark.parametrize("name", REFUSED)
def test_what_parts_from_the_stock_model_is_refused_by_name(name: str) -> None:
    """These gave pictures that ignored every policy, or ended in a traceback."""
    config, reason = REFUSED[name]
    trial = try_model(model_of(config))
    assert not trial.is_ok and name in trial.reason and reason in trial.reason
    assert trial.refusal(Setup()) == trial.reason


def test_weights_that_are_no_numbers_are_said_to_be() -> None:
    model = deepcopy(tiny("llama"))
    model.lm_head.weight[3, 5] = torch.nan
    assert "answers with something that is no number" in try_model(model).reason


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_tried_with_the_same_weights_in_float32(dtype: torch.dtype) -> None:
    """Its rounding would hide a fault of nats, and gpt-oss, which has no second kind of attention, was refused."""
    config = GptOssConfig(
        **{**GQA, "num_hidden_layers": 2},
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    )
    model = AutoModelForCausalLM.from_config(config, experts_implementation="eager").to(dtype).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trial = try_model(model)
    assert trial.is_ok and trial.allowed_gap == 2e-3 and trial.slot is True
    assert all(gap is not None and gap < 1e-4 for gap in (trial.full_gap, trial.stepped_gap, trial.window_gap))
    after = model.state_dict()
    assert all(
        after[name].dtype == tensor.dtype and torch.equal(after[name], tensor) for name, tensor in before.items()
    )
    wrong = AutoModelForCausalLM.from_config(REFUSED["bert"][0]).to(dtype).eval()
    assert "bert models are refused" in try_model(wrong).reason


def test_heads_that_share_a_latent_can_do_some_things_only() -> None:
    trial = try_model(latent())
    works = {name for name, answer in trial.policies.items() if answer is True}
    assert trial.is_ok and trial.slot is True
    assert works == {"full", "window", "rolling", "streaming", "recompute"} and set(trial.policies) == set(POLICIES)
    assert {name for name, answer in trial.storages.items() if answer is True} == {"native", "offload"}
    assert "heads cannot keep different tokens" in trial.refusal(parse_setup({"policy": "h2o:budget=8"}))
    assert "heads cannot keep different tokens" in trial.refusal(parse_setup({"storage": "int4"}))
    assert trial.refusal(parse_setup({"policy": "window:budget=8", "positions": "slot"})) == ""


def test_a_mask_of_the_models_own_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that hides keys by its own rule does so in the mask that it hands on, which kvviz would not look at."""
    model = deepcopy(tiny("llama"))
    for layer in model.model.layers:
        forward = layer.self_attn.forward

        def hiding(*args: Any, forward: Any = forward, attention_mask: Any = None, **kwargs: Any) -> Any:
            return forward(*args, attention_mask=attention_mask.clone(), **kwargs)

        monkeypatch.setattr(layer.self_attn, "forward", hiding)
    assert "hides some keys by a rule of its own" in try_model(model).reason


def use(monkeypatch: pytest.MonkeyPatch, model: PreTrainedModel) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(inputs, "load_model", lambda arguments: SimpleNamespace(model=model, tokenizer=Bytes()))


def test_the_command_line_refuses_what_the_try_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    use(monkeypatch, model_of(REFUSED["falcon"][0]))
    assert main(["check", "--model", "some/falcon", "--json"]) == 2
    written = capsys.readouterr()
    assert json.loads(written.out)["ok"] is False and "falcon models are refused" in written.err
    (tmp_path / "text").write_text("some text to read")
    commands = [[name, "--text", str(tmp_path / "text")] for name in ("nll", "keep", "attention")]
    for command in (*commands, ["generate", "--prompt", "some", "--max-new-tokens", "2"]):
        assert main([*command, "--model", "some/falcon"]) == 2
        written = capsys.readouterr()
        assert not written.out and "falcon models are refused" in written.err


def test_check_says_what_works(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use(monkeypatch, latent())
    assert main(["check", "--model", "some/latent", "--json"]) == 0
    written = capsys.readouterr()
    answer = json.loads(written.out)
    assert answer["ok"] is True and answer["slot"] is True and answer["storages"] == ["native", "offload"]
    assert "policy h2o: This deepseek_v3 model holds 1 entry for 4 heads" in written.err
