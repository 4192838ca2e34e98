"""Set-up: the first admin, made through a one-time link."""

from camserver.base.errors import Conflict, Forbidden
from camserver.domain.people import SETUP_LINK_TTL_MS, Permission, check_password, login_of
from camserver.services.web import setup_link
from camserver.services.web.access import Gate, token_hash
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import setup_links, users
from camserver.store.setup_links import Standing
from camserver.wire import api

routes = Routes()

_REFUSALS = {
    Standing.UNKNOWN: "the set-up link is not right; copy the whole link and open it again",
    Standing.USED: "the set-up link was used already; make a new one with `camserver setup-link`",
    Standing.EXPIRED: "the set-up link is older than one hour; make a new one with `camserver setup-link`",
}


@routes.post("/api/setup", Gate.PUBLIC, status_code=201)
async def set_up(call: TheCall, asked: api.SetUp) -> api.SetUpDone:
    """Makes the admin account. The link's token works once."""
    web = call.web
    used_token = token_hash(asked.token)
    # Asked before the password is hashed, so that a made-up token costs next to nothing.
    _refuse_unless_works(await web.store.read(setup_links.standing, used_token, call.now_ms))
    login = login_of(asked.login)
    check_password(asked.password, login)
    admin = users.NewUser(
        login=login,
        display_name=asked.display_name.strip() or login,
        language=asked.language or call.language,
        password_hash=await web.passwords.hash(asked.password),
    )
    _refuse_unless_works(await web.store.write(setup_links.use, used_token, admin, call.address, call.now_ms))
    setup_link.remove_file(web.settings.server.data_dir)
    return api.SetUpDone(login=login)


def _refuse_unless_works(standing: Standing) -> None:
    if standing is Standing.WORKS:
        return
    if standing is Standing.ADMIN_EXISTS:
        raise Conflict("set-up is done already; sign in", reason="setup_admin_exists")
    raise Forbidden(_REFUSALS[standing], reason=f"setup_{standing.value}")


@routes.post("/api/setup/link", Permission.MANAGE_SYSTEM, status_code=201)
async def new_link(call: TheCall) -> api.SetUpLink:
    """A new set-up link, while there is no admin. Those before it stop working."""
    link = await setup_link.make_link(
        call.web.store, call.web.public_url, call.now_ms, alone=True, by=call.principal, address=call.address
    )
    if link is None:
        raise Conflict("there is an admin already; sign in as that one", reason="setup_admin_exists")
    setup_link.remove_file(call.web.settings.server.data_dir)
    return api.SetUpLink(url=link.reveal(), expires_at=call.now_ms + SETUP_LINK_TTL_MS)
