"""The recorder: one forward pass of the untouched model code, with everything that cannot be replayed kept.

1. Where the model asks the library for an attention function, its attention implementation is switched, for this one
   pass, to a function of this module. Its mask builder is registered under the same name: without one the library would
   hand over no mask and the model would run non-causally. The function keeps q, k, v as attention used them and calls
   the library's own function (sdpa where the family supports it, else the model file's eager function), so the numbers
   are the model's. Where modules attend by themselves, hooks on their projections keep q, k, v (see `own_attention`).
2. Forward hooks keep what enters each layer, what W_O read and what each sub-layer adds.
3. Patterns are not kept. `Replay` holds what is needed to compute any rows of one again: the model file's eager
   function, its arguments, and the mask's rule.

Nothing of the library is patched; the hooks live as long as the pass. The active recording is a context variable, so
that several models can be recorded by several threads.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import (
    causal_mask_function,
    eager_mask,
    sdpa_mask,
    sliding_window_causal_mask_function,
)

from app.errors import BrokenInvariant, Unsupported
from app.lm.anatomy import Anatomy, Block
from app.lm.own_attention import OwnAttention, biased_attention

SDPA, EAGER = "headwater_sdpa", "headwater_eager"

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Mask:
    """The model's own mask rule for a layer, from which any block of rows can be built."""

    rule: Callable[..., Any]

    def rows(self, start: int, end: int, device: torch.device) -> Bool[Tensor, "query_pos key_pos"]:
        """Which keys 0..end−1 the queries start..end−1 can see."""
        seen = sdpa_mask(
            batch_size=1, q_length=end - start, kv_length=end, q_offset=start, mask_function=self.rule,
            allow_is_causal_skip=False, device=device,
        )  # fmt: skip
        if seen is None:
            raise BrokenInvariant("The library built no mask where one was asked for.")
        return seen[0, 0]


@dataclass(frozen=True, eq=False)
class Replay:
    """What computes a layer's pattern again: the eager function of the model's own file and its arguments."""

    function: Callable[..., tuple[Tensor, Tensor]]
    module: nn.Module
    mask: Mask
    arguments: dict[str, Any]

    def rows(
        self,
        q: Float[Tensor, "head query_pos d_head"],
        k: Float[Tensor, "kv_head key_pos d_head"],
        v: Float[Tensor, "kv_head key_pos d_head"],
        start: int,
    ) -> tuple[Float[Tensor, "query_pos head d_head"], Float[Tensor, "head query_pos key_pos"]]:
        """z and pattern of the query rows that begin at `start`; keys must end where the last query stands."""
        seen = self.mask.rows(start, start + q.shape[1], q.device)
        lowest = torch.finfo(q.dtype).min
        bias = torch.where(seen, torch.zeros((), dtype=q.dtype, device=q.device), lowest)
        z, pattern = self.function(self.module, q[None], k[None], v[None], bias[None, None], **self.arguments)
        return z[0], pattern[0]


@dataclass(eq=False)
class Recording:
    """What one pass has left so far; written by the hooks, read by `record`."""

    n_layers: int
    masks: dict[int, Mask] = field(default_factory=dict)
    held: list[Tensor] = field(default_factory=list)
    q: dict[int, Tensor] = field(default_factory=dict)
    k: dict[int, Tensor] = field(default_factory=dict)
    v: dict[int, Tensor] = field(default_factory=dict)
    z: dict[int, Tensor] = field(default_factory=dict)
    replay: dict[int, Replay] = field(default_factory=dict)
    reader_scale: dict[int, Tensor] = field(default_factory=dict)
    layer_of: dict[int, int] = field(default_factory=dict)
    stream: Tensor | None = None
    attn_write: Tensor | None = None
    mlp_write: Tensor | None = None
    embed: Tensor | None = None
    pos_embed: Tensor | None = None
    progress: Progress | None = None

    def keep_layer(self, name: str, index: int, value: Tensor, length: int) -> None:
        """Copies [1, pos, d_model] into row `index` of the stacked tensor `name`, which the first call allocates."""
        stacked = getattr(self, name)
        flat = value.reshape(-1, value.shape[-1])
        if stacked is None:
            stacked = torch.empty(length, *flat.shape, dtype=torch.float32, device=flat.device)
            setattr(self, name, stacked)
        stacked[index].copy_(flat)


_active: ContextVar[Recording | None] = ContextVar("headwater_recording", default=None)


