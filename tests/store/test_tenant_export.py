"""A tenant's rows for an export: every table, every row once, no secret."""

import pytest
from sqlalchemy import LargeBinary

from camserver.base.errors import BadInput
from camserver.domain.people import Principal, Role
from camserver.store import Store, tenant_export, tenants
from camserver.store.tables import metadata
from camserver.store.tenant_export import EXPORTED, LEFT_OUT, SECRETS, TEXT_KEYS
from tests.store.any_rows import OF_TENANTS, fill

# Words that tell of a secret, and the columns that hold none though they are named so.
_TELLING = ("hash", "token", "secret", "password", "nonce", "cipher", "csrf", "key_id")
_HARMLESS = {
    "frames.infer_hash64_hex",
    "inference_jobs.locked_token",
    "deliveries.locked_token",
    "users.password_changed_at",
    "api_tokens.token_id",
    "api_tokens.token_uuid",
    "llm_reviews.tokens_in",
    "llm_reviews.tokens_out",
    "llm_days.tokens_in",
    "llm_days.tokens_out",
    "scoring_runs.tokens_in",
    "scoring_runs.tokens_out",
    "scoring_runs.writer_token",
    "scoring_chunks.locked_token",
    "scoring_sheets.locked_token",
    "camera_state.gate_state",
    # Seals are there to be shown; the key that they are made with is in no table.
    "audit_seals.hash",
    "audit_seals.previous_hash",
    "audit_seals.key_id",
    "audit_seals.pruned_key_id",
}


def test_every_table_with_a_tenant_is_exported_or_left_out_on_purpose() -> None:
    assert sorted([*EXPORTED, *LEFT_OUT]) == sorted(table.name for table in OF_TENANTS)


def test_every_column_that_may_hold_a_secret_is_left_out() -> None:
    for name in EXPORTED:
        for column in metadata.tables[name].columns:
            may_be = isinstance(column.type, LargeBinary) or any(word in column.name for word in _TELLING)
            if may_be and f"{name}.{column.name}" not in _HARMLESS:
                assert column.name in SECRETS.get(name, ()), f"{name}.{column.name}"


def test_keys_that_hold_text_are_known() -> None:
    for table in EXPORTED.values():
        for key in table.keys.split(", "):
            holds_text = metadata.tables[table.name].columns[key].type.python_type is str
            assert holds_text == (key in TEXT_KEYS), f"{table.name}.{key}"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_goes_on_only_behind_what_one_of_its_table_ended_with(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(tenants.ensure_home, 1)
    principal = Principal(home, None, Role.SYSTEM_ADMIN)
    for table, after in (
        ("sites", []),
        ("sites", ["abc"]),
        ("sites", [True]),
        ("sites", [1, 2]),
        ("sites", [2**63]),
        ("sites", [-(2**63) - 1]),
        ("feature_flags", [1, 2, 3]),
        ("feature_flags", [1, 2, "a\0"]),
        ("feature_flags", [1, 2, "a\ud800"]),
        ("daily_summaries", ["a", "b", "c"]),
    ):
        with pytest.raises(BadInput, match="not what a page gave"):
            await store.read(tenant_export.page, principal, "default", table, after)
    assert (await store.read(tenant_export.page, principal, "default", "feature_flags", [1, 2, "旗 1"])).rows == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_pages_hold_every_row_once_and_name_its_objects(fresh_store: Store) -> None:
    store = fresh_store
    home, acme = await store.write(tenants.ensure_home, 1), await store.write(tenants.ensure, "acme", 1)
    for tenant_id in (acme, acme, home):
        await store.write(fill, tenant_id)
    principal = Principal(home, None, Role.SYSTEM_ADMIN)
    plan = await store.read(tenant_export.plan, principal, "acme")
    await store.write(tenant_export.note, principal, plan.tenant_uuid, "", 1)
    assert set(plan.rows) == set(EXPORTED)
    keys: list[str] = []
    for name, expected in plan.rows.items():
        found, after = [], None
        while True:
            page = await store.read(tenant_export.page, principal, "acme", name, after, 1)
            found += page.rows
            keys += [one.key for one in page.objects]
            if page.end is None:
                break
            after = page.end
        # The entry that it is exported came after it was counted.
        assert len(found) == expected + (name == "audit_log"), name
        assert {row["tenant_id"] for row in found} == {acme}, name
        assert all(SECRETS.get(name, frozenset()).isdisjoint(row) for row in found), name
    assert len(set(keys)) == len(keys) == 10
