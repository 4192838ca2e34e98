"""Signing in and out with a real OpenID Connect provider, in Chromium."""

from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import installation
from tests.e2e.ui.browser import play, require_browser
from tests.rig.oidc_program import SECRET, node, provider
from tests.rig.ports import free_port
from tests.rig.processes import Launcher


async def test_somebody_signs_in_and_out_with_the_provider(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    program, port = node(), free_port()
    issuer = f"http://127.0.0.1:{port}"
    oidc: dict[str, object] = {
        "issuer": issuer,
        "client_secret": SECRET,
        "allow_loopback": True,
        "create": True,
    }
    house = installation(launcher, tmp_path / "data", oidc=oidc)
    # Before the server, which asks it at its start, and does not ask again for some seconds when nobody answers.
    async with provider(program, port, f"{house.web_url}/api/oidc/callback"):
        up = await house.ready()
        await play("oidc.spec.ts", {"CAMSERVER_URL": house.web_url, "CAMSERVER_OIDC_ISSUER_URL": issuer})
        assert await up.stop() == Exit.OK
    await launcher.none_left()
