"""One prompt to one file, without a server: what `headwater analyze` does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import InvalidInput
from app.lm.protocol import LoadedModel
from app.web.arrays import exact
from app.web.prompts import read_prompt


def write_report(loaded: LoadedModel, text: str, out: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Records `text` and writes its tensors to `out`; returns their names.

    An .npz holds arrays; tokens are strings and the ledger is JSON as text. A .json holds nested lists, where a number
    that JSON does not have is the text "NaN", "Infinity" or "-Infinity".

    Raises:
        InvalidInput: the file's ending is neither .npz nor .json, its folder is missing, or the prompt cannot be used.
        NotFound: there is no tensor of a name.
        TooCostly: nothing was named, and the tensors would need more than 2 GB.
    """
    if out.suffix not in (".npz", ".json"):
        raise InvalidInput(f"{out.name} ends neither in .npz nor in .json; the ending says what to write.")
    if not out.parent.is_dir():
        raise InvalidInput(f"There is no folder {out.parent}; make it first.")
    from app.analysis.report import full_report

    prompt = read_prompt(loaded, text, None)
    trace = loaded.record(prompt.token_ids, lambda stage, fraction: None)
    tensors = full_report(loaded, trace, names)  # type: ignore[arg-type]
    part = out.with_name(f".{out.name}.part")
    try:
        _write(part, out.suffix, tensors)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return tuple(tensors)


def _write(path: Path, suffix: str, tensors: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:
        if suffix == ".npz":
            np.savez_compressed(file, allow_pickle=False, **tensors)
        else:
            file.write(json.dumps(_plain(tensors), ensure_ascii=False, allow_nan=False).encode())


def _plain(tensors: Mapping[str, np.ndarray]) -> Any:
    plain = {name: tensor.tolist() for name, tensor in tensors.items()}
    if "ledger" in plain:
        plain["ledger"] = json.loads(plain["ledger"])
    return exact(plain)
