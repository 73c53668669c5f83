"""What a pass refuses of a model: each would give an answer that looks real. All raise ValueError in one sentence."""

from __future__ import annotations

from transformers import PreTrainedModel

from kvviz.cache.slots import native_windows
from kvviz.choices.setup import Setup
from kvviz.models.rope import turning_lengths
from kvviz.policies import Moment, Policy
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


def trained_positions(model: PreTrainedModel) -> int | None:
    """How many positions a rotary model was trained on, those that a scaling adds among them; None where none is named.

    Frequencies that adapt to every length (dynamic) have no such end; a table of learned positions is looked at apart.
    """
    if learned_positions(model) is not None or any(grows for _, grows in turning_lengths(model)):
        return None
    named = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return named if named and named > 0 else None


def refuse_beyond_trained(model: PreTrainedModel, setup: Setup, tokens: int, prompt_tokens: int, why: str = "") -> None:
    """Before a run over so many tokens: a query further from its keys than in training answers noise, not a loss.

    ``why`` begins the sentence where the setup is one that nobody asked for by name.
    """
    trained = trained_positions(model)
    if trained is None or tokens <= trained:
        return
    used = positions_used(model, setup, tokens, prompt_tokens)
    if used > trained:
        raise ValueError(f"{why}{beyond_trained(model, setup, used, trained)}")


def beyond_trained(model: PreTrainedModel, setup: Setup, used: int, trained: int) -> str:
    """The sentence that refuses, with the cure that fits what was asked for."""
    is_slot = setup.positions == "slot" and not setup.policy.recomputes
    cure = (
        f"a policy that never holds more than {trained} tokens"
        if is_slot or setup.policy.recomputes
        else "positions=slot with a policy that has a budget, such as streaming"
    )
    return (
        f"{setup} needs {used} positions and this {model.config.model_type} model was trained on {trained}; choose "
        f"{cure}, or at most {trained} tokens in all."
    )


def positions_used(model: PreTrainedModel, setup: Setup, tokens: int, prompt_tokens: int) -> int:
    """How many positions any query and its keys span: the whole text, or what a layer holds where slots number them."""
    policy = setup.policy
    if policy.recomputes:  # every window is read from position 0 on
        return min(tokens, policy.size or tokens)
    if setup.positions != "slot":
        return tokens
    windows = native_windows(model.config)
    layers = [0] if policy.limits_alike() else range(len(windows))
    held = max(most_seen(policy, layer, len(windows), tokens, prompt_tokens) for layer in layers)
    return held if None in windows else min(held, max(window for window in windows if window))


def most_seen(policy: Policy, layer: int, layers: int, tokens: int, prompt_tokens: int) -> int:
    """The most entries that one query of a layer sees, by the policy's own limits."""
    held = most = 0
    for newest in range(tokens):
        limit = policy.limit(Moment(newest, layer, layers, prompt_tokens))
        left = held + 1 if limit is None else min(held + 1, limit)
        most, held = max(most, held + 1 if policy.timing.delay else left), left
    return most


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
