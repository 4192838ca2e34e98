"""A camera's sound can be left out of live view."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("camera_overrides", sa.Column("live_sound", sa.SmallInteger(), nullable=True))
