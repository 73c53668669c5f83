"""From an Experiment to a Trace: the model is loaded once, the text read once, results are shared by all sessions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kvviz.choices import texts
from kvviz.choices.experiment import Experiment
from kvviz.choices.linked_text import Text
from kvviz.choices.setup import Setup
from kvviz.figures.lifetimes import role_codes
from kvviz.models import DEFAULT_MODEL, MODELS, Loaded, ModelError, choose_device, choose_dtype, load, tokens
from kvviz.models.store import is_there
from kvviz.run.progress import Cancelled
from kvviz.run.trace import Trace
from kvviz.text.signs import unique_labels
from kvviz.ui.shell import disk_results
from kvviz.ui.shell.imports import let_settings_appear, uncollected
from kvviz.ui.shell.jobs import Job, Stopped, Worker
from kvviz.ui.shell.words import plural, setup_words

TOKENS_ON_A_PAGE = 2048  # longer texts belong to the command line
MAPS_ANYWAY = 512  # up to so many tokens every page takes the maps of a layer along, and the next page finds them

if TYPE_CHECKING:
    from kvviz.analysis.trial import Trial

BROKEN_OFF = (Stopped, Cancelled)
Key = tuple[Any, ...]
Wanted = tuple[Key, Callable[[Job], Any]]
_models: dict[str, Loaded] = {}
_refused: dict[str, str] = {}  # models that may not be shown, with the reason
_models_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Run:
    """A trace and how its tokens are written."""

    trace: Trace
    texts: list[str]  # (T,) each token with every sign visible
    labels: list[str]  # (T,) the same, numbered, so that equal tokens stay apart
    count_from: int
    notes: tuple[str, ...]

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        """(T, T) role codes of the policy, row = step; T² questions, so they are asked once."""
        policy, prompt_tokens = self.trace.setup.policy, self.trace.prompt_tokens
        return role_codes(lambda position, newest: policy.role_of(position, newest, prompt_tokens), self.trace.tokens)

    @property
    def bytes(self) -> int:
        trace = self.trace
        arrays = [*vars(trace).values(), *trace.maps.values(), *trace.measures.values(), *(trace.quantised_at or ())]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def loaded_model(name: str, progress: Callable[[str, float], None] | None = None) -> Loaded:
    """The model in the format this server's device prefers, loaded at the first call; later calls answer at once."""
    with _models_lock:
        if name in _refused:
            raise ModelError(_refused[name])
        if name != DEFAULT_MODEL and name in MODELS and not is_there(MODELS[name]):
            raise ModelError(MODELS[name].fetching)  # no visitor's link makes this machine fetch a model
        if name not in _models:
            _models[name] = tried(name, load(name, progress=progress))
        return _models[name]


def tried(name: str, loaded: Loaded) -> Loaded:
    """The model after its one try; ModelError, now and later, with the reason where no run of it may be shown."""
    from kvviz.analysis.trial import trial_of  # imports torch and transformers, as loading has

    if reason := trial_of(loaded).reason:
        _refused[name] = reason
        raise ModelError(reason)
    return loaded


def refusal(loaded: Loaded, setup: Setup) -> str:
    """Why the model cannot run this setup; empty if it can."""
    from kvviz.analysis.trial import trial_of

    return trial_of(loaded).refusal(setup)


def trial_if_made(name: str) -> Trial | None:
    """What the model's one try found; None while the model is not loaded."""
    if name not in _models:
        return None
    from kvviz.analysis.trial import trial_of

    return trial_of(_models[name])


def unfit(name: str, kind: str) -> Mapping[str, str]:
    """Of one of the five choices, the words that this model cannot run, each with the reason."""
    trial = trial_if_made(name)
    if trial is None:
        return {}
    answers = {"policy": trial.policies, "storage": trial.storages, "positions": {"slot": trial.slot}}.get(kind, {})
    return {word: answer for word, answer in answers.items() if isinstance(answer, str)}


def model_if_loaded(name: str) -> Loaded | None:
    return _models.get(name)


def place_of(name: str) -> str | None:
    """In which number format and where a model runs; None while it is not loaded."""
    loaded = model_if_loaded(name)
    return f"{str(loaded.dtype).removeprefix('torch.')} on {loaded.device}" if loaded else None


WORKER = Worker(lambda run: run.bytes, disk_results.opened(place_of))


def dtype_note(dtype: str | None) -> str | None:
    """What to say about a link made with another number format than this server computes in."""
    if dtype is None:
        return None  # and the settings need not wait for torch to know the device
    try:
        here = str(choose_dtype(None, choose_device())).removeprefix("torch.")
    except ModelError:
        return None  # the run will say what is wrong with the device
    if dtype == here:
        return None
    return f"This link was made with numbers in {dtype}; this server computes in {here}, so the last digits may differ."


