"""From a folder to a model in memory: what is accepted, what is refused, and what is said about number types."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from app.analysis.heads import scan_heads
from app.analysis.ledger import check_ledger
from app.errors import ModelUnavailable, UnknownToken, Unsupported
from app.lm.loading import LoadedTransformer, fingerprint, load_transformer, stored_dtype
from app.settings import Settings
from tests.lm.tiny import BY_NAME, PROMPT, VOCAB, build
from tests.lm.tiny_loaded import tiny_tokenizer, untouched_logits


def save(folder: Path, name: str = "llama", dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """A tiny model and its tokenizer in a folder, as the library writes them."""
    model = build(BY_NAME[name].config(tie_word_embeddings=False)).to(dtype)
    model.save_pretrained(folder, **options)
    tiny_tokenizer().save_pretrained(folder)
    return model


def load(folder: Path, **settings: Any) -> LoadedTransformer:
    return load_transformer("tiny", folder, Settings(**settings))


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal but for the order of summation, which depends on how many rows are computed at once."""
    return torch.allclose(left, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_saved_model_computes_what_it_computed_before(tmp_path: Path, name: str) -> None:
    model = save(tmp_path, name)
    loaded = load(tmp_path)
    assert same(loaded.plain_logits(PROMPT, [11]), untouched_logits(model)[[11]])
    trace = loaded.record(PROMPT)
    assert check_ledger(loaded, trace, scan_heads(trace).replay).holds
    assert (loaded.dtype, loaded.stored_dtype, loaded.device) == ("float32", "float32", "cpu")
    assert loaded.anatomy.notes == ()


@pytest.mark.parametrize("name", ["falcon-multi-query", "bloom"])
def test_outputs_that_a_configuration_asks_for_do_not_change_the_path(tmp_path: Path, name: str) -> None:
    model = save(tmp_path, name)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"output_attentions": True, "output_hidden_states": True, "return_dict": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load(tmp_path)
    assert same(loaded.plain_logits(PROMPT, [11]), untouched_logits(model)[[11]])
    trace = loaded.record(PROMPT)
    assert check_ledger(loaded, trace, scan_heads(trace).replay).holds


def test_sharded_weights_are_put_together(tmp_path: Path) -> None:
    model = save(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    assert same(load(tmp_path).plain_logits(PROMPT, [3]), untouched_logits(model)[[3]])


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    save(tmp_path, max_shard_size="20KB")
    shard = sorted(tmp_path.glob("model-*"))[1]
    shard.unlink()
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        load(tmp_path)


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
def test_half_precision_is_computed_in_float32_and_said(tmp_path: Path, dtype: torch.dtype, name: str) -> None:
    model = save(tmp_path, dtype=dtype)
    loaded = load(tmp_path)
    assert (loaded.dtype, loaded.stored_dtype) == ("float32", name)
    assert loaded.anatomy.notes == (f"The weights are stored in {name} and computed in float32.",)
    # A fresh model with the rounded weights: only they are stored, what the model computes for itself is not rounded.
    rounded = build(BY_NAME["llama"].config(tie_word_embeddings=False))
    rounded.load_state_dict(model.state_dict())
    assert same(loaded.plain_logits(PROMPT, [7]), untouched_logits(rounded)[[7]])


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
def test_the_operator_may_keep_the_stored_type_and_the_ledger_holds_at_its_precision(
    tmp_path: Path, dtype: torch.dtype, name: str
) -> None:
    save(tmp_path, dtype=dtype)
    loaded = load(tmp_path, dtype="stored")
    assert (loaded.dtype, loaded.stored_dtype) == (name, name)
    trace = loaded.record(PROMPT)
    ledger = check_ledger(loaded, trace, scan_heads(trace).replay)
    assert ledger.holds, [row for row in ledger.rows if not row.holds]


def test_the_stored_type_is_read_from_the_files_and_not_from_the_configuration(tmp_path: Path) -> None:
    save(tmp_path, dtype=torch.bfloat16)
    config = json.loads((tmp_path / "config.json").read_text())
    config["dtype"] = "float32"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert stored_dtype(tmp_path) == "bfloat16"


def test_pickled_weights_are_refused_without_being_opened(tmp_path: Path) -> None:
    model = save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelUnavailable, match=r"Pickled weights .* can run code and are not loaded"):
        load(tmp_path)


def test_pickled_weights_beside_other_safetensors_are_not_used_either(tmp_path: Path) -> None:
    model = save(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "adapter.safetensors")
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelUnavailable):
        load(tmp_path)


