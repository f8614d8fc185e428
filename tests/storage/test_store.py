"""Analyses in SQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, func, inspect, select

from app.domain.recipe import Recipe
from app.errors import NotAllowed, UnknownAnalysis
from app.storage.database import migrate, open_database
from app.storage.schema import metadata, snapshots
from app.storage.store import Store

MODEL = {"id": "m", "kind": "transformer"}


def recipe(*token_ids: int, version: str = "1") -> Recipe:
    return Recipe("m", "f" * 64, token_ids, "text with é, 👍🏽 and \u202e", version)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(open_database(f"sqlite:///{tmp_path / 'a folder' / 'db.sqlite3'}"))
    yield store
    store.close()


def count_snapshots(store: Store) -> int:
    with store._engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(snapshots)) or 0


def test_what_is_created_is_read_back(store: Store) -> None:
    made, _ = store.create(recipe(1, 2), [{"index": 0, "text": "\u202e"}], MODEL)
    assert store.get(made.id) == made
    assert made.state == "queued"
    assert made.recipe.token_ids == (1, 2)
    assert store.snapshot(made.id) is None


def test_ids_and_tokens_are_random_and_long(store: Store) -> None:
    pairs = [store.create(recipe(1), [], MODEL) for _ in range(20)]
    words = {made.id for made, _ in pairs} | {token for _, token in pairs}
    assert len(words) == 40
    assert {len(word) for word in words} == {22}


def test_the_owners_token_is_not_in_the_database(store: Store, tmp_path: Path) -> None:
    _, token = store.create(recipe(1), [], MODEL)
    store.close()
    for file in (tmp_path / "a folder").iterdir():
        assert token.encode() not in file.read_bytes()


def test_only_the_owners_token_passes(store: Store) -> None:
    made, token = store.create(recipe(1), [], MODEL)
    assert store.check_owner(made.id, token).id == made.id
    for wrong in ("", token[:-1], token + "x", "é\udcff"):
        with pytest.raises(NotAllowed):
            store.check_owner(made.id, wrong)


def test_a_finished_analysis_has_its_snapshot(store: Store) -> None:
    made, _ = store.create(recipe(1), [], MODEL)
    store.finish(made.id, made.recipe, b"\x00body")
    assert store.get(made.id).state == "done"
    assert store.snapshot(made.id) == b"\x00body"


def test_equal_runs_share_one_snapshot_until_the_last_is_deleted(store: Store) -> None:
    first, _ = store.create(recipe(1), [], MODEL)
    second, _ = store.create(recipe(1), [], MODEL)
    store.finish(first.id, first.recipe, b"body")
    store.finish(second.id, second.recipe, b"body")
    third, _ = store.create(recipe(1), [], MODEL)
    assert third.state == "done"
    assert count_snapshots(store) == 1
    store.delete(first.id)
    store.delete(second.id)
    assert store.snapshot(third.id) == b"body"
    store.delete(third.id)
    assert count_snapshots(store) == 0


def test_another_version_of_the_program_makes_its_own_snapshot(store: Store) -> None:
    first, _ = store.create(recipe(1, version="1"), [], MODEL)
    store.finish(first.id, first.recipe, b"one")
    second, _ = store.create(recipe(1, version="2"), [], MODEL)
    assert second.state == "queued"
    store.finish(second.id, second.recipe, b"two")
    assert store.snapshot(first.id) == b"one"
    assert store.snapshot(second.id) == b"two"


def test_a_deleted_analysis_is_gone_and_its_late_result_is_not_kept(store: Store) -> None:
    made, _ = store.create(recipe(1), [], MODEL)
    store.delete(made.id)
    store.finish(made.id, made.recipe, b"late")
    store.fail(made.id, {"status": 500})
    with pytest.raises(UnknownAnalysis):
        store.get(made.id)
    assert count_snapshots(store) == 0


def test_a_failed_analysis_keeps_its_problem(store: Store) -> None:
    made, _ = store.create(recipe(1), [], MODEL)
    store.fail(made.id, {"status": 504, "detail": "too long"})
    assert store.get(made.id).state == "failed"
    assert store.get(made.id).problem == {"status": 504, "detail": "too long"}


@pytest.mark.parametrize(
    "analysis_id", ["", "x", "A" * 22, "A" * 21 + "'", "' OR 1=1 --xxxxxxxxxxx", "é" * 22, "\0" * 22]
)
def test_an_id_that_was_never_given_out_is_unknown(store: Store, analysis_id: str) -> None:
    with pytest.raises(UnknownAnalysis):
        store.get(analysis_id)


def test_the_migrations_leave_the_tables_of_the_schema(store: Store) -> None:
    with store._engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrating_again_changes_nothing_and_keeps_what_is_there(store: Store, tmp_path: Path) -> None:
    made, _ = store.create(recipe(1), [], MODEL)
    migrate(store._engine)
    assert store.get(made.id) == made


def test_sqlite_writes_ahead_and_enforces_references(store: Store) -> None:
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_database_without_tables_gets_them(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    migrate(engine)
    assert {"analyses", "snapshots"} <= set(inspect(engine).get_table_names())
    engine.dispose()
