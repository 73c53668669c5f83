"""Single layers of a model, called again exactly as the model itself called them.

Works for any model whose layers are one list of modules: how they are called is written down while the model runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from kvviz.analysis.sparse_linear import SparseLinearMode
from kvviz.models.rope import turning_lengths


@dataclass(frozen=True, eq=False)
class Call:
    """How the model called one of its layers: enough to call it again."""

    layer: nn.Module
    hidden: Tensor  # (1, T, width) its input
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def again(self) -> tuple[Tensor, Tensor]:
        """Its input as a leaf and its output, with the graph between them."""
        with torch.enable_grad(), SparseLinearMode():
            leaf = self.hidden.detach().requires_grad_()
            output = self.layer(leaf, *self.arguments, **self.options)
        return leaf, output[0] if isinstance(output, tuple) else output


class Enough(Exception):
    """The layers that are needed have been called."""


def layer_calls(model: PreTrainedModel, token_ids: NDArray[np.integer], count: int) -> list[Call]:
    """Run the model up to its first ``count`` layers and write down how it called each of them."""
    refuse_growing_frequencies(model, len(token_ids))
    calls: list[Call] = []

    def note(layer: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if len(calls) == count:
            raise Enough
        hidden, *rest = arguments or (options.pop("hidden_states"),)
        calls.append(Call(layer, hidden, tuple(rest), dict(options)))

    hooks = [layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers_of(model)]
    ids = torch.tensor(np.asarray(token_ids), device=model.device)[None]
    places = torch.arange(ids.shape[1], device=model.device)[None]
    try:
        with torch.no_grad():
            model.base_model(input_ids=ids, position_ids=places, use_cache=False)
    except Enough:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def refuse_growing_frequencies(model: PreTrainedModel, tokens: int) -> None:
    """One pass over all tokens gives all of them the frequencies of the last, which no run has met."""
    trained = min((length for length, _ in turning_lengths(model)), default=tokens)
    if tokens > trained:
        raise ValueError(
            f"The gradients are taken in one pass over {tokens} tokens, and the rotary frequencies of this "
            f"{model.config.model_type} model change with the length of the text; choose at most the {trained} tokens "
            "that it was trained on."
        )


def layers_of(model: PreTrainedModel) -> nn.ModuleList:
    """The model's list of layers, whatever it is called."""
    count = model.config.get_text_config(decoder=True).num_hidden_layers
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == count]
    if not lists:
        raise ValueError(f"kvviz does not find the layers of a {model.config.model_type} model; choose another model.")
    return lists[0]


def lengths(gradient: Tensor) -> Tensor:
    """The norm at every position, (1, T, width) → (T,)."""
    return torch.linalg.vector_norm(gradient[0].double(), dim=-1)


def sublayers(call: Call) -> dict[str, Tensor]:
    """What each part of one layer takes from which position for its last row, (T,) norms: attention, FFN, the residual.

    Each is the influence of the part's own input on the part's own output; the residual hands its input on unchanged.
    """
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def note(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
            given = arguments[0] if arguments else options["hidden_states"]
            seen[name] = (given, output[0] if isinstance(output, tuple) else output)

        return hook

    parts = parts_of(call.layer)
    hooks = [module.register_forward_hook(note(name), with_kwargs=True) for name, module in parts.items()]
    try:
        seen["layer"] = call.again()
    finally:
        for hook in hooks:
            hook.remove()
    norms = {name: last_row(given, output) for name, (given, output) in seen.items()}
    norms["residual"] = torch.zeros_like(norms["layer"])
    norms["residual"][-1] = 1
    return norms


def last_row(given: Tensor, output: Tensor) -> Tensor:
    """‖∂ ½‖o_t‖² / ∂i_j‖ of the last row t, (T,)."""
    gradient = torch.zeros_like(output)
    gradient[:, -1] = output.detach()[:, -1]
    return lengths(torch.autograd.grad(output, given, gradient, retain_graph=True)[0])


def parts_of(layer: nn.Module) -> dict[str, nn.Module]:
    """The attention and the FFN of a layer, as far as they are found."""
    inner = list(layer.named_modules())[1:]
    found = {
        "attention": next((module for _, module in inner if hasattr(module, "layer_idx")), None),
        "FFN": next((m for name, m in inner if name in ("mlp", "feed_forward", "ffn", "block_sparse_moe")), None),
    }
    return {name: module for name, module in found.items() if module is not None}