def test_code_that_came_with_a_model_is_not_run(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "modeling_own.py").write_text("raise SystemExit('this code was run')\n")
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {
        "AutoConfig": "modeling_own.OwnConfig",
        "AutoModelForCausalLM": "modeling_own.OwnModel",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    load(tmp_path)
    config["model_type"] = "own"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(Unsupported, match="type own are not supported"):
        load(tmp_path)


def test_weights_that_are_missing_are_never_filled_with_random_numbers(tmp_path: Path) -> None:
    save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["num_hidden_layers"] = 4
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelUnavailable, match=r"lack \d+ of the model's weights, model\.layers\.3\."):
        load(tmp_path)


def test_an_unknown_type_is_refused_before_its_weights_are_read(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (tmp_path / "model.safetensors").write_bytes(b"not read")
    with pytest.raises(Unsupported, match="type t5 are not supported; supported are: arcee, "):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model_type": null}'])
def test_a_damaged_configuration_is_said(tmp_path: Path, content: str) -> None:
    save(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises((ModelUnavailable, Unsupported)):
        load(tmp_path)


def test_a_folder_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"There is no config\.json in .* headwater fetch tiny"):
        load(tmp_path)


def test_damaged_weights_are_said(tmp_path: Path) -> None:
    save(tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    for damaged in (b"", b"\xff" * 64, whole[: len(whole) // 2]):
        (tmp_path / "model.safetensors").write_bytes(damaged)
        with pytest.raises(ModelUnavailable, match="could not be loaded"):
            load(tmp_path)


def test_the_prompt_is_no_longer_than_the_positions_of_the_model(tmp_path: Path) -> None:
    save(tmp_path, "gpt2")
    assert load(tmp_path).max_tokens == 64
    assert load(tmp_path, max_tokens=20).max_tokens == 20


# Vocabulary and tokenizer of different sizes


def test_a_token_without_an_embedding_is_refused_before_it_is_run(tmp_path: Path) -> None:
    save(tmp_path)
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["extra"])
    tokenizer.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert [token.id for token in loaded.encode("w1 w60")] == [1, 60]
    with pytest.raises(UnknownToken, match=f"'extra' into token {VOCAB}, but tiny has embeddings for ids 0 to 60"):
        loaded.encode("w1 extra")
    with pytest.raises(UnknownToken, match="Token id 61 does not exist"):
        loaded.tokens_of((1, 61))


def test_an_embedding_without_a_token_can_be_run_and_is_shown_by_its_number(tmp_path: Path) -> None:
    model = build(BY_NAME["llama"].config(vocab_size=VOCAB + 3))
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    loaded = load(tmp_path)
    (token,) = loaded.tokens_of((VOCAB + 2,))
    assert token.label == "⟨id 63⟩"
    assert loaded.vocabulary.label(VOCAB + 2) == "⟨id 63⟩"
    assert loaded.record((VOCAB + 2, 1)).n_pos == 2


# The fingerprint


def test_the_fingerprint_is_the_same_for_the_same_files_anywhere(tmp_path: Path) -> None:
    save(tmp_path / "a", max_shard_size="20KB")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "README.md").write_text("Notes do not compute.")
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert len(fingerprint(tmp_path / "a")) == 64


def test_the_fingerprint_covers_whatever_decides_about_numbers_or_tokens(tmp_path: Path) -> None:
    save(tmp_path, max_shard_size="20KB")
    for name in ("tokenizer.model", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json",
                 "special_tokens_map.json"):  # fmt: skip
        (tmp_path / name).write_text("{}")
    files = [path for path in tmp_path.iterdir() if path.name != "generation_config.json"]
    assert {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"} <= {
        path.name for path in files
    }
    before = fingerprint(tmp_path)
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        assert fingerprint(tmp_path) != before, path.name
        path.write_bytes(content)
    assert fingerprint(tmp_path) == before
