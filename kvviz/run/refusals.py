"""What a pass refuses of a model: each would give an answer that looks real. All raise ValueError in one sentence."""

from __future__ import annotations

from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.text.counting import plural


def learned_positions(model: PreTrainedModel) -> int | None:
    """How many positions a model with learned ones (GPT-2, OPT) knows; None for the others."""
    has_table = any(name.endswith(("wpe", "embed_positions")) for name, _ in model.named_modules())
    return model.config.get_text_config(decoder=True).max_position_embeddings if has_table else None


def refuse_beyond_learned(model: PreTrainedModel, learned: int | None, tokens: int) -> None:
    """A model that learned its positions has none beyond the last; a rotary one only leaves its trained range."""
    if learned is not None and tokens > learned:
        raise ValueError(
            f"{tokens} tokens are more than the {learned} positions this {model.config.model_type} model learned; use "
            "a shorter text."
        )


def refuse_unseen_layers(model: PreTrainedModel, seen: int, layers: int) -> None:
    """A model whose layers do not ask for kvviz' attention would ignore every policy."""
    if seen != layers:
        raise ValueError(
            f"{model.config.model_type} models are refused: {seen} of {layers} layers use the attention that kvviz "
            "gives them, so no policy would act on the others; choose a model whose layers use transformers' attention "
            "interface, such as Llama, Qwen or Gemma."
        )


def refuse_other_order(
    model: PreTrainedModel, layer: int, expected: int, window: int | None, own_window: int | None
) -> None:
    """Each layer attends once, in order, and sees what the config says of it."""
    if layer != expected or window != own_window:
        raise ValueError(
            f"{model.config.model_type} models are refused: their layers attend in another order, or see other keys, "
            f"than the config says (layer {layer} asked with window {window} where layer {expected} was next), so "
            "kvviz cannot say what each layer sees."
        )


def refuse_other_heads(model: PreTrainedModel, setup: Setup, layer: int, heads: tuple[int, int, int]) -> None:
    """What all heads share can be kept for all of them or for none, and its codes are not those of a head's key.

    ``heads``: KV heads by the config, those that attend, and those that hold entries of their own.
    """
    named, attending, holding = heads
    if attending != named:
        raise ValueError(
            f"{model.config.model_type} models are refused: layer {layer} attends with {plural(attending, 'KV head')} "
            f"where the config says {named}, so kvviz does not know which heads share an entry."
        )
    parts_heads = setup.policy.differs or bool(setup.policy.needs)
    if holding != named and (holding != 1 or parts_heads or setup.storage.needs_heads):
        raise ValueError(
            f"This {model.config.model_type} model holds {plural(holding, 'entry')} for {named} heads of layer "
            f"{layer}, so its heads cannot keep different tokens, nor quantise keys of their own; choose a policy that "
            "looks at positions, such as window, and storage=native."
        )
