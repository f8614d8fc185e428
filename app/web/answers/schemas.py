"""The shapes of the lenses' requests and answers: answers are described here and never pass through."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.web.schemas import LedgerRowBody, TypedArrayBody

Number = float | str

TARGET = "Token id whose logit is explained; absent: the model's top prediction at the reader."
FOIL = "Token id whose logit is subtracted; absent: none."


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Aimed(_Parameters):
    """What effects are measured on."""

    target: int | None = Field(None, description=TARGET)
    foil: int | None = Field(None, description=FOIL)


class Cell(Aimed):
    """One cell of one head."""

    layer: int
    head: int
    query: int = Field(description="Position of the reader.")
    key: int = Field(description="Position of the source.")


class WordBody(BaseModel):
    """A token of the vocabulary, with the label to show."""

    id: int
    label: str


class EffectBody(WordBody):
    """A token with its number."""

    value: Number


class AimBody(BaseModel):
    """What effects are measured on."""

    target: WordBody
    foil: WordBody | None
    chosen: str


class ClosingBody(LedgerRowBody):
    """A sum that the answer rests on, checked for this very answer."""


class _Answer(BaseModel):
    closes: list[ClosingBody]
    python: str


class StepBody(BaseModel):
    """One step of the equation, in plain text."""

    step: str
    left: str
    formula: str
    numbers: str
    value: Number | None
    unit: str
    about: str


class EdgeBody(_Answer):
    """One cell of one head. Effects are null where the model normalises the stream itself."""

    layer: int
    head: int
    kv_head: int
    query: int
    key: int
    seen: bool
    aim: AimBody
    score: dict[str, Number | None]
    softmax: dict[str, Any]
    message: dict[str, Number]
    output: dict[str, Number]
    stream: dict[str, Number]
    promotes: list[EffectBody]
    suppresses: list[EffectBody]
    mean_effect: Number | None
    effect: dict[str, Number] | None
    equation: list[StepBody]


class AtPosition(Aimed):
    """The logit of one position."""

    pos: int = Field(description="Position whose prediction is explained.")


class AtHead(AtPosition):
    """One head's part of the logit of one position."""

    layer: int
    head: int


class RowBody(BaseModel):
    """One row of a waterfall, in logits before scale and cap."""

    name: str
    kind: str
    layer: int | None
    head: int | None
    value: Number


class LogitStepBody(BaseModel):
    """What leads from the sum to the model's own number: "sum", "scale", "cap"."""

    name: str
    factor: float
    value: Number
    about: str


class AttributionBody(_Answer):
    """A logit as a waterfall. Rows add up to `sum`; steps lead from there to `logit`."""

    pos: int
    aim: AimBody
    rows: list[RowBody]
    by_layer: list[RowBody]
    by_kind: list[RowBody]
    steps: list[LogitStepBody]
    sum: Number
    logit: Number
    probability: Number


class SourcesBody(_Answer):
    """One head's part of a logit by source; values add up to `value`."""

    pos: int
    layer: int
    head: int
    aim: AimBody
    values: TypedArrayBody
    seen: TypedArrayBody
    value: Number


Listed = Annotated[int, Field(ge=1, le=50, description="Tokens in each list.")]


class LensAsked(Aimed):
    """Either a position, read at every point, or a point, read at every position."""

    pos: int | None = None
    point: int | None = Field(None, description="2l: before layer l; 2l + 1: between its parts; 2 n_layers: the end.")
    k: Listed = 5


class WholeLensAsked(Aimed):
    """The whole lens: at every stream, or at every point. What is wanted first can be named."""

    points: Literal["streams", "all"] = "streams"
    first_pos: int | None = None
    first_point: int | None = None
    k: Listed = 5


class PointBody(BaseModel):
    """A place at which the stream is read."""

    point: int
    stream: int
    where: Literal["before", "between", "final"]
    layer: int | None
    label: str


class PlaceBody(BaseModel):
    """Where one row of the lens stands."""

    point: int
    pos: int


class LensAimBody(BaseModel):
    """What the rows' targets are; null where each row has its own, see target_ids."""

    target: WordBody | None
    foil: WordBody | None
    chosen: Literal["given", "top"]


class LensBody(_Answer):
    """Rows of the logit lens. Entropy and kl in bits; rank 0 is the best."""

    points: list[PointBody]
    rows: list[PlaceBody]
    k: int
    aim: LensAimBody
    labels: dict[str, str]
    top_ids: TypedArrayBody
    top_probability: TypedArrayBody
    top_logit: TypedArrayBody
    entropy: TypedArrayBody
    target_ids: TypedArrayBody
    target_probability: TypedArrayBody
    target_logit: TypedArrayBody
    target_rank: TypedArrayBody
    foil_logit: TypedArrayBody | None
    kl: TypedArrayBody


class HeadsAsked(Aimed):
    """Where effects on a logit are measured."""

    pos: int | None = Field(None, description="Position whose prediction is explained; absent: the last.")


class SummaryBody(BaseModel):
    """One number for each head, [layer, head]; NaN where it is not defined."""

    name: str
    unit: str
    about: str
    values: TypedArrayBody


class BadgeBody(BaseModel):
    """One head that stands out on the probe, with what it rests on."""

    layer: int
    head: int
    badge: str
    summary: str
    score: Number
    percentile: Number
    evidence: str


class ProbeBody(BaseModel):
    """Every head on repeated random tokens. `chance` is the score of even attention."""

    n_tokens: int
    period: int
    seed: int
    about: str
    chance: dict[str, Number]
    summaries: list[SummaryBody]
    badges: list[BadgeBody]


class HeadsBody(BaseModel):
    """Every head summed up, on this prompt and on the probe."""

    pos: int
    aim: AimBody
    summaries: list[SummaryBody]
    probe: ProbeBody
    python: str
