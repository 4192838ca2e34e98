from camserver.domain.people import Role
from camserver.store import Store, users
from tests.store.people_rows import NOW_MS, add_user, disable_user, prepare


async def test_an_account_is_found_by_its_login(store: Store) -> None:
    home = await prepare(store)
    user_id = await store.write(add_user, home.tenant_id, "owner", Role.VIEWER.value, "hashed", NOW_MS)

    assert await store.read(users.find_account, "owner") == users.Account(user_id, home.tenant_id, "hashed")
    assert await store.read(users.find_account, "OWNER") is None
    await store.write(disable_user, "owner")
    account = await store.read(users.find_account, "owner")
    assert account is not None
    assert account.disabled


async def test_only_a_system_admin_counts_as_the_admin(store: Store) -> None:
    home = await prepare(store)
    await store.write(add_user, home.tenant_id, "viewer", Role.VIEWER.value, None, NOW_MS)
    assert not await store.read(users.admin_exists)

    await store.write(add_user, home.tenant_id, "admin", Role.SYSTEM_ADMIN.value, None, NOW_MS)
    assert await store.read(users.admin_exists)


async def test_a_hash_is_replaced_only_while_it_is_the_old_one(store: Store) -> None:
    home = await prepare(store)
    user_id = await store.write(add_user, home.tenant_id, "owner", Role.VIEWER.value, "old", NOW_MS)
    assert not await store.write(users.replace_hash, user_id, "something else", "stolen")
    assert await store.write(users.replace_hash, user_id, "old", "new")

    account = await store.read(users.find_account, "owner")
    assert account is not None
    assert account.password_hash == "new"
    assert "new" not in repr(account)
