import numpy as np
import pytest
from PIL import Image, ImageFilter

from camserver.media.change import Gray, Reference, blur_score, measure
from camserver.media.watched import Watch


def flat(shade: int, size: tuple[int, int] = (10, 10)) -> Gray:
    return np.full(size, shade, np.uint8)


def change(now: Gray, before: Gray | None) -> tuple[float, float]:
    measured, reference = measure(now, Reference(before), 20, with_contrast=False)
    assert reference.gray is now
    assert (measured.z_max, measured.learned, reference.scene) == (None, 0, None)
    return measured.diff_ratio, measured.luma_delta


def test_without_picture_before_everything_changed() -> None:
    assert change(flat(7), None) == (1.0, 255.0)


def test_other_size_than_before_counts_as_no_picture_before() -> None:
    assert change(flat(1), flat(1, (10, 20))) == (1.0, 255.0)


@pytest.mark.parametrize(("shade", "changed"), [(120, 0.0), (121, 1.0), (80, 0.0), (79, 1.0), (100, 0.0)])
def test_a_pixel_changed_when_its_luma_did_by_more_than_20(shade: int, changed: float) -> None:
    # Signed: now minus before.
    assert change(flat(shade), flat(100)) == (changed, shade - 100)


def test_ratio_is_the_share_of_changed_pixels() -> None:
    now = flat(100)
    now[0, :7] = 200
    assert change(now, flat(100))[0] == pytest.approx(0.07)


def test_the_extremes_do_not_wrap_around() -> None:
    assert change(flat(255), flat(0)) == (1.0, 255.0)
    assert change(flat(0), flat(255)) == (1.0, -255.0)


def test_each_rule_has_its_own_reference() -> None:
    noisy = np.random.default_rng(1).integers(0, 255, (180, 320)).astype(np.uint8)
    first, reference = measure(noisy, Reference(), 20, with_contrast=True)
    second, _ = measure(noisy, reference, 20, with_contrast=True)
    assert first.z_max is None
    assert (second.diff_ratio, second.luma_delta) == (0.0, 0.0)
    # (0 - 2) / (1 + 0.06), quieter than anything learned; no cell stands out, so the spread is 0.
    assert second.z_max == pytest.approx(-2 / 1.06 / 0.8)


LEFT_HALF = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("watch", "ratio", "delta"),
    [
        (Watch(), 0.25, 25.0),
        (Watch(ignored=(LEFT_HALF,)), 0.0, 0.0),
        (Watch(zones=(LEFT_HALF,)), 0.5, 50.0),
        (Watch(ignored=(LEFT_HALF,), zones=(LEFT_HALF,)), 0.0, 0.0),
    ],
)
def test_only_watched_pixels_count(watch: Watch, ratio: float, delta: float) -> None:
    now = flat(100, (8, 8))
    now[:, :2] = 200
    measured, reference = measure(now, Reference(flat(100, (8, 8)), watch=watch), 20, with_contrast=False)
    assert (measured.diff_ratio, measured.luma_delta) == (ratio, delta)
    assert reference.watch is watch


def test_the_contrast_rule_looks_where_it_is_told_to() -> None:
    random = np.random.default_rng(5)

    def looked(watch: Watch) -> float:
        reference = Reference(watch=watch)
        for _ in range(60):
            gray = np.clip(120 + random.normal(0, 2, (180, 320)), 0, 255).astype(np.uint8)
            _, reference = measure(gray, reference, 20, with_contrast=True)
        gray = gray.copy()
        gray[60:90, 40:60] = 10
        measured, _ = measure(gray, reference, 20, with_contrast=True)
        assert measured.z_max is not None
        return measured.z_max

    assert looked(Watch(ignored=(LEFT_HALF,))) < 4 < looked(Watch(zones=(LEFT_HALF,)))


def test_blur_score_rises_as_a_picture_gets_blurrier() -> None:
    sharp = Image.effect_noise((320, 180), 60)
    scores = [blur_score(np.asarray(sharp.filter(ImageFilter.GaussianBlur(radius)))) for radius in (0, 1, 2, 4, 8)]
    assert scores == sorted(scores)
    assert 0 <= scores[0] < 5
    assert 90 < scores[-1] <= 100


def test_blur_score_of_a_known_laplacian() -> None:
    # Columns 0,0,4,4,... : the second derivative is +4 or -4 at every pixel, so its variance is 16.
    row = np.array([100 + (4 if x % 4 in (2, 3) else 0) for x in range(402)], np.uint8)
    assert blur_score(np.tile(row, (50, 1))) == pytest.approx(100 / (1 + 16 / 100), abs=0.01)


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (1, 64)])
def test_a_picture_without_inner_pixels_is_blurred(size: tuple[int, int]) -> None:
    assert blur_score(flat(1, size)) == 100.0
