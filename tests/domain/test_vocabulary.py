import copy
from collections.abc import Callable
from typing import Any

import pytest

from camserver.base.errors import BadInput
from camserver.domain.vocabulary import (
    INVESTIGATION_ONLY,
    MAX_TAGS,
    NOTIFY_SAFE,
    SHIPPED_VERSION,
    is_hazard,
    parse_vocabulary,
)

from .build import shipped_document, shipped_vocabulary

# The contract's own table: tag, severity, whether the hint is quarantine.
CONTRACT_NOTIFY_SAFE = """
count.single 0, count.multiple 1, top_color.red 0, top_color.blue 0, top_color.black 0, top_color.white 0,
top_color.gray 0, top_color.other 0, carry.backpack 1, carry.bag 1, carry.umbrella 0, appearance.hat_like 0,
appearance.helmet_like 1, appearance.mask_like 1, behavior.loitering 2Q, behavior.running 1, camera.blur 1,
camera.dark 1, camera.glare 1, camera.occluded 2Q, camera.moved 2Q, camera.offline 3Q, hazard.smoke_like 3Q,
hazard.flame_like 3Q, hazard.water_present 3Q, hazard.water_level_high 3Q, hazard.fallen_tree_like 2Q,
animal.dog 1, animal.cat 1, animal.unknown 1, animal.deer 2Q, animal.boar 2Q, animal.bird 0,
object_missing.suspected 2Q, reason.unknown_activity 2Q
"""
CONTRACT_INVESTIGATION_ONLY = """
appearance.face_visible outfit.suit_like outfit.kimono_like outerwear.down_like top.tshirt_like
bottom.pants_like bottom.skirt_like bottom.dress_like footwear.heels_like body.size.small body.size.medium
body.size.large body.build.muscular_like reason.diff_small reason.low_confidence
"""


def test_the_shipped_vocabulary_holds_exactly_the_tags_of_the_contract() -> None:
    wanted = {}
    for entry in CONTRACT_NOTIFY_SAFE.replace("\n", " ").split(","):
        tag_id, severity = entry.split()
        hint = "quarantine" if severity.endswith("Q") else "normal"
        wanted[tag_id] = (NOTIFY_SAFE, int(severity[0]), True, hint)
    for tag_id in CONTRACT_INVESTIGATION_ONLY.split():
        wanted[tag_id] = (INVESTIGATION_ONLY, 0, False, "normal")
    found = {
        tag.id: (tag.group, tag.severity_default, tag.notify_allowed, tag.retention_hint)
        for tag in shipped_vocabulary().tags
    }
    assert found == wanted


def test_the_shipped_document_has_the_keys_and_primary_events_of_the_contract() -> None:
    document = shipped_document()
    assert list(document) == [
        "schema_version",
        "generated_at",
        "owner",
        "consumer",
        "primary_events",
        "tag_groups",
        "tags",
        "guidance",
    ]
    vocabulary = parse_vocabulary(document)
    assert vocabulary.version == SHIPPED_VERSION
    assert vocabulary.primary_events == (
        "none",
        "human",
        "animal",
        "vehicle",
        "hazard",
        "camera_issue",
        "object_missing",
        "unknown",
    )


def test_every_shipped_tag_has_its_own_label_in_both_languages() -> None:
    tags = shipped_vocabulary().tags
    assert all(any(ord(char) > 0x2FFF or char == "1" for char in tag.label_ja) for tag in tags)
    assert all(tag.label_en.isascii() and tag.label_en != tag.id for tag in tags)
    assert len({tag.label_ja for tag in tags}) == len({tag.label_en for tag in tags}) == len(tags)


def test_lookups_answer_for_known_and_unknown_tags() -> None:
    vocabulary = shipped_vocabulary()
    assert vocabulary.group_of("camera.offline") == NOTIFY_SAFE
    assert vocabulary.group_of("outfit.suit_like") == INVESTIGATION_ONLY
    assert vocabulary.notify_allowed("camera.offline")
    assert not vocabulary.notify_allowed("outfit.suit_like")
    assert vocabulary.has("animal.deer")
    # A tag nobody described is never shown in a notification.
    assert not vocabulary.has("secret.thing")
    assert vocabulary.group_of("secret.thing") == INVESTIGATION_ONLY
    assert not vocabulary.notify_allowed("secret.thing")


def test_hazards_are_a_family_of_tags() -> None:
    assert is_hazard("hazard.smoke_like")
    assert not is_hazard("camera.offline")
    assert not is_hazard("hazardous.thing")


def test_english_label_is_optional_and_falls_back_to_the_id() -> None:
    document = shipped_document()
    del document["tags"][0]["label_en"]
    assert parse_vocabulary(document).tags[0].label_en == document["tags"][0]["id"]


@pytest.mark.parametrize(
    "groups",
    [
        [NOTIFY_SAFE, INVESTIGATION_ONLY],
        {NOTIFY_SAFE: {}, INVESTIGATION_ONLY: {"label_ja": "調査専用"}},
    ],
)
def test_groups_may_be_names_or_an_object(groups: object) -> None:
    document = {**shipped_document(), "tag_groups": groups}
    assert parse_vocabulary(document) == shipped_vocabulary()


def _set(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.__setitem__(key, value)


def _set_tag(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["tags"][0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_set("schema_version", ""), "schema_version"),
        (_set("schema_version", "a b"), "schema_version"),
        (_set("schema_version", None), "schema_version"),
        (_set("primary_events", "human"), "primary_events"),
        (_set("primary_events", ["none", "human"]), "'unknown'"),
        (_set("primary_events", ["human", "unknown"]), "'none'"),
        (_set("primary_events", ["none", "unknown", "none"]), "twice"),
        (_set("primary_events", ["none", "unknown", "Human!"]), "Human!"),
        (_set("tag_groups", None), "tag_groups"),
        (_set("tag_groups", [NOTIFY_SAFE]), "tag_groups"),
        (_set("tag_groups", [NOTIFY_SAFE, INVESTIGATION_ONLY, "more"]), "tag_groups"),
        (_set("tags", []), "tags"),
        (_set("tags", ["camera.dark"]), "tags[0]"),
        (_set("tags", [{}] * (MAX_TAGS + 1)), str(MAX_TAGS)),
        (lambda document: document["tags"].append(copy.deepcopy(document["tags"][0])), "count.single"),
        (_set_tag("id", "nofamily"), "nofamily"),
        (_set_tag("id", "a." + "b" * 63), "tags[0]"),
        (_set_tag("group", "other"), "'other'"),
        (_set_tag("label_ja", " "), "label_ja"),
        (_set_tag("label_en", 3), "label_en"),
        (_set_tag("severity_default", 4), "severity_default"),
        (_set_tag("severity_default", True), "severity_default"),
        (_set_tag("notify_allowed", 1), "notify_allowed"),
        (_set_tag("group", INVESTIGATION_ONLY), "notify_allowed"),
        (_set_tag("retention_hint", "case"), "retention_hint"),
        (_set_tag("description_ja", "長" * 501), "description_ja"),
    ],
)
def test_a_broken_document_is_refused_by_name(spoil: Callable[[dict[str, Any]], None], says: str) -> None:
    document = shipped_document()
    spoil(document)
    with pytest.raises(BadInput) as refusal:
        parse_vocabulary(document)
    assert says in refusal.value.message


def test_a_newer_document_with_more_keys_is_understood() -> None:
    document = {**shipped_document(), "extra": {"a": 1}}
    document["tags"][0]["icon"] = "person"
    assert parse_vocabulary(document) == shipped_vocabulary()
