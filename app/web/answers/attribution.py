"""A logit as a waterfall, and one head's part of it split over its sources."""

from dataclasses import asdict
from typing import Any

from app.lm.protocol import LoadedModel, Trace
from app.web.answers.words import Label, aim_json, closes_json
from app.web.arrays import typed_array
from app.web.copy_as_python import array_lines, fetch_lines


def attribution_answer(loaded: LoadedModel, trace: Trace, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer for {pos, target, foil}. Raises as `app.analysis.waterfall.waterfall`."""
    from app.analysis.waterfall import grouped, waterfall

    label: Label = loaded.vocabulary.label  # type: ignore[attr-defined]
    found = waterfall(trace, asked["pos"], asked["target"], asked["foil"])  # type: ignore[arg-type]
    return {
        "pos": found.position,
        "aim": aim_json(found.aim, label),
        "rows": [asdict(row) for row in found.rows],
        "by_layer": [asdict(row) for row in grouped(found.rows, "layer")],
        "by_kind": [asdict(row) for row in grouped(found.rows, "kind")],
        "steps": [asdict(step) for step in found.steps],
        "sum": found.total,
        "logit": found.logit,
        "probability": found.probability,
        "closes": closes_json(found.closes),
        "python": fetch_lines(path, asked, 'print(sum(row["value"] for row in answer["rows"]), answer["logit"])'),
    }


def sources_answer(loaded: LoadedModel, trace: Trace, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer for {pos, layer, head, target, foil}. Raises as `app.analysis.waterfall.head_sources`."""
    from app.analysis.waterfall import head_sources

    found = head_sources(
        trace, asked["pos"], asked["layer"], asked["head"], asked["target"], asked["foil"]  # type: ignore[arg-type]
    )  # fmt: skip
    return {
        **{name: asked[name] for name in ("pos", "layer", "head")},
        "aim": aim_json(found.aim, loaded.vocabulary.label),  # type: ignore[attr-defined]
        "values": typed_array(found.values.cpu().numpy()),
        "seen": typed_array(found.seen.cpu().numpy()),
        "value": found.value,
        "closes": closes_json(found.closes),
        "python": array_lines(path, asked, 'print(array(answer["values"]).sum(), answer["value"])'),
    }
