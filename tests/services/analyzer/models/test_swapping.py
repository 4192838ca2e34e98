"""The model is exchanged while pictures are analyzed: nobody notices but by the answers."""

import asyncio
from pathlib import Path

import pytest

from camserver.base import assets
from camserver.base.errors import ModelUnusable
from camserver.config import Settings
from camserver.services.analyzer.models.installed import Pointer
from tests.rig.clock import ManualClock
from tests.rig.polling import poll_async, until
from tests.services.analyzer.models.made import KEY, PUBLIC, Made, seeing
from tests.services.analyzer.models.running import capabilities, install, model_of, started, use
from tests.services.analyzer.rig import RunningAnalyzer, settings_in

SCORES = {"1.0": 0.9, "2.0": 0.6}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # The clock is moved by seconds while pictures wait; nobody shall lose patience by that.
    return settings_in(tmp_path / "data", workers=2, waiting_max=100, analyze_timeout_sec=300.0)


@pytest.fixture
def versions(settings: Settings, tmp_path: Path) -> dict[str, Pointer]:
    return {
        version: install(settings, Made(version=version, files={"model.onnx": seeing(score)}), tmp_path)
        for version, score in SCORES.items()
    }


async def until_swapped(analyzer: RunningAnalyzer, clock: ManualClock, title: str) -> None:
    async def swapped() -> bool:
        await clock.advance(2_000)
        return await model_of(analyzer) == title

    await poll_async(swapped, f"{title} is in force")


async def until_warned(analyzer: RunningAnalyzer, clock: ManualClock) -> str:
    async def warned() -> str | None:
        await clock.advance(2_000)
        warnings = (await capabilities(analyzer)).get("warnings")
        return None if not warnings else str(warnings[0])

    return await poll_async(warned, "a warning")


async def test_under_load_every_picture_is_seen_by_one_model_and_none_fails(
    settings: Settings, versions: dict[str, Pointer], clock: ManualClock
) -> None:
    use(settings, versions["1.0"])
    async with started(settings, clock) as analyzer:
        answers: list[tuple[str, float]] = []
        stop = asyncio.Event()

        async def ask() -> None:
            while not stop.is_set():
                status, said = await analyzer.analyze()
                assert status == 200, said
                answers.append((said["model_info"]["version"], said["confidence"]))

        asking = [asyncio.create_task(ask()) for _ in range(4)]
        for version in ("2.0", "1.0", "2.0"):
            use(settings, versions[version])
            await until_swapped(analyzer, clock, f"yard {version}")
        seen = len(answers)
        await until(lambda: len(answers) > seen + 8, "pictures after the last exchange")
        stop.set()
        await asyncio.gather(*asking)
    assert {version for version, _ in answers} == {"1.0", "2.0"}
    assert all(confidence == pytest.approx(SCORES[version]) for version, confidence in answers)
    assert answers[-1][0] == "2.0"


async def test_a_model_that_does_not_load_changes_nothing_but_the_warnings(
    settings: Settings, versions: dict[str, Pointer], clock: ManualClock, tmp_path: Path
) -> None:
    use(settings, versions["1.0"])
    broken = install(settings, Made(version="3.0", files={"model.onnx": b"no model"}), tmp_path)
    async with started(settings, clock) as analyzer:
        assert "warnings" not in await capabilities(analyzer)
        use(settings, broken)
        warning = await until_warned(analyzer, clock)
        assert "yard 1.0 stays in use" in warning
        assert (await analyzer.analyze())[1]["model_info"]["version"] == "1.0"
        use(settings, versions["2.0"])
        await until_swapped(analyzer, clock, "yard 2.0")
        assert "warnings" not in await capabilities(analyzer)


@pytest.mark.parametrize("damage", ["changed", "removed", "unsigned", "nonsense"])
async def test_what_is_chosen_is_checked_again_each_time(
    versions: dict[str, Pointer], settings: Settings, clock: ManualClock, tmp_path: Path, damage: str
) -> None:
    if damage == "unsigned":
        settings = settings_in(tmp_path / "data", model_keys=(PUBLIC,))
        versions = versions | {"1.0": install(settings, Made("signed", "1.0", key=KEY), tmp_path)}
    use(settings, versions["1.0"])
    folder = tmp_path / "data" / "models"
    async with started(settings, clock) as analyzer:
        before = await model_of(analyzer)
        if damage == "changed":
            (folder / "yard" / "2.0" / "model.onnx").write_bytes(seeing(0.5))
        if damage == "removed":
            (folder / "yard" / "2.0" / "model.onnx").unlink()
        use(settings, versions["2.0"])
        if damage == "nonsense":
            (folder / "active.json").write_text("nonsense")
        assert "stays in use" in await until_warned(analyzer, clock)
        assert await model_of(analyzer) == before


async def test_at_start_the_shipped_model_stands_in_for_one_that_does_not_load(
    settings: Settings, clock: ManualClock, tmp_path: Path
) -> None:
    use(settings, install(settings, Made(files={"model.onnx": b"no model"}), tmp_path))
    async with started(settings, clock) as analyzer:
        said = await capabilities(analyzer)
        assert said["model"]["name"] == Path(assets.MODEL).stem
        assert "stands in" in said["warnings"][0]


async def test_going_back_to_the_shipped_model(
    settings: Settings, versions: dict[str, Pointer], clock: ManualClock
) -> None:
    use(settings, versions["1.0"])
    async with started(settings, clock) as analyzer:
        use(settings, None)
        await until_swapped(analyzer, clock, "efficientdet-lite1 183afa66aad6")


async def test_onnx_without_any_model_is_refused_with_the_next_step(tmp_path: Path, clock: ManualClock) -> None:
    with pytest.raises(ModelUnusable, match="camserver models install"):
        async with started(settings_in(tmp_path, detector="onnx"), clock):
            pass
