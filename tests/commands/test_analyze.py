"""`camserver analyze` as people use it: on this machine's model, and on an analyzer elsewhere."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from camserver import cli
from camserver.base import assets
from camserver.base.errors import BadInput
from camserver.base.exits import Exit
from camserver.commands.analyze_files import find_pictures, infer_picture, place_for, read_upright
from tests.fakes.analyzer import FakeAnalyzer, Fault
from tests.rig.footage import asset, cyclist
from tests.rig.pictures import jpeg, png

# What the fake sees in it survives being made smaller.
HUMAN_SCENE = 1


def run(folder: Path, *arguments: str, language: str = "C.UTF-8") -> Result:
    command = ["--data-dir", str(folder / "data"), "analyze", *arguments]
    return CliRunner(env={"LC_ALL": language}).invoke(cli.main, command)


async def run_at(fake: FakeAnalyzer, folder: Path, *arguments: str, language: str = "C.UTF-8") -> Result:
    """While the fake serves on this loop."""
    return await asyncio.to_thread(run, folder, "--url", fake.url, *arguments, language=language)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = tmp_path / "shots"
    folder.mkdir()
    (folder / "b.jpg").write_bytes(jpeg(scene=HUMAN_SCENE, size=(640, 360)))
    (folder / "a.PNG").write_bytes(png(scene=0, size=(640, 360)))
    (folder / "notes.txt").write_text("no picture")
    return folder


def test_the_models_own_eyes_see_a_cyclist(tmp_path: Path) -> None:
    picture = tmp_path / "street.jpg"
    picture.write_bytes(cyclist())
    before = picture.read_bytes()
    result = run(tmp_path, str(picture))
    assert result.exit_code == 0, result.output
    head, row = result.stdout.splitlines()
    assert head.split() == ["PICTURE", "EVENT", "SEVERITY", "SURE", "TAGS", "FOUND"]
    assert "Person detected" in row
    assert "1 person" in row
    with Image.open(tmp_path / "street.boxes.jpg") as drawn, Image.open(io.BytesIO(before)) as kept:
        assert drawn.size == kept.size
    assert picture.read_bytes() == before


def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    picture = tmp_path / "street.jpg"
    picture.write_bytes(jpeg())
    config = tmp_path / "c.toml"
    config.write_text('[analyzer]\nmodel_path = "/nowhere/model.tflite"\n')
    result = CliRunner().invoke(cli.main, ["--config", str(config), "analyze", str(picture)])
    assert (result.exit_code, "/nowhere/model.tflite" in result.output) == (Exit.MODEL_UNUSABLE.value, True)


async def test_an_analyzer_elsewhere_is_asked(analyzer: FakeAnalyzer, shots: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = await run_at(analyzer, tmp_path, str(shots), "--out", str(out), "--put-vocabulary", "--json")
    assert result.exit_code == 0, result.output
    nothing, somebody = json.loads(result.stdout)
    assert (nothing["primary_event"], nothing["boxes"]) == ("none", [])
    assert (somebody["primary_event"], somebody["tags"]) == ("human", ["count.single", "top_color.red"])
    assert names_in(out) == ["a.boxes.jpg", "b.boxes.jpg"]
    assert names_in(shots) == ["a.PNG", "b.jpg", "notes.txt"]


async def test_tags_are_said_in_the_readers_language(analyzer: FakeAnalyzer, shots: Path, tmp_path: Path) -> None:
    asked = (str(shots / "b.jpg"), "--no-pictures", "--put-vocabulary")
    english = await run_at(analyzer, tmp_path, *asked)
    japanese = await run_at(analyzer, tmp_path, *asked, language="ja_JP.UTF-8")
    assert "One person" in english.stdout
    assert ("人を検知" in japanese.stdout, "1名" in japanese.stdout) == (True, True)
    assert names_in(shots) == ["a.PNG", "b.jpg", "notes.txt"]


async def test_a_vocabulary_is_put_only_when_told(analyzer: FakeAnalyzer, shots: Path, tmp_path: Path) -> None:
    result = await run_at(analyzer, tmp_path, str(shots / "b.jpg"))
    assert (result.exit_code, "--put-vocabulary" in result.output) == (Exit.SERVER_AWAY.value, True)
    assert analyzer.schema_version is None


async def test_one_bad_picture_does_not_keep_the_others_from_being_told(
    analyzer: FakeAnalyzer, shots: Path, tmp_path: Path
) -> None:
    (shots / "c.jpg").write_bytes(b"no picture")
    result = await run_at(analyzer, tmp_path, str(shots), "--put-vocabulary", "--no-pictures", "--json")
    assert result.exit_code == Exit.CHECK_FAILED.value
    told: list[dict[str, Any]] = json.loads(result.stdout)
    assert [one.get("primary_event") for one in told] == ["none", "human", None]
    assert "no readable JPEG or PNG" in told[2]["error"]


@pytest.mark.parametrize(
    ("fault", "exit_code"),
    [(Fault.answer_status(503), Exit.SERVER_AWAY), (Fault.malformed(), Exit.CHECK_FAILED)],
    ids=["away", "broken"],
)
async def test_an_analyzer_that_fails_is_named(
    analyzer: FakeAnalyzer, shots: Path, tmp_path: Path, fault: Fault, exit_code: Exit
) -> None:
    analyzer.add_fault(fault)
    result = await run_at(analyzer, tmp_path, str(shots / "b.jpg"), "--put-vocabulary")
    assert result.exit_code == exit_code.value, result.output


def test_an_address_is_one_of_http(tmp_path: Path, shots: Path) -> None:
    result = run(tmp_path, str(shots), "--url", "analyzer:9000")
    assert (result.exit_code, "http://" in result.output) == (Exit.REFUSED.value, True)


def test_pictures_are_found_once_and_never_those_it_drew(shots: Path) -> None:
    (shots / "b.boxes.jpg").write_bytes(b"drawn")
    deep = shots / "deep"
    deep.mkdir()
    (deep / "d.jpeg").write_bytes(jpeg())
    assert find_pictures([str(shots)]) == [shots / "a.PNG", shots / "b.jpg"]
    everything = find_pictures([str(shots / "b.jpg"), str(shots), f"{shots}/**/*"])
    assert everything == [shots / "b.jpg", shots / "a.PNG", deep / "d.jpeg"]
    # Named, it is meant.
    assert find_pictures([str(shots / "b.boxes.jpg")]) == [shots / "b.boxes.jpg"]


@pytest.mark.parametrize(("name", "said"), [("none.jpg", "no file or folder"), ("*.gif", "no picture in"),
                                            ("empty", "no picture in")])  # fmt: skip
def test_what_names_no_picture_is_said(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=said):
        find_pictures([str(tmp_path / name)])


def test_a_picture_that_lies_on_its_side_is_put_upright(tmp_path: Path) -> None:
    path = tmp_path / "phone.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # the top of the scene is at the right
    Image.new("RGB", (400, 300)).save(path, exif=exif)
    with Image.open(io.BytesIO(read_upright(path))) as upright:
        assert upright.size == (300, 400)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "I;16"])
def test_any_png_can_be_read(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "any.png"
    Image.new(mode, (1200, 900)).save(path)
    with Image.open(io.BytesIO(infer_picture(read_upright(path), 640))) as small:
        assert (small.format, small.size) == ("JPEG", (640, 480))


def test_pictures_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    taken: set[Path] = set()
    places = [place_for(Path(folder, "x.jpg"), tmp_path, taken).name for folder in "abc"]
    assert places == ["x.boxes.jpg", "x-2.boxes.jpg", "x-3.boxes.jpg"]


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    picture = tmp_path / "street.jpg"
    picture.write_bytes(cyclist())
    (tmp_path / "file").write_text("")
    result = run(tmp_path, str(picture), "--out", str(tmp_path / "file" / "below"))
    assert (result.exit_code, "--no-pictures" in result.output) == (Exit.REFUSED.value, True)


async def test_what_is_known_of_the_camera_is_told(analyzer: FakeAnalyzer, shots: Path, tmp_path: Path) -> None:
    hints = tmp_path / "hints.json"
    hints.write_text('{"excluded_objects": ["bird"], "preset": "road"}')
    asked = (str(shots / "b.jpg"), "--previous", str(shots / "a.PNG"), "--seconds", "1.5", "--preset", "parking")
    result = await run_at(
        analyzer,
        tmp_path,
        *asked,
        "--hints-file",
        str(hints),
        "--night",
        "--no-pictures",
        "--put-vocabulary",
        "--json",
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["severity"] == 2
    (question,) = analyzer.analyses()
    assert question.hints["expected_objects"] == ["vehicle"]
    assert question.hints["excluded_objects"] == ["bird"]
    assert question.hints["time_band"] == "night"
    assert "prev_captured_at" in question.hints


def test_a_word_that_means_nothing_is_warned_of_and_capitals_do_not_matter(tmp_path: Path) -> None:
    picture, hints = tmp_path / "street.jpg", tmp_path / "hints.json"
    picture.write_bytes(cyclist())
    hints.write_text('{"excluded_objects": ["Person", "bicycle", "persno", "chair"]}')
    result = run(tmp_path, str(picture), "--hints-file", str(hints), "--no-pictures", "--json")
    assert result.exit_code == 0, result.output
    (said,) = json.loads(result.stdout)
    assert said["primary_event"] != "human"
    assert [("persno" in warning, "chair" in warning) for warning in said["warnings"]] == [(True, False)]


@pytest.mark.parametrize(("language", "begins"), [("C.UTF-8", "note: "), ("ja_JP.UTF-8", "注意: ")])
def test_beside_the_table_each_warning_is_told_once(tmp_path: Path, language: str, begins: str) -> None:
    hints = tmp_path / "hints.json"
    for name in ("one.jpg", "two.jpg"):
        (tmp_path / name).write_bytes(cyclist())
    hints.write_text('{"excluded_objects": ["persno"], "expected_objects": ["carr"]}')
    asked = (str(tmp_path / "one.jpg"), str(tmp_path / "two.jpg"), "--hints-file", str(hints), "--no-pictures")
    result = run(tmp_path, *asked, language=language)
    assert result.exit_code == 0, result.output
    told = [line for line in result.stderr.splitlines() if line.startswith(begins)]
    assert [("carr" in line, "persno" in line) for line in told] == [(True, False), (False, True)]
    assert "persno" not in result.stdout


def test_a_picture_before_is_compared(tmp_path: Path) -> None:
    now, before = tmp_path / "now.jpg", tmp_path / "before.jpg"
    before.write_bytes(cyclist())
    with Image.open(before) as street:
        now.write_bytes(jpeg(size=street.size))
    result = run(tmp_path, str(now), "--previous", str(before), "--no-pictures", "--json")
    assert result.exit_code == 0, result.output
    assert "camera.occluded" in json.loads(result.stdout)[0]["tags"]


@pytest.mark.parametrize(
    ("hints", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ('{"thresholds": {"car": 2}}', "thresholds"),
        ('{"preset": "parkin"}', "there is no preset 'parkin'; there are: entrance, corridor"),
        ('{"preset": ["parking"]}', "there is no preset"),
    ],
)
def test_hints_that_are_none_are_said(tmp_path: Path, shots: Path, hints: str, said: str) -> None:
    asset(assets.MODEL)
    file = tmp_path / "hints.json"
    file.write_text(hints)
    result = run(tmp_path, str(shots / "b.jpg"), "--hints-file", str(file), "--no-pictures")
    assert result.exit_code != 0
    assert said in result.output


def test_options_that_need_each_other_say_so(tmp_path: Path, shots: Path) -> None:
    assert "name one" in run(tmp_path, str(shots), "--previous", str(shots / "b.jpg")).output
    assert "--previous" in run(tmp_path, str(shots / "b.jpg"), "--seconds", "1").output
