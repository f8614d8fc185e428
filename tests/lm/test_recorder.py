"""The recorder: what it keeps, that it leaves the model alone, and that models and threads do not meet."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface

from app.errors import BrokenInvariant, Unsupported
from app.lm.recorder import EAGER, SDPA, Mask, run_recorded
from app.lm.trace import Trace
from tests.lm.tiny import BY_NAME, PROMPT, build, model_of
from tests.lm.tiny_loaded import load, loaded_of, trace_of, untouched_logits

LONG = (*range(60), 1, 2, 3, 4)
MECHANISMS = ["gpt2", "llama", "gemma2", "bloom", "falcon-alibi", "gpt-oss", "gpt-neo", "opt-norm-of-sum", "lfm2",
              "gpt-neox-parallel", "phi3"]  # fmt: skip
some_families = pytest.mark.parametrize("name", MECHANISMS)


def kept(trace: Trace) -> Iterator[torch.Tensor]:
    """Every tensor that a trace holds, those inside a replay's arguments included."""
    recording = trace.recording
    yield from (trace.stream, trace.attn_write, trace.mlp_write, trace.embed)
    for tensors in (recording.q, recording.k, recording.v, recording.z, recording.reader_scale):
        yield from tensors.values()
    for replay in recording.replay.values():
        yield from (item for item in replay.arguments.values() if isinstance(item, torch.Tensor))


@some_families
def test_a_trace_is_linear_in_the_length_of_the_prompt(name: str) -> None:
    loaded = loaded_of(name)
    short, long = (sum(t.numel() for t in kept(loaded.record(LONG[:n]))) for n in (16, 64))
    # Sinks and the like are the same for every prompt.
    constant = sum(t.numel() for t in kept(loaded.record(LONG[:16])) if t.ndim == 1 and t.shape[0] < 16)
    assert long - constant == 4 * (short - constant)


@some_families
def test_a_trace_keeps_no_memory_alive_that_it_does_not_show(name: str) -> None:
    trace = loaded_of(name).record(LONG)
    whole = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept(trace)}
    shown = sum(t.numel() * t.element_size() for t in kept(trace))
    # What replays need for every prompt, such as a model's own parameters, is not the trace's.
    parameters = {p.untyped_storage().data_ptr() for p in model_of(name).parameters()}
    assert sum(size for pointer, size in whole.items() if pointer not in parameters) <= shown


@some_families
def test_any_rows_of_a_pattern_are_those_of_the_whole(name: str) -> None:
    trace = loaded_of(name).record(LONG)
    for layer in trace.attention_layers:
        whole = trace.pattern(layer)
        for start, end in ((0, 1), (5, 6), (7, 31), (63, 64)):
            rows = trace.pattern_rows(layer, start, end)
            assert torch.allclose(rows.pattern, whole[:, start:end, :end], atol=1e-6)
            assert torch.allclose(rows.z, trace.z(layer)[start:end], atol=1e-4)


@some_families
def test_a_recording_that_is_interrupted_leaves_the_model_as_it_was(name: str) -> None:
    model, loaded = model_of(name), loaded_of(name)
    before, plain = untouched_logits(model), model.config._attn_implementation

    def stop(stage: str, fraction: float) -> None:
        if fraction > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loaded.record(PROMPT, stop)
    assert model.config._attn_implementation == plain
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert torch.equal(untouched_logits(model), before)


def test_progress_is_told_layer_by_layer() -> None:
    told: list[tuple[str, float]] = []
    loaded_of("llama").record(PROMPT, lambda stage, fraction: told.append((stage, fraction)))
    assert told == [("recording", 0.0), ("recording", pytest.approx(1 / 3)), ("recording", pytest.approx(2 / 3))]


def test_models_recorded_in_threads_at_the_same_time_do_not_meet() -> None:
    names = ("llama", "gpt2", "bloom", "mistral")
    loaded = {name: load(build(BY_NAME[name].config())) for name in names}
    expected = {name: trace_of(name).stream for name in names}
    wrong: list[str] = []
    barrier = threading.Barrier(len(names), timeout=20)

    def record(name: str) -> None:
        for _ in range(5):
            barrier.wait()
            if not torch.equal(loaded[name].record(PROMPT).stream, expected[name]):
                wrong.append(name)

    threads = [threading.Thread(target=record, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_both_attention_functions_have_a_mask_builder_under_the_same_name() -> None:
    for name in (SDPA, EAGER):
        assert name in AttentionInterface()
        assert name in AttentionMaskInterface()


def test_outside_a_recording_the_registered_functions_are_the_librarys() -> None:
    model = build(BY_NAME["mistral"].config())
    before = untouched_logits(model)
    for name in (SDPA, EAGER):
        model.set_attn_implementation(name)
        assert torch.allclose(untouched_logits(model), before, atol=1e-5)


@pytest.mark.parametrize("prompt", [(5,), (5, 5), LONG])
@some_families
def test_prompts_of_every_length_are_recorded(name: str, prompt: tuple[int, ...]) -> None:
    trace = loaded_of(name).record(prompt)
    assert trace.n_pos == len(prompt)
    assert torch.allclose(
        trace.anatomy.logits(trace.stream[-1]), untouched_logits(model_of(name), prompt), atol=2e-5, rtol=1e-4
    )


def test_a_mask_that_a_layer_changes_is_refused() -> None:
    model = build(BY_NAME["llama"].config())
    loaded = load(model)

    def change(module: object, args: object, kwargs: dict[str, object]) -> tuple[object, dict[str, object]]:
        return args, {**kwargs, "attention_mask": torch.zeros(1, 1, len(PROMPT), len(PROMPT))}

    handle = model.model.layers[1].self_attn.register_forward_pre_hook(change, with_kwargs=True)
    try:
        with pytest.raises(Unsupported, match="Layer 1 changes the mask"):
            loaded.record(PROMPT)
    finally:
        handle.remove()


def test_attention_outside_the_anatomy_is_an_error_and_not_ignored() -> None:
    model = model_of("llama")
    anatomy = loaded_of("llama").anatomy
    fewer = replace(anatomy, blocks=anatomy.blocks[:2])
    with pytest.raises(BrokenInvariant, match="belongs to no layer"):
        run_recorded(model, fewer, torch.tensor(PROMPT))


def test_attention_that_is_never_called_is_an_error() -> None:
    model = model_of("llama")
    anatomy = loaded_of("llama").anatomy
    last = replace(anatomy.blocks[2], attention=torch.nn.Identity(), output_projection=torch.nn.Identity())
    with pytest.raises(BrokenInvariant):
        run_recorded(model, replace(anatomy, blocks=(*anatomy.blocks[:2], last)), torch.tensor(PROMPT))


def test_rows_of_a_mask_are_those_of_the_whole_mask() -> None:
    mask = Mask(lambda b, h, q, k: (k <= q) & (k > q - 4))
    whole = mask.rows(0, 12, torch.device("cpu"))
    assert whole.sum(-1).tolist() == [1, 2, 3, *[4] * 9]
    assert torch.equal(mask.rows(5, 9, torch.device("cpu")), whole[5:9, :9])
