"""What follows from questions that are not answered, and what they cost."""

import pytest

from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import BILLED, LlmError, LlmErrorKind, Prompt, Usage
from camserver.domain.scoring import PauseReason
from camserver.services.scoring.spending import Spending, Tally
from camserver.services.scoring.tasks import Interrupted
from camserver.services.scoring.troubles import BAD_REQUESTS_MAX, Follows, Troubles, follows

PROMPT = Prompt("system", "text", (), 0.0)


@pytest.mark.parametrize("kind", list(LlmErrorKind))
def test_every_kind_of_error_has_a_consequence(kind: LlmErrorKind) -> None:
    waiting = {LlmErrorKind.RATE_LIMITED, LlmErrorKind.OVERLOADED}
    again = {LlmErrorKind.CONNECTION, LlmErrorKind.SERVER_ERROR, LlmErrorKind.TIMEOUT}
    expected = Follows.WAITING if kind in waiting else Follows.SENDING_AGAIN if kind in again else Follows.NO_ANSWER
    assert follows(kind) is expected


@pytest.mark.parametrize(
    ("kind", "reason"), [(LlmErrorKind.QUOTA, PauseReason.QUOTA), (LlmErrorKind.BAD_KEY, PauseReason.KEY)]
)
def test_what_no_question_survives_pauses_the_run(kind: LlmErrorKind, reason: PauseReason) -> None:
    with pytest.raises(Interrupted) as error:
        Troubles().without(LlmError(kind, "no more"))
    assert (error.value.reason, error.value.message) == (reason, "no more")


def test_requests_that_are_all_refused_are_the_fault_of_the_settings() -> None:
    refused = LlmError(LlmErrorKind.BAD_REQUEST, "no such model")
    troubles = Troubles()
    for _ in range(BAD_REQUESTS_MAX - 1):
        assert troubles.without(refused).is_final
    with pytest.raises(Interrupted) as error:
        troubles.without(refused)
    assert error.value.reason is PauseReason.REQUEST


def test_requests_that_are_refused_after_a_good_answer_are_the_fault_of_their_rows() -> None:
    troubles = Troubles()
    troubles.was_useful()
    for _ in range(2 * BAD_REQUESTS_MAX):
        assert troubles.without(LlmError(LlmErrorKind.BAD_REQUEST, "too long")).wrong == "bad_request: too long"


@pytest.mark.parametrize("kind", [LlmErrorKind.BROKEN_ANSWER, LlmErrorKind.TRUNCATED])
def test_a_broken_answer_may_be_better_the_next_time(kind: LlmErrorKind) -> None:
    assert not Troubles().without(LlmError(kind, "half")).is_final


def test_what_is_billed_is_counted_and_what_is_not_known_costs_nothing() -> None:
    spending, tally = Spending([Price(1.0, 2.0), None], 100), Tally(None)
    usage = Usage(1000, 50)
    assert spending.count(0, usage, tally) == 1100
    assert spending.count(1, usage, tally) == 0
    billed = next(iter(BILLED))
    assert spending.bill(0, LlmError(billed, "", usage=usage), tally) == 1100
    assert spending.bill(0, LlmError(LlmErrorKind.CONNECTION, "", usage=usage), tally) == 0
    assert (tally.tokens_in, tally.tokens_out, tally.cost_micro) == (3000, 150, 2200)
    assert spending.worst_micro(0, PROMPT, None) >= 2 * 100
    assert spending.worst_micro(1, PROMPT, None) == 1
