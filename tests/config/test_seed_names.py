"""The seeds' variables: each is understood, and the page lists exactly these."""

import re
from pathlib import Path

import pytest

from camserver.base.errors import BadSettings
from camserver.base.secrets import Secret
from camserver.config import load
from camserver.config.catalogue import all_settings
from camserver.config.reference import SEED_PAGE, with_seed_names
from camserver.config.seed_names import SEED_NAMES, SeedName
from camserver.store.tables import metadata
from tests.config.samples import as_text, sample

ROOT = Path(__file__).parents[2]

# Named in the documents; a name that drops out of the table would break somebody's deployment.
PROMISED = [
    "DATABASE_URL",
    "SPOOL_DIR",
    "IS21_BASE_URL",
    "ANALYZER_URL",
    "SCHEMA_VERSION",
    "MEDIA_HMAC_SECRET",
    "EVENT_CLOSE_GRACE_SEC",
    "EVENT_MERGE_GAP_SEC",
    "TOTAL_STREAM_UNITS",
    "MAX_UI_USERS",
    "RESERVED_BASELINE_UNITS",
    "SUB_STREAM_COST",
    "MAIN_STREAM_COST",
    "MODAL_TTL_SEC",
    "HEARTBEAT_INTERVAL_SEC",
    "HEARTBEAT_GRACE_SEC",
    "TICK_SEC",
    "RTSP_TIMEOUT_SEC",
    "DEFAULT_INFER_WIDTH",
    "DEFAULT_DIFF_WIDTH",
    "FORCE_INFER_EVERY_N",
    "DIFF_RATIO_NO_EVENT",
    "LUMA_DELTA_NO_EVENT",
    "DEFAULT_JOB_PRIORITY",
    "BACKOFF_SEC",
    "NOTIFY_COOLDOWN_SEC",
    "MEDIA_TTL_SEC",
    "WEB_BASE_URL",
    "WORKER_ID",
]


@pytest.mark.parametrize("seed", SEED_NAMES, ids=lambda seed: seed.variable)
def test_each_sets_its_setting(seed: SeedName) -> None:
    setting = all_settings()[seed.setting]
    expected = sample(setting)
    settings = load(None, {seed.variable: as_text(expected)})
    assert getattr(getattr(settings, setting.section), setting.key) == expected
    assert settings.sources[seed.setting] == f"environment {seed.variable}"


@pytest.mark.parametrize("name", PROMISED)
def test_the_names_of_the_documents_are_there(name: str) -> None:
    assert name in {seed.variable for seed in SEED_NAMES}


def test_the_environment_of_the_dispatchers_unit_works_as_it_is() -> None:
    settings = load(
        None,
        {
            "DATABASE_URL": "mysql://camserver:pass@localhost/camserver",
            "SPOOL_DIR": "/var/lib/camserver/spool",
            "IS21_BASE_URL": "http://is21:9000",
            "SCHEMA_VERSION": "2025-12-28.1",
        },
    )
    assert isinstance(settings.store.url, Secret)
    assert settings.store.url.reveal() == "mysql://camserver:pass@localhost/camserver"
    assert settings.worker.spool_dir == Path("/var/lib/camserver/spool")
    assert settings.analyzer.url == "http://is21:9000"
    assert settings.vocabulary.schema_version == "2025-12-28.1"


def test_a_wrong_value_names_the_variable_and_the_setting() -> None:
    with pytest.raises(BadSettings) as error:
        load(None, {"EVENT_MERGE_GAP_SEC": "90s"})
    assert "variable EVENT_MERGE_GAP_SEC (events.merge_gap_sec): expected a whole" in error.value.message
    assert 'got "90s"' in error.value.message


def test_two_names_of_one_setting_may_agree() -> None:
    same = {"IS21_BASE_URL": "http://a:9000", "ANALYZER_URL": "http://a:9000"}
    assert load(None, same).analyzer.url == "http://a:9000"


def test_two_names_of_one_setting_must_not_disagree() -> None:
    with pytest.raises(BadSettings) as error:
        load(None, {"IS21_BASE_URL": "http://a:9000", "ANALYZER_URL": "http://b:9000"})
    assert "ANALYZER_URL" in error.value.message
    assert "IS21_BASE_URL" in error.value.message


def test_an_unknown_drive_name_is_told() -> None:
    [warning] = load(None, {"DRIVE_FOLDER": "x"}).warnings
    assert "DRIVE_FOLDER " in warning
    assert "DRIVE_FOLDER_ID" in warning


def test_the_page_holds_the_table() -> None:
    page = (ROOT / SEED_PAGE).read_text(encoding="utf-8")
    assert page == with_seed_names(page), "run: python -m camserver.config.reference"
    assert all(f"| `{seed.variable}` | `{seed.setting}` |" in page for seed in SEED_NAMES)


def test_what_the_page_says_is_here_is_here() -> None:
    page = (ROOT / SEED_PAGE).read_text(encoding="utf-8")
    for promise in ("not part of this version", "come with scoring", "comes with"):
        assert promise not in page
    ours = {cell for line in page.splitlines() if line.startswith("| ") for cell in line.split(" | ")[1:]}
    named = {name for cell in ours for name in re.findall(r"`([^`]+)`", cell)}
    paths = {name for name in named if re.fullmatch(r"(services|domain|store|wire|config|clients)/[\w./]*", name)}
    assert {"services/streamer", "services/scoring", "domain/leases.py"} <= paths
    assert [one for one in sorted(paths) if not (ROOT / "src/camserver" / one).exists()] == []
    kept = set(re.findall(r"`(\w+)`", page.partition("## Tables")[2].partition("What differs")[0]))
    kept |= {name for name in named if re.fullmatch(r"(scoring|modal|camera)_\w+", name)}
    assert {"modal_leases", "scoring_cache", "camera_leases"} <= kept
    assert kept <= set(metadata.tables)
    sections = {name.partition(".")[0] for name in all_settings()}
    settings = {
        name for name in named if name.partition(".")[0] in sections and re.fullmatch(r"[a-z_]+\.[a-z_]+", name)
    }
    assert "scoring.chunk_retries" in settings
    assert settings <= set(all_settings())
