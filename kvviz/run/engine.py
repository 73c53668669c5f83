"""The one engine: blocks of query rows meet the slots carried from before.

Teacher forcing needs no stepping: within a layer the keys and values of a token do not depend on what is evicted
later, so a block of rows is computed at once, every row seeing exactly the slots it would have seen had the tokens
come one at a time. After the block the slots really shrink. ``replay`` feeds large blocks, ``generate`` blocks of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.quantiser import NEVER
from kvviz.cache.slots import SlotsLayer, native_windows, slots_cache
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Stored, Widths
from kvviz.eviction.lifetimes import FirstSteps, most_held
from kvviz.eviction.opening import open_eviction
from kvviz.eviction.schedule import LayerSchedule, RunContext, by_schedule
from kvviz.models.heads import kv_heads_of
from kvviz.models.rope import parts_by_length, turning_lengths
from kvviz.models.row_products import RowProducts
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.block import Block, LayerContext, Recorder
from kvviz.run.refusals import (
    beyond_trained,
    learned_positions,
    refuse_beyond_learned,
    refuse_other_heads,
    refuse_other_order,
    refuse_unseen_layers,
    trained_positions,
)
from kvviz.run.rotation import ropes_of
from kvviz.run.visibility import Visibility


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
        self.trained_positions = trained_positions(model) if setup.positions == "original" else None
        self.turns = turning_lengths(model)

    @cached_property
    def row_products(self) -> RowProducts:
        return RowProducts(self.model)

    @property
    def softmax(self) -> str:
        return self.setup.softmax

    def feed(self, token_ids: Sequence[int] | Tensor, *, last_only: bool = False) -> Tensor:
        """Logits (R, vocabulary) of a block of R tokens, or (1, vocabulary) of its last one."""
        ids = torch.as_tensor(token_ids, device=self.device).view(-1)
        refuse_beyond_learned(self.model, self.learned_positions, self.fed + len(ids))
        if self.trained_positions is not None and self.fed + len(ids) > self.trained_positions:
            raise ValueError(beyond_trained(self.model, self.setup, self.fed + len(ids), self.trained_positions))
        sizes = parts_by_length(self.turns, self.fed, len(ids))
        logits = [self.feed_part(part[None], last_only) for part in ids.split(sizes)]
        return logits[-1] if last_only or len(logits) == 1 else torch.cat(logits)

    def feed_part(self, ids: Tensor, last_only: bool) -> Tensor:
        """A block (1, R) whose tokens all meet the same rotary frequencies."""
        start, rows = self.fed, ids.shape[1]
        self.eviction.begin(start, rows)
        self.schedules, self.visibilities = [], {}
        self.queries, self.last = torch.arange(start, start + rows, device=self.device), start + rows - 1
        products = self.row_products.quick() if rows == 1 else nullcontext()
        with attention.routed(self.model, self), products, torch.inference_mode():
            output = self.model(
                input_ids=ids,
                position_ids=self.queries[None],
                cache=self.cache,
                use_cache=True,
                logits_to_keep=1 if last_only else 0,
            )
        refuse_unseen_layers(self.model, len(self.schedules), self.layers)
        self.fed += rows
        self.note_steps(rows)
        logits: Tensor = output.logits[0]
        return logits

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        """One layer's attention for the current block, (1, R, A, D); afterwards the layer's slots have shrunk."""
        refuse_other_order(self.model, layer, len(self.schedules), window, self.windows[layer])
        if self.on_layer is not None:
            self.on_layer(layer)
        context = LayerContext(layer, self.queries, self.setup.pattern, self.ropes[layer])
        block = Block(context, query, key, value, rule)
        if self.recorder is not None:
            self.recorder.enter(layer, block.keys, block.values, self.queries)
        schedule = self.eviction.decide(layer, block)
        self.schedules.append(schedule)
        refuse_other_heads(self.model, self.setup, layer, (self.kv_heads, block.key.shape[1], self.slots[layer].heads))
        mixed = block.output(schedule, self.visibility(schedule, layer), self.recorder)
        self.slots[layer].settle(schedule.quantisation)
        if schedule.survivors is not None:
            self.slots[layer].retain(schedule.survivors[: self.slots[layer].heads])
        return mixed

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
