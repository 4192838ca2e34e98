import pytest

from camserver.commands.score_words import spent


@pytest.mark.parametrize(
    ("micro", "calls", "shown"),
    [(0, 0, "$0.0000"), (1_500, 3, "$0.0015"), (0, 3, "cost not known")],
    ids=["nothing asked", "priced", "nobody said a price"],
)
def test_what_a_run_has_cost(micro: int, calls: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert spent(micro, calls) == shown