@lru_cache(maxsize=16)
def token_ids(name: str, content: str) -> tuple[int, ...]:
    """The whole text as tokens, cut later; a long text takes half a second, so it is remembered."""
    return tuple(tokens.encode(loaded_model(name).tokenizer, content, TOKENS_ON_A_PAGE))


def compute_run(experiment: Experiment, layer: int | None, job: Job) -> Run:
    """Replay the experiment with all measures, and with the maps of one layer where asked."""
    if model_if_loaded(experiment.model) is None:
        job.tell("Loading the libraries that run the model", 0.0)
    # torch and transformers take seconds to import: the controls are there before they are
    let_settings_appear()
    with uncollected():
        from kvviz.run.replay import replay

    loaded = loaded_model(experiment.model, job.tell)  # loading is never broken off: the next job needs it too
    if reason := refusal(loaded, experiment.setup):
        raise ValueError(reason)
    ids = token_ids(experiment.model, experiment.text.content)
    notes = length_notes(len(ids), experiment)
    ids = ids[: experiment.tokens]
    config = loaded.model.config.get_text_config(decoder=True)
    if layer is not None and layer >= config.num_hidden_layers:
        layer = config.num_hidden_layers - 1
    doing = f"{loaded.card.title} reads {plural(len(ids), 'token')} under {setup_words(experiment.setup)}"
    trace = replay(
        loaded.model,
        ids,
        experiment.setup,
        prompt_tokens=min(experiment.prompt_tokens, len(ids)) if experiment.prompt_tokens else None,
        measure=True,
        maps=[] if layer is None else [(layer, head) for head in range(config.num_attention_heads)],
        progress=lambda share: job.report(doing, share),
        is_cancelled=job.is_unwanted,
    )
    shown = tokens.labels(loaded.tokenizer, ids)
    first = experiment.text.count_from
    return Run(trace, shown, unique_labels(shown, first), first, (*notes, *trace.notes))


def logged_run(experiment: Experiment, layer: int | None, job: Job) -> Run:
    """``compute_run``, with the traceback of what nobody expected in the log."""
    try:
        return compute_run(experiment, layer, job)
    except (ValueError, ModelError, *BROKEN_OFF):
        raise
    except Exception:
        logging.getLogger(__name__).exception("The run of %s failed.", experiment.setup)
        raise


def length_notes(available: int, experiment: Experiment) -> tuple[str, ...]:
    if available < min(experiment.tokens, TOKENS_ON_A_PAGE):
        return (
            f"The text has only {plural(available, 'token')}; {'it is' if available == 1 else 'all of them are'} used.",
        )
    if experiment.tokens > TOKENS_ON_A_PAGE:
        return (f"The pages read at most {TOKENS_ON_A_PAGE:,} tokens; use the command line for {experiment.tokens:,}.",)
    return ()


def key_of(experiment: Experiment, layer: int | None) -> Key:
    """What the result depends on; a text is named by its hash, so that keys stay small."""
    plain = replace(experiment, text=Text("", None), seed=0, dtype=None)
    return (plain, experiment.text.sha256, experiment.text.count_from, layer)


def key_for(experiment: Experiment, layer: int, needs_maps: bool) -> Key:
    """The key to ask for: where maps are not needed, a result kept with the maps of any layer will do."""
    if needs_maps:
        return key_of(experiment, layer)
    key = key_of(experiment, layer if experiment.tokens <= MAPS_ANYWAY else None)
    kept: list[Any] = list(WORKER.results)
    return key if key in kept else next((other for other in kept if other[:-1] == key[:-1]), key)


def wanted(experiments: list[Experiment], keys: list[Key]) -> list[Wanted]:
    """The key of each experiment's run, and how to compute it."""
    return [
        (key, lambda job, e=experiment, layer=key[-1]: logged_run(e, layer, job))  # type: ignore[misc]
        for experiment, key in zip(experiments, keys, strict=True)
    ]


def jobs_for(owner: str, experiments: list[Experiment], keys: list[Key]) -> list[Job]:
    """One job for each experiment; those computed before are done at once."""
    return WORKER.want(owner, wanted(experiments, keys))


def sentence(error: Exception) -> str:
    """What a page says about a run that failed; a traceback belongs in the log."""
    if isinstance(error, (ValueError, ModelError)):
        return str(error)
    if isinstance(error, BROKEN_OFF):
        return "This run was stopped because no page waited for it any more; change a setting or reload the page."
    return f"The run failed ({type(error).__name__}); the server's log has the details. Another setting may work."


known_texts: dict[str, str] = {}


def remember_text(content: str) -> None:
    """Keep a text that is too long for a link, so that the link opens on this server while it runs."""
    known_texts[Text(content).sha256] = content
    while len(known_texts) > 64 or sum(map(len, known_texts.values())) > 64 * texts.MAX_UPLOAD_BYTES:
        known_texts.pop(next(iter(known_texts)))
