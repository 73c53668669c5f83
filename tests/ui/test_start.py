"""The start of a server: settings first, then torch and the model."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

from kvviz.figures.frame import COMING, coming
from kvviz.ui.shell import imports, page, runs, serve
from kvviz.ui.shell.imports import uncollected


def test_settings_get_their_time_only_before_torch_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(imports.time, "sleep", slept.append)
    monkeypatch.setattr(imports, "SETTINGS_SENT", threading.Event())
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    imports.let_settings_appear()  # nobody looks yet
    assert slept == []
    imports.settings_sent()
    monkeypatch.setitem(sys.modules, "torch", sys)  # whatever is there, it has been imported
    imports.let_settings_appear()
    assert slept == []
    monkeypatch.delitem(sys.modules, "torch")
    imports.let_settings_appear()
    assert slept == [imports.APPEAR_SECONDS]


def test_the_server_warms_up_after_the_first_page_or_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sent = threading.Event()
    monkeypatch.setattr(imports, "SETTINGS_SENT", sent)
    monkeypatch.setattr(page, "warm", lambda: order.append("warm"))
    monkeypatch.setattr(serve, "BROWSER_SECONDS", 60.0)
    warming = threading.Thread(target=serve.warm_quietly)
    warming.start()
    order.append("page")
    sent.set()
    warming.join(20)
    assert order == ["page", "warm"]
    monkeypatch.setattr(imports, "SETTINGS_SENT", threading.Event())
    monkeypatch.setattr(serve, "BROWSER_SECONDS", 0.01)
    serve.warm_quietly()
    assert order == ["page", "warm", "warm"]


def test_a_link_without_a_number_format_asks_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "choose_device", lambda: pytest.fail("torch would be imported"))
    assert runs.dtype_note(None) is None


def test_collection_comes_back_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_the_empty_frame_says_what_it_is_and_holds_nothing() -> None:
    frame = coming()
    assert frame.alt == COMING and len(frame.figure.data) == 0
