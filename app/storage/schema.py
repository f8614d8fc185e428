"""The tables as the newest migration leaves them. A test compares the two."""

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
)

metadata = MetaData()

# A snapshot belongs to the numbers, not to one analysis: equal runs share it.
snapshots = Table(
    "snapshots",
    metadata,
    Column("key", String(128), primary_key=True),
    Column("created_at", DateTime, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# `model` is what was known of the model when the analysis was asked for, so that a link opens without it.
analyses = Table(
    "analyses",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner_hash", String(64), nullable=False),
    Column("created_at", DateTime, nullable=False),
    Column("recipe", JSON, nullable=False),
    Column("tokens", JSON, nullable=False),
    Column("model", JSON, nullable=False),
    Column("state", String(8), nullable=False),
    Column("problem", JSON, nullable=True),
    Column(
        "snapshot_key",
        String(128),
        ForeignKey("snapshots.key", name="fk_analyses_snapshot"),
        nullable=True,
    ),
    Index("ix_analyses_snapshot_key", "snapshot_key"),
)
