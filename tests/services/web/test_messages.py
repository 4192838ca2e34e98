"""Whatever is refused is said in the reader's language, and says more than that it was refused.

Read from the sources, so that a new refusal can't be forgotten: what is raised on a request's way has a `reason`, and
each reason has its Japanese.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import camserver
from camserver.base.errors import CamError
from camserver.services.web.messages import _JA_BY_REASON, message_for
from tests.rig.processes import REPOSITORY

ROOT = Path(camserver.__file__).parent
FOLDERS = ("services/web", "store", "domain", "objects")
REFUSALS = {"BadInput", "Conflict", "Forbidden", "NotFound", "Unauthenticated"}
# What no request of a person meets, by module.
ELSEWHERE = {
    "domain/audit_files.py": "a file that a command is given",
    "domain/live_links.py": "tickets between workers and streamers",
    "domain/looks.py": "a setting that was checked before",
    "domain/oidc.py": "settings",
    "domain/sheet_layout.py": "options of a command",
    "objects/keys.py": "keys that are made by the server",
    "objects/local.py": "objects behind rows; who shows them says what is gone",
    "objects/s3.py": "as above",
    "store/audit_seals.py": "sealing, which tries again by itself",
    "store/copying.py": "a command that copies a database",
    "store/opening.py": "as above",
    "store/scoring_runs.py": "a command's own run",
    "store/server_store.py": "what a database says, which is for the log",
    "store/sqlite_writer.py": "as above",
    "store/worker_identities.py": "workers, which are told in English",
    "store/workers.py": "as above",
}
# Their code says all there is to say.
PLAIN = {"services/web/access.py": "nobody is signed in"}


def refusals() -> Iterator[tuple[str, int, str | None]]:
    """Module, line and reason of each; the reason None where none is given."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS):
                continue
            given = {one.arg: one.value for one in node.keywords}
            reason = given.get("reason")
            if reason is None and None not in given:
                yield str(path.relative_to(ROOT)), node.lineno, None
            elif isinstance(reason, ast.Constant):
                yield str(path.relative_to(ROOT)), node.lineno, str(reason.value)


def test_every_refusal_on_a_requests_way_has_words_of_its_own() -> None:
    found = [(module, line, reason) for module, line, reason in refusals() if module not in ELSEWHERE]
    assert found
    assert [one for one in found if one[2] is None and one[0] not in PLAIN] == []
    assert [one for one in found if one[2] is not None and one[2] not in _JA_BY_REASON] == []


def test_the_lists_name_what_is_there() -> None:
    without = {module for module, _, reason in refusals() if reason is None or reason not in _JA_BY_REASON}
    assert without == {*ELSEWHERE, *PLAIN}


def test_a_detail_that_is_missing_leaves_the_sentence() -> None:
    whole = message_for(CamError("no", reason="no_camera", camera_id="cam_1"), "ja")
    assert "cam_1" in whole
    assert "{camera_id}" in message_for(CamError("no", reason="no_camera"), "ja")


def test_one_thing_has_one_word_in_japanese() -> None:
    """A case is 案件 and a site サイト, in the server as on its pages."""
    texts = [*ROOT.rglob("*.py"), *(REPOSITORY / "ui/src").rglob("*.ts"), *(REPOSITORY / "ui/src").rglob("*.tsx")]
    assert len(texts) > 500
    for path in texts:
        found = re.search("事案|(?<!スーツ)ケース|拠点", path.read_text(encoding="utf-8"))
        assert found is None, (path, found)


def test_what_pictures_and_films_share_is_said_of_both() -> None:
    error = CamError("no", reason="bad_range", bytes=5)
    assert "動画" not in message_for(error, "ja")
    assert "5" in message_for(error, "ja")
    # Said to whoever makes a link, and to whoever opens one.
    assert "作れません" not in message_for(CamError("no", reason="case_link"), "ja")


def test_the_japanese_says_what_to_do_next_as_the_english_does() -> None:
    for reason in ("no_event", "no_camera", "no_site", "repeat_secret", "job_not_given_up"):
        assert _JA_BY_REASON[reason].endswith("ください。"), reason
