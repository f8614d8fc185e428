"""Analyses: made, looked up, finished, deleted.

Every function is one short transaction and may be called by any thread.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    delete,
    exists,
    insert,
    select,
    text,
    update,
)

from app.domain.recipe import Recipe
from app.errors import NotAllowed, UnknownAnalysis
from app.storage.schema import analyses, snapshots

# 128 random bits, as base64 for URLs.
ID_BYTES = 16
_ID = re.compile(r"[A-Za-z0-9_-]{22}")

StoredState = Literal["queued", "done", "failed"]


@dataclass(frozen=True)
class StoredAnalysis:
    """One analysis. `state` stays "queued" while it runs: what runs now is known to the runner alone."""

    id: str
    created_at: datetime
    recipe: Recipe
    tokens: Sequence[Mapping[str, object]]
    model: Mapping[str, object]
    state: StoredState
    problem: Mapping[str, object] | None

    @property
    def kind(self) -> Literal["transformer", "lstm"]:
        """What kind of model it ran on."""
        return "lstm" if self.model.get("kind") == "lstm" else "transformer"


def snapshot_key(recipe: Recipe) -> str:
    """Equal for analyses whose snapshots are equal: the same numbers, summarised by the same version."""
    return f"{recipe.version}:{recipe.key}"


class Store:
    """All analyses of one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(
        self,
        recipe: Recipe,
        tokens: Sequence[Mapping[str, object]],
        model: Mapping[str, object],
    ) -> tuple[StoredAnalysis, str]:
        """A new analysis, and its owner's token, which is not kept.

        It is done at once where a snapshot of the same numbers is here.
        """
        token = secrets.token_urlsafe(ID_BYTES)
        key = snapshot_key(recipe)
        with self._engine.begin() as connection:
            is_known = connection.scalar(select(exists().where(snapshots.c.key == key)))
            stored = StoredAnalysis(
                secrets.token_urlsafe(ID_BYTES),
                _now(),
                recipe,
                tokens,
                model,
                "done" if is_known else "queued",
                None,
            )
            connection.execute(
                insert(analyses).values(
                    id=stored.id,
                    owner_hash=_hash(token),
                    created_at=stored.created_at.replace(tzinfo=None),
                    recipe=recipe.to_json(),
                    tokens=list(tokens),
                    model=dict(model),
                    state=stored.state,
                    snapshot_key=key if is_known else None,
                )
            )
        return stored, token

    def get(self, analysis_id: str) -> StoredAnalysis:
        """The analysis with this id.

        Raises:
            UnknownAnalysis: the id is malformed, was never given out, or its analysis was deleted.
        """
        require_id(analysis_id)
        with self._engine.connect() as connection:
            row = connection.execute(select(analyses).where(analyses.c.id == analysis_id)).first()
        if row is None:
            raise unknown(analysis_id)
        return _stored(row)

    def snapshot(self, analysis_id: str) -> bytes | None:
        """The stored snapshot of an analysis, or None while there is none."""
        query = (
            select(snapshots.c.body)
            .join(analyses, analyses.c.snapshot_key == snapshots.c.key)
            .where(analyses.c.id == analysis_id)
        )
        with self._engine.connect() as connection:
            body = connection.scalar(query)
        return None if body is None else bytes(body)

    def finish(self, analysis_id: str, recipe: Recipe, body: bytes) -> None:
        """Marks an analysis as done and keeps its snapshot, once for equal ones. A deleted analysis stays deleted."""
        key = snapshot_key(recipe)
        with self._engine.begin() as connection:
            self._keep(connection, key, body)
            done = connection.execute(
                update(analyses)
                .where(analyses.c.id == analysis_id)
                .values(state="done", snapshot_key=key, problem=None)
            )
            if done.rowcount == 0:
                _drop_unused(connection, key)

    def fail(self, analysis_id: str, problem: Mapping[str, object]) -> None:
        """Marks an analysis as failed, with the problem that a reader will see."""
        with self._engine.begin() as connection:
            connection.execute(
                update(analyses).where(analyses.c.id == analysis_id).values(state="failed", problem=dict(problem))
            )

    def check_owner(self, analysis_id: str, token: str) -> StoredAnalysis:
        """The analysis, if the token is its owner's.

        Raises:
            UnknownAnalysis: there is no such analysis. NotAllowed: the token is another one.
        """
        stored = self.get(analysis_id)
        with self._engine.connect() as connection:
            expected = connection.scalar(select(analyses.c.owner_hash).where(analyses.c.id == analysis_id))
        if expected is None or not hmac.compare_digest(expected, _hash(token)):
            raise NotAllowed(
                "Only the owner of an analysis can delete it; send the owner_token that came with it "
                "in the header X-Owner-Token."
            )
        return stored

    def delete(self, analysis_id: str) -> None:
        """Deletes an analysis, and its snapshot where no other one uses it."""
        with self._engine.begin() as connection:
            key = connection.scalar(select(analyses.c.snapshot_key).where(analyses.c.id == analysis_id))
            connection.execute(delete(analyses).where(analyses.c.id == analysis_id))
            if key is not None:
                _drop_unused(connection, key)

    def ping(self) -> None:
        """Does nothing if the database answers; raises what SQLAlchemy raises if not."""
        with self._engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @staticmethod
    def _keep(connection: Connection, key: str, body: bytes) -> None:
        if not connection.scalar(select(exists().where(snapshots.c.key == key))):
            connection.execute(insert(snapshots).values(key=key, created_at=_now().replace(tzinfo=None), body=body))


def require_id(analysis_id: str) -> None:
    """Does nothing for an id that can have been given out.

    Raises:
        UnknownAnalysis: it cannot.
    """
    if not _ID.fullmatch(analysis_id):
        raise UnknownAnalysis(
            "This is not the id of an analysis: ids have 22 letters, digits, '-' and '_'. "
            "Check that the link is complete."
        )


def unknown(analysis_id: str) -> UnknownAnalysis:
    """The error for an id that names nothing."""
    return UnknownAnalysis(
        f"There is no analysis {analysis_id}. It may have been deleted; run the prompt again.",
        id=analysis_id,
    )


def _drop_unused(connection: Connection, key: str) -> None:
    used = exists().where(analyses.c.snapshot_key == key)
    connection.execute(delete(snapshots).where(snapshots.c.key == key, ~used))


def _stored(row: Row[tuple[object, ...]]) -> StoredAnalysis:
    return StoredAnalysis(
        row.id,
        row.created_at.replace(tzinfo=UTC),
        Recipe.from_json(row.recipe),
        row.tokens,
        row.model,
        row.state,
        row.problem,
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
