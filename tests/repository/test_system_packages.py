"""System packages for the tests: installed, named, or a failure on the build machine."""

import pytest

from tools import system_packages
from tools.system_packages import Program, ensure, install, services_kept_off

ABSENT = Program("absent-package", ("/nowhere/*/absent", "no-such-program-anywhere"), "absent tests")
PRESENT = Program("sh-package", ("sh",), "shell tests")


@pytest.fixture
def cannot_install(monkeypatch):
    monkeypatch.setattr(system_packages, "can_install", lambda: False)


def test_programs_are_found_by_file_or_on_the_path(tmp_path):
    (tmp_path / "15").mkdir()
    (tmp_path / "15" / "server").touch()
    assert Program("p", (f"{tmp_path}/*/server",), "").present()
    assert PRESENT.present()
    assert not ABSENT.present()


def test_nothing_missing_says_nothing(capsys):
    assert ensure([PRESENT], {"CI": "true"}) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("cannot_install")
def test_a_missing_one_is_named_and_its_tests_are_skipped(capsys):
    assert ensure([PRESENT, ABSENT], {}) == 0
    said = capsys.readouterr().out
    assert "absent-package is missing: absent tests are skipped." in said
    assert "apt install absent-package" in said


@pytest.mark.usefixtures("cannot_install")
def test_a_missing_one_fails_the_build_machine(capsys):
    assert ensure([ABSENT], {"CI": "true"}) == system_packages.EXIT_MISSING
    assert "apt install absent-package" in capsys.readouterr().err


def test_an_installation_that_brings_nothing_is_a_failure(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(system_packages, "can_install", lambda: True)
    monkeypatch.setattr(system_packages, "install", asked.append)
    monkeypatch.setattr(system_packages, "services_kept_off", lambda: services_kept_off(tmp_path / "policy"))
    assert ensure([PRESENT, ABSENT], {"CI": "true"}) == system_packages.EXIT_MISSING
    assert asked == [["absent-package"]]


@pytest.mark.parametrize(
    ("answers", "steps"),
    [
        ([True], ["install"]),
        ([False, True, True], ["install", "update", "install"]),
        ([False, False], ["install", "update"]),
    ],
)
def test_package_lists_are_fetched_only_when_needed(answers, steps):
    asked, left = [], list(answers)

    def apt(*arguments):
        asked.append(arguments[0])
        return left.pop(0)

    assert install(["one"], apt) is answers[-1]
    assert asked == steps


def test_services_are_kept_off_while_installing(tmp_path):
    policy = tmp_path / "policy-rc.d"
    with services_kept_off(policy):
        assert "exit 101" in policy.read_text()
        assert policy.stat().st_mode & 0o111
    assert not policy.exists()


def test_a_policy_of_the_machine_stays(tmp_path):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("its own")
    with services_kept_off(policy):
        assert policy.read_text() == "its own"
    assert policy.read_text() == "its own"
