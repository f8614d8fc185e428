"""Every head summed up: on this prompt, and on the model's probe with the badges that follow from it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.domain.snapshot import Snapshot
from app.errors import NotReady
from app.lm.protocol import LoadedModel, Trace
from app.web.answers.words import Label, aim_json
from app.web.arrays import typed_array
from app.web.copy_as_python import array_lines

if TYPE_CHECKING:
    import numpy as np

    from app.analysis.summaries import Summary


def heads_answer(
    snapshot: Snapshot, loaded: LoadedModel, trace: Trace, path: str, asked: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """The answer for {pos, target, foil}; the last position where none is given.

    Raises:
        OutOfRange, UnknownToken: there is no such position or token. NotReady: the analysis was stored before there
            were summaries.
    """
    from app.analysis.aim import aim_at
    from app.analysis.attribution import attribute
    from app.analysis.probe import probe_of
    from app.analysis.summaries import ATTRIBUTION, PROMPT_SUMMARIES, tensor_name

    label: Label = loaded.vocabulary.label  # type: ignore[attr-defined]
    pos = trace.n_pos - 1 if asked["pos"] is None else asked["pos"]  # type: ignore[attr-defined]
    aim = aim_at(trace, pos, asked["target"], asked["foil"])  # type: ignore[arg-type]
    if tensor_name("entropy") not in snapshot.tensors:
        raise NotReady("This analysis was stored by an earlier version, without summaries; run the prompt again.")
    summaries = [_summary(one, snapshot.tensors[tensor_name(one.name)]) for one in PROMPT_SUMMARIES]
    if trace.anatomy.is_additive:  # type: ignore[attr-defined]
        effects = attribute(trace, pos, aim.target, aim.foil).heads  # type: ignore[arg-type]
        summaries.append(_summary(ATTRIBUTION, effects.cpu().numpy()))
    probe = probe_of(loaded)  # type: ignore[arg-type]
    return {
        "pos": pos,
        "aim": aim_json(aim, label),
        "summaries": summaries,
        "probe": {
            **{name: getattr(probe, name) for name in ("n_tokens", "period", "seed", "about")},
            "chance": dict(probe.chance),
            "summaries": _known(PROMPT_SUMMARIES, probe.summaries),
            "badges": [asdict(badge) for badge in probe.badges],
        },
        "python": array_lines(
            path, asked, 'scores = {one["name"]: array(one["values"]) for one in answer["summaries"]}',
            'print(scores["entropy"])  # [layer, head]',
        ),
    }  # fmt: skip


def _summary(summary: "Summary", values: "np.ndarray") -> dict[str, Any]:
    return {**asdict(summary), "values": typed_array(values)}


def _known(summaries: "tuple[Summary, ...]", values: Mapping[str, "np.ndarray"]) -> list[dict[str, Any]]:
    return [_summary(one, values[one.name]) for one in summaries if one.name in values]
