"""How much a browser loads before it shows anything."""

from bench.ui import BUNDLE_MAX_KB, first_loaded, measure_bundle
from tests.e2e.ui.browser import BUILT, require_browser


def test_what_is_loaded_first_is_small() -> None:
    require_browser()
    assert first_loaded(BUILT), "the page names no script"
    [row] = measure_bundle()
    assert row.ours <= BUNDLE_MAX_KB


def test_the_player_comes_on_demand() -> None:
    require_browser()
    first = {path.name for path in first_loaded(BUILT)}
    with_player = {
        path.name for path in (BUILT.parent / "assets").glob("*.js") if "addSourceBuffer" in path.read_text()
    }
    assert with_player
    assert not first & with_player
