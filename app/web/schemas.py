"""The shapes of requests and answers, for validation on the way in and for the description at /docs.

Answers are built as plain data and never pass through these models: a response model would turn NaN into null.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

# pydantic's "strict" keeps true and 1.0 from being taken for a token id.
TokenId = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TokenizationRequest(_Request):
    """A text to be split into tokens."""

    model: str | None = Field(None, description="A model of the catalogue; absent: the default.")
    text: str = Field(
        description="The text, taken exactly as it is.",
        examples=["The capital of Germany is"],
    )


class AnalysisRequest(_Request):
    """A prompt to be run: either text or token ids."""

    model: str | None = Field(None, description="A model of the catalogue; absent: the default.")
    text: str | None = Field(None, description="The prompt, taken exactly as it is.", examples=["A B C A B"])
    token_ids: list[TokenId] | None = Field(None, description="Instead of a text: ids of the model's vocabulary.")


class Fixed(_Request):
    """Indices that are fixed; every axis that is not given is left in the answer."""

    layer: int | None = None
    stream: int | None = None
    other_stream: int | None = None
    head: int | None = None
    kv_head: int | None = None
    query_pos: int | None = None
    key_pos: int | None = None
    pos: int | None = None
    component: int | None = None
    row: int | None = None
    col: int | None = None
    unit: int | None = None
    step: int | None = None
    vocab: int | None = None
    k: int | None = None


class TensorAsked(Fixed):
    """Which part of a tensor, and what it is measured on where it is measured on a token."""

    target: int | None = Field(None, description="Token id; only for tensors that are measured on one.")
    foil: int | None = Field(None, description="Token id whose logit is subtracted.")


class ProblemBody(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    facts: dict[str, Any] | None = None
    errors: list[dict[str, str]] | None = None


class TokenBody(BaseModel):
    """One token. `start` and `end` count Unicode characters of the text."""

    index: int
    id: int
    text: str
    label: str
    bytes: str
    start: int
    end: int
    is_special: bool
    continues: bool
    added: bool


class LimitsBody(BaseModel):
    """What a request to a model may hold."""

    max_tokens: int
    max_body_bytes: int


class LedgerRowBody(BaseModel):
    """One claim, checked. An error that is not a number is the text "NaN"."""

    name: str
    claim: str
    worst_abs: float | str
    worst_rel: float | str
    tolerance: float
    where: str
    note: str
    holds: bool


class ModelBody(BaseModel):
    """One model of the catalogue."""

    id: str
    kind: Literal["transformer", "lstm"]
    title: str
    source: str
    state: Literal["ready", "not_loaded", "loading", "missing", "failed"]
    message: str
    dtype: str | None
    device: str | None
    fingerprint: str | None
    anatomy: dict[str, Any] | None
    limits: LimitsBody


class CheckedModelBody(ModelBody):
    """A model with its self-check; empty until it has been loaded."""

    self_check: list[LedgerRowBody]


class ModelsBody(BaseModel):
    """The catalogue."""

    default: str
    models: list[ModelBody]


class TokenizationBody(BaseModel):
    """The tokens of a text; no more of them than the limit, however many there are."""

    model: str
    n_tokens: int
    limit: int
    over_limit: bool
    tokens: list[TokenBody]


class PredictionBody(BaseModel):
    """One possible next token."""

    id: int
    label: str
    probability: float | str
    logit: float | str


class LedgerBody(BaseModel):
    """Every claim that the pictures rest on, and what checking them cost in seconds."""

    holds: bool
    rows: list[LedgerRowBody]
    cost: dict[str, float]


class TensorInfoBody(BaseModel):
    """One tensor that can be asked for. `needs` names the axes that must be fixed; `stored` ones need no model."""

    name: str
    axes: list[str]
    shape: list[int | None]
    unit: str
    about: str
    needs: list[str]
    url: str
    stored: bool


class AnalysisBody(BaseModel):
    """One analysis. What is computed is empty, or null, until it is done."""

    id: str
    state: Literal["queued", "running", "done", "failed"]
    stage: str
    fraction: float
    queue_position: int
    problem: ProblemBody | None
    created_at: str
    model: ModelBody
    text: str
    tokens: list[TokenBody]
    surprisal: list[float | str | None]
    entropy: list[float | str]
    next: list[PredictionBody]
    predictions: list[list[PredictionBody]]
    ledger: LedgerBody | None
    notes: list[str]
    thumbnail_stride: int | None
    tensors: list[TensorInfoBody]


class NewAnalysisBody(AnalysisBody):
    """A new analysis. `owner_token` deletes it and is told this once."""

    owner_token: str


class TypedArrayBody(BaseModel):
    """An array as plotly.js reads it: little-endian numbers in base64, row by row."""

    dtype: Literal["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4"]
    shape: str
    bdata: str


class TensorBody(BaseModel):
    """A tensor with its axes. `mask` is there where cells can be unseen: 1 is seen, 0 is masked."""

    name: str
    axes: list[str]
    unit: str
    about: str
    fixed: dict[str, int]
    data: TypedArrayBody
    mask: TypedArrayBody | None = None
