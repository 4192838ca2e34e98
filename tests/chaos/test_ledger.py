import json
from pathlib import Path

from tests.chaos.ledger import Acknowledged, Ledger


def line(seq: int, **changes: object) -> str:
    said = {"event": "look_recorded", "camera_id": "cam", "generation": 2, "seq": seq, "frame_uuid": f"uuid-{seq}"}
    return json.dumps({**said, "standing": "live", **changes}) + "\n"


def test_lines_are_read_once_and_only_when_they_are_whole(tmp_path: Path) -> None:
    log = tmp_path / "worker.stderr"
    log.write_text("no JSON\n" + line(1) + line(2)[:20])
    ledger = Ledger()
    ledger.follow("worker-a", log)
    assert ledger.catch_up() == 1
    with log.open("a") as file:
        file.write(line(2)[20:])
    assert ledger.catch_up() == 2
    assert ledger.catch_up() == 2
    assert ledger.acknowledged[1] == Acknowledged("cam", 2, 2, "uuid-2", "live")


def test_several_workers_are_followed(tmp_path: Path) -> None:
    ledger = Ledger()
    for name, generation in (("a", 3), ("b", 2)):
        log = tmp_path / name
        log.write_text(line(1, generation=generation))
        ledger.follow(name, log)
    assert ledger.catch_up() == 2
    assert ledger.holders == {"cam": (3, "a")}
    assert ledger.held_by("a") == {"cam"}
    assert ledger.held_by("b") == frozenset()


def test_looks_that_were_given_up_are_told(tmp_path: Path) -> None:
    log = tmp_path / "worker.stderr"
    log.write_text('{"event": "look refused for good and set aside", "seq": 4}\n{"event": "look dropped: no room"}\n')
    ledger = Ledger()
    ledger.follow("worker-a", log)
    assert ledger.catch_up() == 0
    assert len(ledger.given_up) == 2


def test_the_worker_still_writes_the_line_that_is_read() -> None:
    source = (Path(__file__).parents[2] / "src/camserver/services/worker/uploads.py").read_text()
    assert '"look_recorded"' in source
    assert '"look refused for good and set aside"' in source
