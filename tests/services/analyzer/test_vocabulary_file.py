import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from camserver.base.errors import BadInput, Unavailable
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.services.analyzer.vocabulary_file import Held, VocabularyFile, VocabularyMismatch
from tests.rig.processes import REPOSITORY
from tests.services.analyzer.rig import DOCUMENT

HELD = Held(SHIPPED_VERSION, DOCUMENT, "2026-01-01T00:00:00.000+00:00")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "analyzer" / "vocabulary.json"


def test_what_was_put_is_there_again(path: Path) -> None:
    VocabularyFile(path).put(HELD)
    again = VocabularyFile(path)
    again.load()
    assert again.held == HELD
    assert again.expect(SHIPPED_VERSION).version == SHIPPED_VERSION
    assert [file.name for file in path.parent.iterdir()] == ["vocabulary.json"]


def test_before_the_first_there_is_none(path: Path) -> None:
    empty = VocabularyFile(path)
    empty.load()
    assert empty.held is None
    with pytest.raises(VocabularyMismatch, match="none was put"):
        empty.expect(SHIPPED_VERSION)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema_version": "x"}', '"text"', "\0" * 100])
def test_a_file_that_is_not_whole_counts_as_none(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    damaged = VocabularyFile(path)
    damaged.load()
    assert damaged.held is None
    damaged.put(HELD)
    assert damaged.held == HELD


def test_a_vocabulary_that_is_none_changes_nothing(path: Path) -> None:
    file = VocabularyFile(path)
    file.put(HELD)
    with pytest.raises(BadInput):
        file.put(Held("x", {"schema_version": "x"}, "now"))
    assert file.held == HELD


def test_what_can_not_be_kept_is_not_in_force(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")
    file = VocabularyFile(path)
    with pytest.raises(Unavailable, match=r"server\.data_dir"):
        file.put(HELD)
    assert file.held is None


def test_several_analyzers_may_put_it_at_the_same_time(path: Path) -> None:
    """On one data folder: what is there is always one of those that were put, and nothing is left over."""
    versions = [f"v{number}" for number in range(8)]
    helds = [Held(version, {**DOCUMENT, "schema_version": version}, "now") for version in versions]
    with ThreadPoolExecutor(len(helds)) as threads:
        list(threads.map(lambda held: [VocabularyFile(path).put(held) for _ in range(5)], helds))
    file = VocabularyFile(path)
    file.load()
    assert file.held in helds
    assert [one.name for one in path.parent.iterdir()] == ["vocabulary.json"]


KILLS = 3
PUT_AND_SAY = """
import sys
from pathlib import Path
from camserver.services.analyzer.vocabulary_file import Held, VocabularyFile
from tests.services.analyzer.rig import DOCUMENT

file = VocabularyFile(Path(sys.argv[1]))
while True:
    for version in ("odd", "even"):
        file.put(Held(version, {**DOCUMENT, "schema_version": version}, "2026-01-01T00:00:00.000+00:00"))
        print(version, flush=True)
"""


def test_kill_9_while_it_is_put_leaves_the_one_before_or_the_new_one(path: Path) -> None:
    for kill in range(KILLS):
        putting = subprocess.Popen(
            [sys.executable, "-c", PUT_AND_SAY, str(path)], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
        )
        assert putting.stdout is not None
        said = [putting.stdout.readline().strip() for _ in range(3 + kill)]
        putting.kill()
        said += putting.stdout.read().split()
        putting.stdout.close()
        putting.wait()
        file = VocabularyFile(path)
        file.load()
        assert file.held is not None
        # What was said to be in force is, or the one that was being put meanwhile.
        following = {"odd": "even", "even": "odd"}[said[-1]]
        assert file.held.schema_version in (said[-1], following)
        assert file.held.schema == {**DOCUMENT, "schema_version": file.held.schema_version}
