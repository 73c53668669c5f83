"""The one engine: blocks of query rows meet the slots carried from before.

Teacher forcing needs no stepping: within a layer the keys and values of a token do not depend on what is evicted
later, so a block of rows is computed at once, every row seeing exactly the slots it would have seen had the tokens
come one at a time. After the block the slots really shrink. ``replay`` feeds large blocks, ``generate`` blocks of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from kvviz.cache.quantiser import NEVER
from kvviz.cache.slots import SlotsLayer, native_windows, slots_cache
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Stored, Widths
from kvviz.eviction.lifetimes import FirstSteps
from kvviz.eviction.opening import open_eviction
from kvviz.eviction.schedule import LayerSchedule, RunContext
from kvviz.models.heads import kv_heads_of
from kvviz.models.rope import parts_by_length, turning_lengths
from kvviz.models.row_products import linear_layers, rows_shared_out
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.block import Block, LayerContext, Recorder
from kvviz.run.rotation import ropes_of
from kvviz.run.visibility import Visibility
from kvviz.text.counting import plural


class Pass:
    """One pass of a model over one text under a setup: feed it blocks of tokens, it returns logits.

    Raises ValueError where the setup has no meaning for the model.
    """

    def __init__(
        self, model: PreTrainedModel, setup: Setup, *, prompt_tokens: int, recorder: Recorder | None = None
    ) -> None:
        config = model.config.get_text_config(decoder=True)
        self.model, self.setup, self.recorder, self.device = model, setup, recorder, model.device
        self.layers, self.kv_heads = config.num_hidden_layers, kv_heads_of(config)
        self.windows = native_windows(model.config)
        self.slots = [SlotsLayer(setup.storage, self.device) for _ in range(self.layers)]
        self.cache = slots_cache(self.slots)
        context = RunContext(self.layers, self.kv_heads, prompt_tokens, self.device, setup.storage)
        self.eviction = open_eviction(setup.policy, self.windows, context)
        self.ropes = ropes_of(model) if setup.positions == "slot" else [None] * self.layers
        self.lifetimes, self.keys_quantised, self.values_quantised = (
            FirstSteps(self.layers, self.kv_heads, self.device) for _ in range(3)
        )
        # a slot that the model's own window closes over in some heads only takes memory until all heads can spare one
        frees_later = setup.policy.differs and any(window is not None for window in self.windows)
        self.freed = FirstSteps(self.layers, self.kv_heads, self.device) if frees_later else self.lifetimes
        self.fed = 0
        self.on_layer: Callable[[int], None] | None = None  # told of every layer of every block; may raise to stop
        self.schedules: list[LayerSchedule] = []  # of the block at hand, a layer each
        self.visibilities: dict[LayerSchedule, Visibility] = {}
        self.learned_positions = learned_positions(model)
        self.turns = turning_lengths(model)

    @cached_property
    def linear_layers(self) -> list[nn.Linear]:
        return linear_layers(self.model)

    @property
    def softmax(self) -> str:
        return self.setup.softmax

    def feed(self, token_ids: Sequence[int] | Tensor, *, last_only: bool = False) -> Tensor:
        """Logits (R, vocabulary) of a block of R tokens, or (1, vocabulary) of its last one."""
        ids = torch.as_tensor(token_ids, device=self.device).view(-1)
        self.refuse_beyond_learned(self.fed + len(ids))
        sizes = parts_by_length(self.turns, self.fed, len(ids))
        logits = [self.feed_part(part[None], last_only) for part in ids.split(sizes)]
        return logits[-1] if last_only or len(logits) == 1 else torch.cat(logits)

    def feed_part(self, ids: Tensor, last_only: bool) -> Tensor:
        """A block (1, R) whose tokens all meet the same rotary frequencies."""
        start, rows = self.fed, ids.shape[1]
        self.eviction.begin(start, rows)
        self.schedules, self.visibilities = [], {}
        self.queries, self.last = torch.arange(start, start + rows, device=self.device), start + rows - 1
        layers = self.linear_layers if rows == 1 else []
        with attention.routed(self.model, self), rows_shared_out(layers), torch.inference_mode():
            output = self.model(
                input_ids=ids,
                position_ids=self.queries[None],
                cache=self.cache,
                use_cache=True,
                logits_to_keep=1 if last_only else 0,
            )
        self.refuse_unseen_layers()
        self.fed += rows
        self.note_steps(rows)
        logits: Tensor = output.logits[0]
        return logits

    def refuse_beyond_learned(self, tokens: int) -> None:
        """A model that learned its positions has none beyond the last; a rotary one only leaves its trained range."""
        if self.learned_positions is not None and tokens > self.learned_positions:
            raise ValueError(
                f"{tokens} tokens are more than the {self.learned_positions} positions this "
                f"{self.model.config.model_type} model learned; use a shorter text."
            )

    def refuse_unseen_layers(self) -> None:
        """A model whose layers do not ask for this attention would ignore every policy, and its answer look real."""
        if len(self.schedules) != self.layers:
            raise ValueError(
                f"{self.model.config.model_type} models are refused: {len(self.schedules)} of {self.layers} layers use "
                "the attention that kvviz gives them, so no policy would act on the others; choose a model whose "
                "layers use transformers' attention interface, such as Llama, Qwen or Gemma."
            )

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        """One layer's attention for the current block, (1, R, A, D); afterwards the layer's slots have shrunk."""
        if layer != len(self.schedules) or window != self.windows[layer]:
            raise ValueError(
                f"{self.model.config.model_type} models are refused: layer {layer} asks for attention with a window of "
                f"{window}, which is not what its config says of layer {len(self.schedules)}, the next one."
            )
        if self.on_layer is not None:
            self.on_layer(layer)
        context = LayerContext(layer, self.queries, self.setup.pattern, self.ropes[layer])
        block = Block(context, query, key, value, rule)
        if self.recorder is not None:
            self.recorder.enter(layer, block.keys, block.values, self.queries)
        schedule = self.eviction.decide(layer, block)
        self.schedules.append(schedule)
        self.refuse_other_heads(layer, block)
        mixed = block.output(schedule, self.visibility(schedule, layer), self.recorder)
        self.slots[layer].settle(schedule.quantisation)
        if schedule.survivors is not None:
            self.slots[layer].retain(schedule.survivors[: self.slots[layer].heads])
        return mixed

    def refuse_other_heads(self, layer: int, block: Block) -> None:
        """What all heads share can be kept for all of them or for none, and its codes are not those of a head's key."""
        heads, setup, found = self.slots[layer].heads, self.setup, block.key.shape[1]
        if found != self.kv_heads:
            raise ValueError(
                f"{self.model.config.model_type} models are refused: layer {layer} attends with "
                f"{plural(found, 'KV head')} where the config says {self.kv_heads}; kvviz needs one number for all "
                "layers."
            )
        parts_heads = setup.policy.differs or bool(setup.policy.needs)
        if heads != self.kv_heads and (heads != 1 or parts_heads or setup.storage.needs_heads):
            raise ValueError(
                f"This {self.model.config.model_type} model holds {plural(heads, 'entry')} for "
                f"{self.kv_heads} heads of layer {layer}, so its heads cannot keep different tokens, nor quantise keys "
                "of their own; choose a policy that looks at positions, such as window, and storage=native."
            )

    def visibility(self, schedule: LayerSchedule, layer: int) -> Visibility:
        """What the rows of this block see in a layer; computed once for layers that are all alike."""
        pattern = self.setup.pattern
        found = self.visibilities.get(schedule) if pattern.is_alike else None
        if found is None:
            found = Visibility(schedule, self.queries, self.last, pattern, layer)
            self.visibilities[schedule] = found
        return found

    def note_steps(self, rows: int) -> None:
        """Write down who left in this block, and what was quantised."""
        for record in {self.lifetimes, self.freed, self.keys_quantised, self.values_quantised}:
            record.grow(self.fed, rows)
        for schedule, layers in by_schedule(self.schedules).items():
            if schedule.first_unseen < NEVER:
                self.lifetimes.note(layers, schedule.positions, schedule.gone_at)
                if self.freed is not self.lifetimes:
                    self.freed.note(layers, schedule.positions, schedule.freed_at)
            if schedule.quantisation is not None:
                self.keys_quantised.note(layers, schedule.positions, schedule.quantisation.key_at)
                self.values_quantised.note(layers, schedule.positions, schedule.quantisation.value_at)

    def evicted_at(self) -> Tensor:
        """(L, H, T): the first step that cannot see each token; T for those still there."""
        return self.lifetimes.until(self.fed)

    def freed_at(self) -> Tensor:
        """(L, H, T): the first step after which each token takes no memory; T for those that still do."""
        return self.freed.until(self.fed)

    def quantised_at(self) -> tuple[Tensor, Tensor] | None:
        """Of keys and of values, (L, H, T): the step after which each was quantised, T if never; None if none is."""
        if self.setup.storage.is_exact:
            return None
        return self.keys_quantised.until(self.fed), self.values_quantised.until(self.fed)

    def notes(self) -> list[str]:
        """Sentences about this run that a reader of its numbers must know."""
        notes = self.setup.storage.notes(self.stored_so_far())
        trained = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if trained is not None and self.fed > trained:
            notes.append(f"The text has {self.fed} tokens; the model was trained on positions up to {trained} only.")
        if any(self.fed > length for length, _ in self.turns):
            notes.append(
                "This model's rotary frequencies change with the length of the text. Each token meets those of its own "
                "step, and kept keys stay as they were rotated, as in decoding; one pass over the whole text differs."
            )
        return notes

    def stored_so_far(self) -> Stored:
        coded = self.quantised_at()
        return Stored(
            total_bytes=self.cache_bytes,
            cold_bytes=sum(layer.store.cold_nbytes for layer in self.slots),
            device=self.device.type,
            number_format=str(self.model.dtype).removeprefix("torch."),
            most_held=most_held(self.evicted_at()),
            has_codes=coded is not None and any(bool((steps < self.fed).any()) for steps in coded),
        )

    @property
    def cache_bytes(self) -> int:
        """Bytes of all key and value tensors held now."""
        return sum(layer.nbytes for layer in self.slots)

    @property
    def stored(self) -> list[tuple[int, Widths]]:
        """Of each layer: how many heads hold entries of their own, and what one entry holds."""
        return [(layer.heads, layer.widths) for layer in self.slots]


def most_held(evicted_at: Tensor) -> int:
    """The most entries that one layer and head held after a step, from their lifetimes (L, H, T)."""
    leaving = torch.zeros(*evicted_at.shape[:2], evicted_at.shape[2] + 1, dtype=torch.long, device=evicted_at.device)
    leaving.scatter_add_(-1, evicted_at, torch.ones_like(evicted_at))
    entered = torch.arange(1, evicted_at.shape[2] + 1, device=evicted_at.device)
    return int((entered - leaving[..., :-1].cumsum(-1)).max())


def by_schedule(schedules: list[LayerSchedule]) -> dict[LayerSchedule, list[int]]:
    """The layers of each schedule; those that are alike share one."""
    found: dict[LayerSchedule, list[int]] = {}
    for layer, schedule in enumerate(schedules):
        found.setdefault(schedule, []).append(layer)
    return found


def learned_positions(model: PreTrainedModel) -> int | None:
    """How many positions a model with learned ones (GPT-2, OPT) knows; None for the others."""
    has_table = any(name.endswith(("wpe", "embed_positions")) for name, _ in model.named_modules())
    return model.config.get_text_config(decoder=True).max_position_embeddings if has_table else None
