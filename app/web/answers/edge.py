"""One cell as the API tells it: its numbers, and the equation with the numbers in it."""

from typing import TYPE_CHECKING, Any

from app.lm.protocol import LoadedModel, Trace
from app.web.answers.words import Label, aim_json, best_json, closes_json
from app.web.copy_as_python import fetch_lines

if TYPE_CHECKING:
    from app.analysis.edge import Edge


def edge_answer(loaded: LoadedModel, trace: Trace, path: str, cell: dict[str, Any]) -> dict[str, Any]:
    """The answer for {layer, head, query, key, target, foil}. Raises as `app.analysis.edge.edge`."""
    from app.analysis.edge import edge

    label: Label = loaded.vocabulary.label  # type: ignore[attr-defined]
    found = edge(trace, **cell)  # type: ignore[arg-type]
    row, key = found.row, found.key
    position_bias, score = float(row.position_bias[key]), float(row.score[key])
    tokens = trace.token_ids  # type: ignore[attr-defined]
    return {
        **{name: getattr(found, name) for name in ("layer", "head", "kv_head", "query", "key")},
        "seen": found.is_seen,
        "aim": aim_json(found.aim, label),
        "score": {
            "dot": float(row.dot[key]),
            "q_norm": float(row.q.norm()),
            "k_norm": float(row.k[key].norm()),
            "cosine": float(row.dot[key] / (row.q.norm() * row.k[key].norm()).clamp_min(1e-30)),
            "scaling": row.scaling,
            "scaled": float(row.scaled[key]),
            "cap": row.cap,
            "capped": float(row.capped[key]),
            "position_bias": position_bias,
            "score": score if found.is_seen else None,
        },
        "softmax": {
            "pattern": found.pattern,
            "row_sum": float(row.pattern.sum()),
            "n_seen": int(row.seen.sum()),
            "log_total": row.log_total,
            "rank": found.rank,
            "sink": _sink(found),
            "competitors": [
                {"key": j, "label": label(tokens[j]), "score": float(row.score[j]), "pattern": float(row.pattern[j])}
                for j in found.competitors
            ],
        },
        "message": {
            "x_hat_query_norm": found.x_hat_query_norm,
            "x_hat_key_norm": found.x_hat_key_norm,
            "value_norm": found.value_norm,
            "norm": found.message_norm,
            "reader_scale": found.reader_scale,
            "delivered_norm": found.delivered_norm,
        },
        "output": {
            "norm": found.output_norm,
            "projection": found.projection,
            "share": found.share,
            "cosine": found.cosine,
        },
        "stream": {"before_norm": found.stream_norm, "write_norm": found.write_norm, "along": found.along},
        **best_json(found.promoted, "promotes", "suppresses", label),
        "mean_effect": None if found.promoted is None else found.promoted.mean,
        "effect": None
        if found.effects is None
        else {"source": found.effects.source, "head": found.effects.head, "logit": found.effects.logit},
        "equation": equation(found, label),
        "closes": closes_json(found.closes),
        "python": fetch_lines(path, cell, 'print(answer["softmax"]["pattern"], answer["message"]["delivered_norm"])'),
    }


def _sink(found: "Edge") -> dict[str, float] | None:
    from app.analysis.scores import weight_of

    sink = found.row.sink
    return None if sink is None else {"score": sink, "pattern": weight_of(sink, found.row.log_total)}


def equation(found: "Edge", label: Label) -> list[dict[str, Any]]:
    """The steps in the order of the article: pattern, message, product, sum, stream, and the logit at the end."""
    row, key, query = found.row, found.key, found.query
    dot, score = float(row.dot[key]), float(row.score[key])
    i, j = query, key

    def step(name: str, left: str, formula: str, numbers: str, value: float | None, unit: str, about: str) -> Any:
        names = ("step", "left", "formula", "numbers", "value", "unit", "about")
        return dict(zip(names, (name, left, formula, numbers, value, unit, about), strict=True))

    scored, filled = "q·k × scaling", f"{_n(dot)} × {_n(row.scaling)}"
    if row.cap is not None:
        scored, filled = f"cap × tanh({scored} / cap)", f"{_n(row.cap)} × tanh({filled} / {_n(row.cap)})"
    if float(row.position_bias.abs().max()) > 0:
        scored, filled = f"{scored} + position bias", f"{filled} + {_n(float(row.position_bias[key]))}"
    others = "exp(sink) + Σ exp(s)" if row.sink is not None else "Σ exp(s)"
    scale = "" if found.reader_scale == 1.0 else f"{_n(found.reader_scale)} × "
    steps = [
        step("score", f"s[{i},{j}]", scored, filled, score if found.is_seen else None, "score",
             "How well the reader's query fits the source's key."),
        step("pattern", f"A[{i},{j}]", f"exp(s) / ({others})",
             f"exp({_n(score)}) / exp({_n(row.log_total)})" if found.is_seen else "cannot see", found.pattern,
             "probability", "The share of the reader's attention, against every source that it can see."),
        step("message", f"‖m[{j}]‖", "‖v W_O‖", f"from ‖x̂‖ = {_n(found.x_hat_key_norm)}, ‖v‖ = {_n(found.value_norm)}",
             found.message_norm, "norm", "What the source sends through this head, whoever reads it."),
        step("delivered", f"‖A m[{j}]‖", "A × ‖m‖" if not scale else "r × A × ‖m‖",
             f"{scale}{_n(found.pattern)} × {_n(found.message_norm)}", found.delivered_norm, "norm",
             "What arrives at the reader."),
        step("output", f"(A m[{j}])·o / o·o", "share of o = Σ A m", f"{_n(found.projection)} / {_n(found.output_norm)}",
             found.share, "share of the head's output",
             "The part of the head's output that this source explains: its projection, since norms do not add."),
        step("stream", "o·x / ‖x‖", "the output along the stream that it enters",
             f"‖o‖ = {_n(found.output_norm)}, ‖x‖ = {_n(found.stream_norm)}", found.along, "norm, signed",
             "Above 0 the head reinforces what the stream holds, below 0 it erases."),
    ]  # fmt: skip
    if found.effects is not None:
        aim = label(found.aim.target) + ("" if found.aim.foil is None else f" − {label(found.aim.foil)}")
        steps.append(
            step(
                "logit", f"logit of {aim}", "A m · direction of the logit",
                f"{_n(found.effects.source)} of the head's {_n(found.effects.head)}", found.effects.source, "logits",
                f"Added directly to the logit, which is {_n(found.effects.logit)}.",
            )
        )  # fmt: skip
    return steps


def _n(value: float) -> str:
    """Four figures."""
    return f"{value:.4g}"
