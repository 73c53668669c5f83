"""Who drafts: what followed the same words earlier in the text, or the model's own first layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel

from kvviz.analysis.drafts.tree import ROOT, Tree, tree_of
from kvviz.analysis.layer_calls import layers_of
from kvviz.run.reading import Reading

LONGEST_MATCH = 3  # tokens
DRAFTERS = {"lookup": "what followed the same words before", "layers": "the model's own first layers"}


def looked_up(ids: Sequence[int], width: int, depth: int) -> Tree:
    """Prompt lookup: what followed earlier occurrences of the last three tokens, else of two, else of one.

    Up to ``width`` different continuations of at most ``depth`` tokens, of longer matches first, later ones first.
    Source: Saxena, Prompt Lookup Decoding, 2023, with several matches as a tree.
    """
    paths: list[tuple[int, ...]] = []
    for size in range(min(LONGEST_MATCH, len(ids) - 1), 0, -1):
        last = tuple(ids[-size:])
        for start in range(len(ids) - size - 1, -1, -1):
            if tuple(ids[start : start + size]) != last:
                continue
            path = tuple(int(token) for token in ids[start + size : start + size + depth])
            if path not in paths:
                paths.append(path)
            if len(paths) == width:
                return tree_of(paths)
    return tree_of(paths)


def by_first_layers(model: PreTrainedModel, reading: Reading, root: int, layers: int, width: int, depth: int) -> Tree:
    """The ``width`` likeliest next tokens after the first ``layers`` layers, each continued greedily to ``depth``.

    The model's final norm and head read the hidden state early. Those layers' entries of the cache are the model's own,
    so nothing is read twice. Source: Elhoushi et al., LayerSkip, 2024 (there the model is trained for it).
    """
    own, base = reading.first_layers(layers), reading.fed
    with shortened(model, layers):
        logits = own.read([root])
        first = logits[-1].topk(width).indices.tolist()
        tree = Tree(tuple(first), (ROOT,) * len(first))
        ends = list(range(len(first)))
        for level in range(1, depth):
            ends, tree = grown(own, tree, ends, base + level)
    return tree


def grown(own: Reading, tree: Tree, ends: list[int], place: int) -> tuple[list[int], Tree]:
    """Read the tokens at the ends of the branches, side by side, and put the likeliest next one after each."""
    cached = own.held - len(tree) + len(ends)  # the root is in the cache of the drafter already
    visible = tree.mask(cached - 1)[1:][ends]
    places = torch.full((len(ends),), place, device=own.device)
    tokens = [tree.tokens[end] for end in ends]
    logits = own.read(tokens, positions=places, visible=visible.to(own.device), order=places)
    new_ends = []
    for end, token in zip(ends, logits.argmax(-1).tolist(), strict=True):
        new_ends.append(len(tree))
        tree = tree.with_node(token, end)
    return new_ends, tree


@contextmanager
def shortened(model: PreTrainedModel, count: int) -> Iterator[None]:
    """Inside, the model has only its first layers, and its norm and head follow at once."""
    whole = layers_of(model)
    owner, name = next(
        (module, name) for module in model.modules() for name, child in module.named_children() if child is whole
    )
    setattr(owner, name, nn.ModuleList(list(whole)[:count]))
    try:
        yield
    finally:
        setattr(owner, name, whole)


def check_layers(model: PreTrainedModel, layers: int) -> None:
    """ValueError unless the first layers are some of the model's and not all."""
    most = len(layers_of(model)) - 1
    if not 1 <= layers <= most:
        raise ValueError(f"The first {layers} layers cannot draft: choose from 1 to {most}, fewer than the model has.")
