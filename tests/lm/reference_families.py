"""The reference decoder of every tiny model, built from the names of its weights."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.lm import reference_gpt as gpt
from tests.lm import reference_llama as llama
from tests.lm import reference_more as more
from tests.lm.reference_weights import Weights
from tests.lm.references import Decoder


def reference(model_type: str, config: Any, raw: Mapping[str, Any]) -> Decoder:
    """The reference decoder of a model."""
    return BUILDERS[model_type](config, Weights(raw))


BUILDERS: dict[str, Callable[[Any, Weights], Decoder]] = {
    "arcee": more.arcee, "biogpt": more.biogpt, "bloom": gpt.bloom, "codegen": more.codegen, "cohere": llama.cohere,
    "cohere2": llama.cohere, "ernie4_5": more.turned_in_pairs, "exaone4": more.exaone4, "falcon": gpt.falcon,
    "gemma": llama.gemma, "gemma2": llama.gemma2, "gemma3_text": llama.gemma2, "glm": more.glm, "glm4": more.glm,
    "gpt2": gpt.gpt2, "gpt_bigcode": more.gpt_bigcode, "gpt_neo": gpt.gpt_neo, "gpt_neox": gpt.gpt_neox,
    "gpt_oss": llama.gpt_oss, "gptj": gpt.gptj, "granite": llama.granite, "granitemoe": more.granitemoe,
    "helium": more.turned_in_pairs, "hunyuan_v1_dense": more.hunyuan, "llama": llama.llama, "ministral": llama.llama,
    "mistral": llama.mistral, "mixtral": llama.mixtral, "mpt": gpt.mpt, "nemotron": more.nemotron, "olmo": llama.olmo,
    "olmo2": llama.olmo2, "olmo3": llama.olmo2, "olmoe": more.olmoe, "opt": gpt.opt, "persimmon": more.persimmon,
    "phi": llama.phi, "phi3": llama.phi3, "qwen2": llama.llama, "qwen2_moe": more.qwen2_moe, "qwen3": llama.qwen3,
    "qwen3_moe": llama.qwen3_moe, "seed_oss": llama.llama, "smollm3": llama.smollm3, "stablelm": llama.stablelm,
    "starcoder2": llama.starcoder2,
}  # fmt: skip
