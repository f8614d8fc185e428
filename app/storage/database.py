"""The database engine and its migrations."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, make_url

MIGRATIONS = Path(__file__).parent / "migrations"
# How long a writer waits for another one before SQLite gives up.
BUSY_TIMEOUT_MS = 15_000


def open_database(url: str) -> Engine:
    """An engine for a SQLAlchemy URL, with the tables of this version.

    For SQLite the folder of the file is made, and the journal is a write-ahead log, so that readers never wait. A
    PostgreSQL URL without a driver is read with psycopg 3.
    """
    parsed = make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if is_sqlite and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, pool_pre_ping=not is_sqlite)
    if is_sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
    migrate(engine)
    return engine


def migrate(engine: Engine) -> None:
    """Brings the tables to this version."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _prepare_sqlite(connection: Any, record: object) -> None:
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
