"""Runs migrations on the connection that store/migrate.py hands in."""

from alembic import context

from camserver.store.tables import metadata

# The version table has one row; MariaDB would warn about a name for its key.
context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table_pk=False
)
with context.begin_transaction():
    context.run_migrations()
