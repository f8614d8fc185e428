"""The reference decoder of every tiny model, built from the names of its weights."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.lm.reference_gpt import bloom, falcon, gpt2, gpt_neo, gpt_neox, gptj, mpt, opt
from tests.lm.reference_llama import (
    cohere,
    gemma,
    gemma2,
    gpt_oss,
    granite,
    llama,
    mistral,
    mixtral,
    olmo,
    olmo2,
    phi,
    phi3,
    qwen3,
    qwen3_moe,
    smollm3,
    stablelm,
    starcoder2,
)
from tests.lm.reference_weights import Weights
from tests.lm.references import Decoder


def reference(model_type: str, config: Any, raw: Mapping[str, Any]) -> Decoder:
    """The reference decoder of a model."""
    return BUILDERS[model_type](config, Weights(raw))


BUILDERS: dict[str, Callable[[Any, Weights], Decoder]] = {
    "bloom": bloom, "cohere": cohere, "cohere2": cohere, "falcon": falcon, "gemma": gemma, "gemma2": gemma2,
    "gemma3_text": gemma2, "gpt2": gpt2, "gpt_neo": gpt_neo, "gpt_neox": gpt_neox, "gpt_oss": gpt_oss, "gptj": gptj,
    "granite": granite, "llama": llama, "mistral": mistral, "mixtral": mixtral, "mpt": mpt, "olmo": olmo,
    "olmo2": olmo2, "olmo3": olmo2, "opt": opt, "phi": phi, "phi3": phi3, "qwen2": llama, "qwen3": qwen3,
    "qwen3_moe": qwen3_moe, "smollm3": smollm3, "stablelm": stablelm, "starcoder2": starcoder2,
}  # fmt: skip
