"""The shapes of the lenses' requests and answers: answers are described here and never pass through."""

from typing import Any

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


__all__ = [
    "AimBody",
    "Aimed",
    "Cell",
    "ClosingBody",
    "EdgeBody",
    "EffectBody",
    "StepBody",
    "TypedArrayBody",
    "WordBody",
]
