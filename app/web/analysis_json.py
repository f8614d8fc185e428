"""One analysis, and one tensor of it, as the API tells them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.domain.snapshot import Snapshot
from app.lm.runner import RunStatus
from app.storage.store import StoredAnalysis
from app.web.arrays import typed_array

if TYPE_CHECKING:
    from app.analysis.tensors import Answer, Entry

API = "/api/v1"


def analysis_url(analysis_id: str) -> str:
    """The address of an analysis in the API, without a host: a Host header can be made up."""
    return f"{API}/analyses/{analysis_id}"


def analysis_json(
    stored: StoredAnalysis,
    model: Mapping[str, object],
    status: RunStatus | None,
    snapshot: Snapshot | None,
    table: "Mapping[str, Entry]",
) -> dict[str, Any]:
    """An analysis as plain data; what is computed is empty until there is a snapshot."""
    meta: Mapping[str, Any] = {} if snapshot is None else snapshot.meta
    rows = meta.get("ledger")
    running = stored.state == "queued" and status is not None
    return {
        "id": stored.id,
        "state": status.state if running and status is not None else stored.state,
        "stage": status.stage if running and status is not None else "",
        "fraction": status.fraction if running and status is not None else float(stored.state == "done"),
        "queue_position": status.queue_position if running and status is not None else 0,
        "problem": stored.problem,
        "created_at": stored.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "model": model,
        "text": stored.recipe.text,
        "tokens": stored.tokens,
        "surprisal": meta.get("surprisal", []),
        "entropy": meta.get("entropy", []),
        "next": meta.get("next", []),
        "predictions": meta.get("top", []),
        "ledger": None
        if rows is None
        else {
            "holds": bool(rows) and all(row["holds"] for row in rows),
            "rows": rows,
            "cost": meta["cost_s"],
        },
        "notes": meta.get("notes", []),
        "thumbnail_stride": meta.get("thumbnail_stride"),
        "tensors": [] if snapshot is None else tensor_infos(stored, snapshot, table),
    }


def tensor_infos(stored: StoredAnalysis, snapshot: Snapshot, table: "Mapping[str, Entry]") -> list[dict[str, Any]]:
    """Every tensor that can be asked for, with its shape where that is known."""
    sizes = _axis_sizes(stored)
    anatomy: Any = stored.model.get("anatomy") or {}
    infos = []
    for name, entry in table.items():
        kept = snapshot.tensors.get(name)
        if kept is None and (entry.compute is None or any(anatomy.get(flag) for flag in entry.not_where)):
            continue
        axes = entry.spec.axes
        infos.append(
            {
                "name": name,
                "axes": list(axes),
                "shape": [sizes.get(axis) for axis in axes] if kept is None else list(kept.shape),
                "unit": entry.spec.unit,
                "about": entry.spec.about,
                "needs": [] if kept is not None else list(entry.needs),
                "url": f"{analysis_url(stored.id)}/tensors/{name}",
                "stored": kept is not None,
            }
        )
    return infos


def envelope(answer: "Answer") -> dict[str, Any]:
    """A tensor with its axes, its unit and what was fixed, in Plotly's typed form."""
    body: dict[str, Any] = {
        "name": answer.spec.name,
        "axes": list(answer.axes),
        "unit": answer.spec.unit,
        "about": answer.spec.about,
        "fixed": dict(answer.fixed),
        "data": typed_array(answer.array),
    }
    if answer.mask is not None:
        body["mask"] = typed_array(answer.mask)
    return body


def _axis_sizes(stored: StoredAnalysis) -> dict[str, int]:
    n_tokens = len(stored.tokens)
    sizes = dict.fromkeys(("pos", "query_pos", "key_pos"), n_tokens)
    anatomy: Any = stored.model.get("anatomy") or {}
    for axis, name in (
        ("layer", "n_layers"),
        ("head", "n_heads"),
        ("kv_head", "n_kv_heads"),
        ("d_model", "d_model"),
        ("unit", "n_units"),
        ("vocab", "vocab_size"),
    ):
        if isinstance(anatomy.get(name), int):
            sizes[axis] = anatomy[name]
    if "layer" in sizes:
        sizes["stream"] = sizes["other_stream"] = sizes["layer"] + 1
    return sizes
