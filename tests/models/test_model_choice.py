"""Which model, device and number format a name stands for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from kvviz.models import MODELS, ModelError, choose_device, choose_dtype, convert, load
from tests.tiny_gguf import tiny_card, write_gguf

CPU, GPU, APPLE = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


@pytest.fixture
def only_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVVIZ_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local folder with a tiny model."""
    gguf = write_gguf(tmp_path_factory.mktemp("gguf"))
    folder = tmp_path_factory.mktemp("local")
    convert.save_from_gguf(tiny_card(gguf), gguf, folder)
    return folder


def test_cuda_comes_before_mps_before_cpu(only_cpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device() == CPU
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == APPLE
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device() == GPU


def test_the_environment_forces_a_device_and_an_argument_wins(only_cpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("KVVIZ_DEVICE", " CPU ")
    assert choose_device() == CPU
    assert choose_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize("name", ["tpu", "cuda", "cuda:0", "cuda:x", "mps", "-1"])
def test_an_absent_device_is_refused_with_the_choices(name: str, only_cpu: None) -> None:
    with pytest.raises(ModelError, match=rf"'{name}' is not available here; .*KVVIZ_DEVICE.*: cpu\.$"):
        choose_device(name)


def test_a_gpu_beyond_the_last_is_refused(only_cpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ModelError, match=r"cuda:1.*: cuda, cpu\."):
        choose_device("cuda:1")


def test_the_dtype_follows_the_device() -> None:
    assert choose_dtype(None, CPU) == torch.float32
    assert choose_dtype(None, GPU) == choose_dtype(None, APPLE) == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("float16", torch.float16), ("torch.float64", torch.float64)],
)
def test_a_dtype_has_a_long_and_a_short_name(name: str, dtype: torch.dtype) -> None:
    assert choose_dtype(name, CPU) == dtype


def test_an_unknown_dtype_is_refused_with_the_choices() -> None:
    with pytest.raises(ModelError, match="'int3' is unknown; choose one of: float32, bfloat16, float16, float64"):
        choose_dtype("int3", CPU)
    with pytest.raises(ModelError, match="has no float64"):
        choose_dtype("float64", APPLE)


def test_an_unknown_model_gets_the_choices_and_the_likely_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known fault 149: an unknown model ends in a traceback or in endless waiting."""
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", "somebody/model-a, /models/b")
    with pytest.raises(ModelError) as caught:
        load("smollm2-135M-instruct", device="cpu")
    assert all(name in str(caught.value) for name in [*MODELS, "somebody/model-a", "/models/b"])
    assert "did you mean SmolLM2-135M-Instruct?" in str(caught.value)


def test_a_folder_loads_only_when_it_is_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVVIZ_ALLOW_MODELS", raising=False)
    with pytest.raises(ModelError, match=r"not among the choices.*KVVIZ_ALLOW_MODELS"):
        load(str(folder), device="cpu")
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", f"other, {folder}/")
    loaded = load(str(folder), device="cpu", dtype="float64")
    assert loaded.origin == f"{folder}/: weights from the local folder {folder}/."
    assert loaded.card.parameters == loaded.model.num_parameters() > 0
    assert loaded.dtype == loaded.model.dtype == torch.float64


def test_a_folder_without_all_weights_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import load_file, save_file

    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("model.layers.1.self_attn.q_proj.weight")
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", str(tmp_path))
    with pytest.raises(ModelError, match=r"1 weights are missing, model\.layers\.1\.self_attn\.q_proj\.weight first"):
        load(str(tmp_path), device="cpu")


def test_an_empty_folder_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", str(tmp_path))
    with pytest.raises(ModelError, match=r"holds no config\.json, so there is no model") as caught:
        load(str(tmp_path), device="cpu")
    assert "\n" not in str(caught.value)


def test_code_that_a_folder_brings_along_is_said_not_to_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModelForCausalLM": "own.Model"}}))
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", str(tmp_path))
    loaded = load(str(tmp_path), device="cpu")
    assert "its own code (auto_map) was not run, transformers' LlamaForCausalLM stands in" in loaded.origin
    assert "auto_map" in loaded.card.weights_note


def test_a_path_that_is_no_folder_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVVIZ_ALLOW_MODELS", "/nowhere/a/model")
    with pytest.raises(ModelError, match="There is no folder '/nowhere/a/model'"):
        load("/nowhere/a/model", device="cpu")
