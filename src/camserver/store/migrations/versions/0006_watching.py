"""Watching: what a worker measured last, and the last fault of one of a camera's two streams."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("workers", sa.Column("metrics", JSON, nullable=True))
    op.add_column("workers", sa.Column("metrics_at", sa.BigInteger(), nullable=True))
    op.add_column("camera_sessions", sa.Column("stream_fault", JSON, nullable=True))
