"""Addresses of databases: what is understood, and that no password is ever shown."""

import pickle
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.base.secrets import MASK, Secret, scrub
from camserver.config.database_url import DatabaseUrl

# Characters that occur nowhere else in an address or in a message.
MARKED = st.text(alphabet="ÄÖÜßΩΨ☃漢字", min_size=4, max_size=12)
# What people forget to encode.
LOOSE = st.text(alphabet="ÄÖ/?#@:%&=[] ", max_size=8)


@pytest.mark.parametrize(
    ("text", "revealed", "dialect"),
    [
        ("postgresql://u:secret@h:5433/db", "postgresql://u:secret@h:5433/db", "postgresql"),
        ("postgres://u:secret@h/db", "postgresql://u:secret@h/db", "postgresql"),
        ("mysql://camserver:pass@localhost/camserver", "mysql://camserver:pass@localhost/camserver", "mysql"),
        ("MariaDB://u@h/db", "mysql://u@h/db", "mysql"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql", "postgresql"),
        ("sqlite:////var/lib/camserver/c.db", "sqlite:////var/lib/camserver/c.db", "sqlite"),
    ],
)
def test_the_usual_forms_are_understood(text: str, revealed: str, dialect: str) -> None:
    url = DatabaseUrl.parse(text)
    assert url.reveal() == revealed
    assert url.dialect == dialect


def test_a_relative_sqlite_path_starts_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = DatabaseUrl.parse("sqlite:///data/c.db")
    assert url.path == tmp_path / "data/c.db"
    assert DatabaseUrl.parse(url.reveal()) == url


def test_a_sqlite_path_with_odd_characters_survives_its_own_text(tmp_path: Path) -> None:
    url = DatabaseUrl.for_file(tmp_path / "100% new?.db")
    assert DatabaseUrl.parse(url.reveal()).path == tmp_path / "100% new?.db"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with none of"),
        ("oracle://u:p@h/db", "begins with none of"),
        ("/var/lib/camserver.db", "begins with none of"),
        ("postgresql+asyncpg://u:p@h/db", "without the part after the +"),
        ("postgresql://u:p@h", "names no database"),
        ("postgresql://u:p@h/a/b", "names no database"),
        ("postgresql:///db", "names no host"),
        ("postgresql://u:p@h:port/db", "can't be split"),
        ("postgresql://u:pa/ss@h/db", "can't be split"),
        ("postgresql://u:12/ss@h/db", "can't be split"),
        ("postgresql://u:12#ss@h/db", "can't be split"),
        ("postgresql://u:12?ss@h/db", "can't be split"),
        ("postgresql://u:a@b@h/db", "can't be split"),
        ("postgresql://u:p\n@h/db", "control character"),
        ("sqlite://c.db", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:////tmp/", "names no file"),
    ],
)
def test_other_forms_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        DatabaseUrl.parse(text)
    assert why in refused.value.message


def test_the_mask_leaves_what_helps_to_find_the_database() -> None:
    url = DatabaseUrl.parse("mysql://cam:geheim%40x@db.example:3307/cams?ssl_key=/etc/key")
    assert str(url) == f"mysql://cam:{MASK}@db.example:3307/cams?ssl_key={MASK}"
    assert str(DatabaseUrl.parse("mysql://cam@[::1]:3307/cams")) == "mysql://cam@[::1]:3307/cams"


def test_a_plain_file_is_not_hidden_from_logs() -> None:
    url = DatabaseUrl.for_file(Path("/srv/open-to-see.db"))
    assert not url.holds_password
    assert scrub(f"opening {url}") == f"opening {url}"


@given(MARKED)
def test_a_password_is_shown_by_nothing(password: str) -> None:
    encoded = quote(password)
    for text in (
        f"postgresql://u:{encoded}@h/db",
        f"mysql://u:{password}@h/db",
        f"postgresql://u@h/db?password={encoded}",
    ):
        url = DatabaseUrl.parse(text)
        assert isinstance(url, Secret)
        assert url.holds_password
        for shown in (str(url), repr(url), f"{url}", f"{url:>200}", repr([url]), "%s" % url):  # noqa: UP031
            assert password not in shown
            assert encoded not in shown
        assert password not in scrub(f"could not log in with {password}")
        assert encoded not in scrub(f"could not connect to {text}")


@given(MARKED, LOOSE, LOOSE)
def test_whatever_is_typed_no_message_and_no_text_shows_the_password(mark: str, before: str, after: str) -> None:
    password = before + mark + after
    try:
        shown = str(DatabaseUrl.parse(f"postgresql://u:{password}@h/db"))
    except BadInput as refused:
        shown = f"{refused} {refused.details} {refused.__cause__}"
    assert mark not in shown


def test_it_is_never_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(DatabaseUrl.parse("mysql://u:p@h/db"))
