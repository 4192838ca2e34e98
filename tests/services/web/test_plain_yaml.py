"""YAML is read as others read it, where it is plain; a few lines never stand for more than they may."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from camserver.services.web import plain_yaml
from camserver.services.web.plain_yaml import DEPTH_MAX, WEIGHT_MAX, TooLarge, read

FRIGATE = """
mqtt: {enabled: false}
defaults: &defaults
  detect: {width: 1280, height: 720, fps: 5}
  record: {enabled: yes}
more: &more {detect: {fps: 1}, name: 'x', quoted: "yes"}
cameras:
  front:
    <<: [*defaults, *more]
    ffmpeg:
      inputs:
      - {path: "rtsp://10.0.0.9/1", roles: [detect, record]}
      - path: rtsp://10.0.0.9/2
        roles: []
    motion:
      mask: [0.1,0.2,1]
  back: {<<: *more, name: y, none: ~, empty: }
"""


@pytest.mark.parametrize("in_c", [True, False])
def test_plain_yaml_is_read_as_others_read_it(monkeypatch: pytest.MonkeyPatch, in_c: bool) -> None:
    if not in_c:
        monkeypatch.setattr(plain_yaml, "_LOADER", yaml.SafeLoader)
    assert read(FRIGATE) == yaml.safe_load(FRIGATE)
    assert read("") is None
    assert read("- 1\n- -2.5\n- 1e3\n- a\n") == [1, -2.5, "1e3", "a"]


texts = st.text("abcxyz :-#*&'\"{}[],~!%@\n\\東", max_size=20)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts.filter(lambda key: key != "<<"), inner),
    max_leaves=20,
)


@given(plain)
def test_what_others_write_is_read(value: object) -> None:
    assert read(yaml.safe_dump(value, allow_unicode=True)) == value


@given(st.text("ab:-#*&'\"{}[],~!%@<?|>\n \t\\0", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except (yaml.YAMLError, TooLarge):
        return


@pytest.mark.parametrize(
    "text", ["1:59", "1" + ":59" * 290_000, "1" * 890_000, "0123", "0x1f", "1_000", "2026-01-01"]
)
def test_what_only_some_read_as_a_number_stays_a_text(text: str) -> None:
    assert read(text) == text


def aliases(levels: int, each: int = 9) -> str:
    """Each level names the one before so many times."""
    lines = [f"l0: &l0 [{','.join('x' * each)}]"]
    lines += [f"l{n}: &l{n} [{','.join([f'*l{n - 1}'] * each)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int, each: int = 40) -> str:
    lines = ["l0: &l0 {k1: 1, k2: 2}"]
    lines += [f"l{n}: &l{n} {{<<: [{','.join([f'*l{n - 1}'] * each)}]}}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        aliases(9),
        aliases(60),
        merges(6),
        "a: &a '" + "x" * 200_000 + "'\nb: [" + ",".join(["*a"] * 200_000) + "]",
        "[" * (DEPTH_MAX + 1),
        "[" * 400_000,
        "- " * 400_000,
        "{a: " * 200_000,
        "- a\n" * (WEIGHT_MAX + 1),
    ],
    ids=["aliases", "more aliases", "merges", "texts", "deep", "deeper", "deep lists", "deep mappings", "long"],
)
def test_what_stands_for_too_much_is_refused(text: str) -> None:
    with pytest.raises(TooLarge):
        read(text)


def test_what_stands_for_much_is_read() -> None:
    assert read(aliases(4) + "\nlast: *l3\n") == yaml.safe_load(aliases(4) + "\nlast: *l3\n")
    nested = read("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    for _ in range(DEPTH_MAX - 1):
        assert isinstance(nested, list)
        [nested] = nested


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: *b", "{[1]: 2}", "--- a\n--- b\n", "a: [", "%", "a\n b: c"])
def test_wrong_yaml_says_where(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as told:
        read(text)
    assert told.value.problem_mark is not None
