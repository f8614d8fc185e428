"""What the API tells about an LSTM's prediction, and about an LSTM beside a transformer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from app.errors import OutOfRange, Unsupported
from app.lm.protocol import LoadedModel, Trace
from app.storage.store import StoredAnalysis
from app.web.analysis_json import envelope

if TYPE_CHECKING:
    from app.analysis.lstm.tokens import Groups

# Units and possible characters that an answer lists.
UNITS_LISTED = 12
WORDS_LISTED = 6


def contributions(
    loaded: LoadedModel, trace: Trace, pos: int, target: int | None, foil: int | None, source: int | None
) -> dict[str, Any]:
    """One logit after one position as a sum over sources, and over units; and what one source promotes.

    Raises:
        OutOfRange: a position, a source or a target that is not there.
    """
    from app.analysis.lstm.delivery import delivery_of, logit_parts, promoted
    from app.lm.lstm import LoadedLstm
    from app.lm.lstm_trace import LstmTrace

    lstm, own = cast(LoadedLstm, loaded), cast(LstmTrace, trace)
    run = own.run(pos)
    logits = own.logits(pos, pos + 1)[0]
    chosen = int(logits.argmax()) if target is None else target
    for name, index in (("target", chosen), ("foil", foil)):
        if index is not None and not 0 <= index < len(logits):
            raise OutOfRange(f"There is no {name} {index}; ids run from 0 to {len(logits) - 1}.", size=len(logits))
    delivery = delivery_of(own, run)
    parts = logit_parts(own, delivery, chosen, foil)
    logit = logits[chosen] if foil is None else logits[chosen] - logits[foil]
    label = lstm.vocabulary.label
    layers = {layer: parts.per_feature[place] for layer, place in own.layout.layers}
    units = [(layer, unit, float(values[unit])) for layer, values in layers.items() for unit in range(own.n_units)]
    units.sort(key=lambda row: -abs(row[2]))
    embed = 0.0 if own.layout.embed is None else float(parts.per_feature[own.layout.embed].sum())
    answer: dict[str, Any] = {
        "pos": pos,
        "target": {"id": chosen, "label": label(chosen)},
        "foil": None if foil is None else {"id": foil, "label": label(foil)},
        "logit": float(logit),
        "total": float(parts.total),
        "first_source": run.first,
        "sources": parts.per_source.tolist(),
        "start": float(parts.start.sum()),
        "bias": float(parts.bias),
        "by_layer": {"embedding": embed, **{str(layer): float(values.sum()) for layer, values in layers.items()}},
        "units": [{"layer": layer, "unit": unit, "logit": value} for layer, unit, value in units[:UNITS_LISTED]],
        "source": None,
    }
    if source is not None:
        if source not in run.sources:
            raise OutOfRange(
                f"Position {pos} has read positions {run.first} to {pos}; {source} is not one of them.", source=source
            )
        added = promoted(own, delivery)[source - run.first]
        # What every possible character gets alike changes no probability.
        added = added - added.mean()
        order = added.argsort(descending=True).tolist()

        def listed(ids: Sequence[int]) -> list[dict[str, Any]]:
            return [{"id": i, "label": label(i), "value": float(added[i])} for i in ids]

        answer["source"] = {
            "pos": source,
            "norm": float(delivery.sources[source - run.first].norm()),
            "promotes": listed(order[:WORDS_LISTED]),
            "suppresses": listed(order[::-1][:WORDS_LISTED]),
        }
    return answer


def groups_of(lstm: StoredAnalysis, other: StoredAnalysis) -> "Groups":
    """The characters of one analysis in the tokens of the other.

    Raises:
        Unsupported: the two are not of an LSTM and a transformer, or not of the same text.
    """
    from app.analysis.lstm.tokens import group

    if lstm.kind != "lstm" or other.kind != "transformer":
        raise Unsupported("Only an analysis of an LSTM can stand beside one of a transformer, in this order.")
    texts = [
        "".join(str(token["text"]) for token in analysis.tokens if not token["added"]) for analysis in (lstm, other)
    ]
    if texts[0] != texts[1]:
        raise Unsupported("These two analyses are not of the same text, so their tokens have no common axis.")
    return group(_spans(other), _spans(lstm))


def _spans(analysis: StoredAnalysis) -> list[tuple[int, int]]:
    tokens: list[Any] = list(analysis.tokens)
    return [(int(token["start"]), int(token["end"])) for token in tokens]


def grouped_tensor(trace: Trace, groups: "Groups", name: str, fixed: Mapping[str, int]) -> dict[str, Any]:
    """The envelope of an LSTM's tensor along a transformer's tokens. Raises as `from_tokens`."""
    from app.analysis.lstm.tokens import from_tokens

    return envelope(from_tokens(trace, groups, name, fixed))  # type: ignore[arg-type]


def lstm_side(trace: Trace) -> dict[str, object]:
    """The LSTM's numbers for the comparison."""
    from app.analysis.lstm.comparison import lstm_facts

    return lstm_facts(trace)  # type: ignore[arg-type]


def transformer_side(trace: Trace) -> dict[str, object]:
    """The transformer's numbers for the comparison."""
    from app.analysis.lstm.comparison import transformer_facts

    return transformer_facts(trace)  # type: ignore[arg-type]