def _mask_builder(inner: Callable[..., Tensor | None]) -> Callable[..., Tensor | None]:
    def build(*args: Any, **kwargs: Any) -> Tensor | None:
        mask = inner(*args, **kwargs)
        recording = _active.get()
        if recording is not None:
            # The key is the identity of the tensor that the layers will be handed; `held` keeps it from being reused.
            recording.masks[id(mask) if mask is not None else 0] = Mask(kwargs["mask_function"])
            if mask is not None:
                recording.held.append(mask)
        return mask

    return build


def _eager_of(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    function = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if function is None:
        raise Unsupported(f"{type(module).__module__} has no eager attention function to replay patterns with.")
    return function  # type: ignore[no-any-return]


def _attention(inner: Callable[[nn.Module], Callable[..., Any]]) -> Callable[..., Any]:
    def attend(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
    ) -> Any:
        recording = _active.get()
        if recording is not None:
            _keep_attention(recording, module, query, key, value, attention_mask, kwargs)
        return inner(module)(module, query, key, value, attention_mask, **kwargs)

    return attend


def _keep_attention(
    recording: Recording,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    kwargs: dict[str, Any],
) -> None:
    index = recording.layer_of.get(id(module))
    if index is None:
        raise BrokenInvariant(f"{type(module).__name__} attends but belongs to no layer of the anatomy.")
    mask = recording.masks.get(id(attention_mask) if attention_mask is not None else 0)
    if mask is None:
        raise Unsupported(f"Layer {index} changes the mask that the library built; its pattern cannot be replayed.")
    recording.q[index], recording.k[index], recording.v[index] = query[0], key[0], _own_memory(value[0], query)
    # Per-position tensors among the arguments belong to the whole prompt; the eager functions read none of them.
    arguments = {name: item for name, item in kwargs.items() if not isinstance(item, Tensor) or name == "s_aux"}
    recording.replay[index] = Replay(_eager_of(module), module, mask, arguments)


def _own_memory(value: Tensor, query: Tensor) -> Tensor:
    """The value, copied where it is a slice of a fused projection that nothing else would keep alive."""
    whole = value.untyped_storage()
    shared = whole.data_ptr() == query.untyped_storage().data_ptr()
    return value if shared or whole.nbytes() <= value.numel() * value.element_size() else value.clone()


def _library_sdpa(module: nn.Module) -> Callable[..., Any]:
    return AttentionInterface()["sdpa"]  # type: ignore[no-any-return]


AttentionInterface.register(SDPA, _attention(_library_sdpa))
AttentionMaskInterface.register(SDPA, _mask_builder(sdpa_mask))
AttentionInterface.register(EAGER, _attention(_eager_of))
AttentionMaskInterface.register(EAGER, _mask_builder(eager_mask))


@contextmanager
def _hooked(model: nn.Module, anatomy: Anatomy, recording: Recording) -> Iterator[None]:
    handles: list[Any] = []
    token = _active.set(recording)
    plain = model.config._attn_implementation  # type: ignore[union-attr]
    through = {"sdpa": SDPA, "eager": EAGER}.get(anatomy.records_with)
    try:
        if through is not None:
            model.set_attn_implementation(through)  # type: ignore[operator]
        handles += _outer_hooks(anatomy, recording)
        for block in anatomy.blocks:
            handles += _block_hooks(block, recording)
        yield
    finally:
        for handle in handles:
            handle.remove()
        if through is not None:
            model.set_attn_implementation(plain)  # type: ignore[operator]
        _active.reset(token)


def _outer_hooks(anatomy: Anatomy, recording: Recording) -> list[Any]:
    n_layers = anatomy.n_layers

    def keep_embedding(module: nn.Module, args: Any, output: Tensor) -> None:
        recording.embed = output.detach().clone().reshape(-1, output.shape[-1])

    def keep_positions(module: nn.Module, args: Any, output: Tensor) -> None:
        recording.pos_embed = output.detach().clone().reshape(-1, output.shape[-1])

    def keep_last_stream(module: nn.Module, args: Any) -> None:
        recording.keep_layer("stream", n_layers, args[0], n_layers + 1)

    def keep_last_output(module: nn.Module, args: Any, output: Any) -> None:
        recording.keep_layer("stream", n_layers, _first(output), n_layers + 1)

    handles: list[Any] = [anatomy.embed.register_forward_hook(keep_embedding)]
    if anatomy.pos_embed is not None:
        handles.append(anatomy.pos_embed.register_forward_hook(keep_positions))
    if anatomy.final_norm_module is not None:
        handles.append(anatomy.final_norm_module.register_forward_pre_hook(keep_last_stream))
    else:
        handles.append(anatomy.blocks[-1].layer.register_forward_hook(keep_last_output))
    return handles


def _block_hooks(block: Block, recording: Recording) -> list[Any]:
    index, n_layers = block.index, recording.n_layers

    def keep_stream(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        recording.keep_layer("stream", index, args[0] if args else kwargs["hidden_states"], n_layers + 1)
        if recording.progress is not None:
            recording.progress("recording", index / n_layers)

    def keep_projection(module: nn.Module, args: Any, output: Tensor) -> None:
        recording.z[index] = args[0].reshape(-1, block.n_heads, block.d_head)

    def keep_reader_scale(module: nn.Module, args: Any) -> None:
        assert block.attention_post_norm is not None
        recording.reader_scale[index] = block.attention_post_norm.inverse_scale(args[0].float()).reshape(-1)

    def keep_attention_write(module: nn.Module, args: Any, output: Any) -> None:
        recording.keep_layer("attn_write", index, _added(output, block), n_layers)

    def keep_mlp_write(module: nn.Module, args: Any, output: Any) -> None:
        recording.keep_layer("mlp_write", index, _added(output, block), n_layers)

    handles: list[Any] = [
        block.layer.register_forward_pre_hook(keep_stream, with_kwargs=True),
        block.attention_write.register_forward_hook(keep_attention_write),
        block.mlp_write.register_forward_hook(keep_mlp_write),
    ]
    if block.attention is not None and block.output_projection is not None:
        recording.layer_of[id(block.attention)] = index
        handles.append(block.output_projection.register_forward_hook(keep_projection))
        if block.own_attention is not None:
            handles += _own_attention_hooks(block, block.attention, block.own_attention, recording)
    if block.attention_post_norm is not None:
        handles.append(block.attention_write.register_forward_pre_hook(keep_reader_scale))
    return handles


def _own_attention_hooks(block: Block, attention: nn.Module, own: OwnAttention, recording: Recording) -> list[Any]:
    index = block.index
    call: dict[str, Any] = {}
    outputs: dict[int, Tensor] = {}

    def keep_call(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        call.update(kwargs)

    def keep_output(at: int) -> Callable[..., None]:
        def keep(module: nn.Module, args: Any, output: Tensor) -> None:
            outputs[at] = output[0].clone()

        return keep

    def keep_heads(module: nn.Module, args: Any, output: Any) -> None:
        flat = tuple(outputs[at] for at in range(len(own.projections)))
        recording.q[index], recording.k[index], recording.v[index] = own.heads(module, flat, call)
        rule = causal_mask_function if block.window is None else sliding_window_causal_mask_function(block.window)
        key_bias = own.key_bias(module, call, flat[0].shape[0])
        arguments = {"scaling": own.scaling(module), "key_bias": key_bias}
        recording.replay[index] = Replay(biased_attention, module, Mask(rule), arguments)
        call.clear()
        outputs.clear()

    handles = [
        attention.register_forward_pre_hook(keep_call, with_kwargs=True),
        attention.register_forward_hook(keep_heads),
    ]
    for at, path in enumerate(own.projections):
        handles.append(attention.get_submodule(path).register_forward_hook(keep_output(at)))
    return handles


def _first(output: Any) -> Tensor:
    tensor: Tensor = output[0] if isinstance(output, tuple) else output
    return tensor


def _added(output: Any, block: Block) -> Tensor:
    tensor = _first(output)
    return tensor if block.multiplier == 1.0 else tensor * block.multiplier


def run_recorded(
    model: nn.Module, anatomy: Anatomy, ids: Int[Tensor, " pos"], progress: Progress | None = None
) -> Recording:
    """Runs the model once over `ids` and returns what the hooks kept. The logits are replayed, not kept.

    Raises:
        Unsupported: a layer attends in a way that cannot be replayed.
        BrokenInvariant: a hook did not see its tensor.
    """
    recording = Recording(anatomy.n_layers, progress=progress)
    with torch.inference_mode(), _hooked(model, anatomy, recording):
        model(input_ids=ids[None], use_cache=False, logits_to_keep=1)
    recording.held.clear()
    recording.progress = None
    attending = [block.index for block in anatomy.blocks if block.attention is not None]
    silent = [index for index in attending if index not in recording.q or index not in recording.z]
    if silent or recording.stream is None or recording.attn_write is None or recording.mlp_write is None:
        raise BrokenInvariant(
            f"The model ran, but attention of layers {silent} was not seen: {anatomy.family} is described wrongly.",
            layers=silent,
        )
    return recording
