"""Workers at other sites: one-time tokens and certificates."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "worker_enrolments",
        sa.Column("enrolment_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.String(length=64), nullable=True),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["site_id"], ["sites.site_id"], name=op.f("fk_worker_enrolments_site_id")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_worker_enrolments_tenant_id")),
        sa.PrimaryKeyConstraint("enrolment_id"),
        sa.UniqueConstraint("token_hash", name=op.f("uq_worker_enrolments_token_hash")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_worker_enrolments_tenant_id", "worker_enrolments", ["tenant_id"], unique=False)
    op.create_table(
        "worker_certificates",
        sa.Column("certificate_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.String(length=64), nullable=False),
        sa.Column("serial", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("renewed_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["site_id"], ["sites.site_id"], name=op.f("fk_worker_certificates_site_id")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_worker_certificates_tenant_id")),
        sa.PrimaryKeyConstraint("certificate_id"),
        sa.UniqueConstraint("serial", name=op.f("uq_worker_certificates_serial")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index(
        "ix_worker_certificates_tenant_id_worker_id", "worker_certificates", ["tenant_id", "worker_id"], unique=False
    )
    op.create_index("ix_worker_certificates_revoked_at", "worker_certificates", ["revoked_at"], unique=False)
