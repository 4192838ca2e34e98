"""What the active vocabulary keeps for investigation is listed, for rows that were written by another."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

MARIADB: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}


def upgrade() -> None:
    listed = op.create_table(
        "hidden_tags",
        sa.Column("tag_id", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("tag_id"),
        sqlite_with_rowid=False,
        **MARIADB,
    )
    active = sa.text("SELECT document FROM schema_versions WHERE active_slot = 1")
    for (document,) in op.get_bind().execute(active).fetchall():
        tags = (json.loads(document) if isinstance(document, str) else document)["tags"]
        op.bulk_insert(listed, [{"tag_id": tag["id"]} for tag in tags if tag["group"] == "investigation_only"])
