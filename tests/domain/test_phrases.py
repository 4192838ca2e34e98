from camserver.domain.phrases import PRIMARY_EVENTS, Phrase, primary_event_phrase
from tests.domain.build import shipped_vocabulary


def test_every_primary_event_that_ships_has_its_words() -> None:
    assert set(PRIMARY_EVENTS) == set(shipped_vocabulary().primary_events)


def test_a_foreign_event_is_shown_by_its_name() -> None:
    assert primary_event_phrase("drone") == Phrase("drone", "drone")
