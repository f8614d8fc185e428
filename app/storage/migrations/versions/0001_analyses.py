"""Analyses and their snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the two tables."""
    op.create_table(
        "snapshots",
        sa.Column("key", sa.String(128), primary_key=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "analyses",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("owner_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("recipe", sa.JSON, nullable=False),
        sa.Column("tokens", sa.JSON, nullable=False),
        sa.Column("model", sa.JSON, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("problem", sa.JSON, nullable=True),
        sa.Column(
            "snapshot_key",
            sa.String(128),
            sa.ForeignKey("snapshots.key", name="fk_analyses_snapshot"),
            nullable=True,
        ),
    )
    op.create_index("ix_analyses_snapshot_key", "analyses", ["snapshot_key"])


def downgrade() -> None:
    """Drops them."""
    op.drop_table("analyses")
    op.drop_table("snapshots")
