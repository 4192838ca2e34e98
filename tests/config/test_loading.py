"""Reading settings: every key from every place, which place wins, and what is refused."""

from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput, BadSettings
from camserver.base.exits import Exit, exit_of
from camserver.config import Settings, load
from camserver.config.catalogue import all_settings
from camserver.config.database_url import DatabaseUrl
from camserver.config.values import Setting, from_toml
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from tests.config.samples import ALL, as_text, as_toml, default_of, sample

NAMES = [setting.name for setting in ALL]


def value_of(settings: Settings, name: str) -> object:
    section, _, key = name.partition(".")
    return getattr(getattr(settings, section), key)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """Where a test writes its configuration file; private, because it may hold secrets."""
    path = tmp_path / "camserver.toml"
    path.touch(mode=0o600)
    return path


def refused(path: Path | None, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(BadSettings) as error:
        load(path, environ or {})
    assert exit_of(error.value) is Exit.BAD_SETTINGS
    problems = error.value.details["problems"]
    assert isinstance(problems, list)
    assert all(problem in error.value.message for problem in problems)
    return problems


class TestEveryKey:
    @pytest.mark.parametrize("setting", ALL, ids=NAMES)
    def test_is_read_from_the_file(self, setting: Setting, toml: Path) -> None:
        expected = sample(setting)
        toml.write_text(f"[{setting.section}]\n{setting.key} = {as_toml(expected)}\n")
        settings = load(toml, {})
        assert value_of(settings, setting.name) == expected
        assert type(value_of(settings, setting.name)) is type(expected)
        assert settings.sources[setting.name] == f"file {toml}"

    @pytest.mark.parametrize("setting", ALL, ids=NAMES)
    def test_is_read_from_its_variable(self, setting: Setting) -> None:
        expected = sample(setting)
        settings = load(None, {setting.variable: as_text(expected)})
        assert value_of(settings, setting.name) == expected
        assert settings.sources[setting.name] == f"environment {setting.variable}"

    @pytest.mark.parametrize("setting", ALL, ids=NAMES)
    def test_has_a_default_and_an_empty_variable_leaves_it(self, setting: Setting) -> None:
        settings = load(None, {} if setting.empty_refused else {setting.variable: "  "})
        assert settings.sources[setting.name] == "default"
        if setting.derive is None and setting.type is not Path:
            assert value_of(settings, setting.name) == default_of(setting)
        assert setting.optional or value_of(settings, setting.name) is not None

    @pytest.mark.parametrize("setting", ALL, ids=NAMES)
    def test_refuses_a_table_in_its_place(self, setting: Setting, toml: Path) -> None:
        toml.write_text(f"[{setting.section}.{setting.key}]\nx = 1\n")
        [problem] = refused(toml)
        assert setting.name in problem
        assert "expected" in problem

    @pytest.mark.parametrize("setting", ALL, ids=NAMES)
    def test_is_documented(self, setting: Setting) -> None:
        assert setting.doc.endswith((".", "!", "?"))

    def test_has_a_variable_of_its_own(self) -> None:
        assert len({setting.variable for setting in ALL}) == len(ALL)

    @pytest.mark.parametrize(
        "setting", [s for s in ALL if s.minimum is not None or s.maximum is not None], ids=lambda s: s.name
    )
    def test_refuses_what_is_out_of_bounds(self, setting: Setting, toml: Path) -> None:
        bounds = [(setting.minimum, -1), (setting.maximum, 1)]
        for bound, step in ((bound, step) for bound, step in bounds if bound is not None):
            outside = setting.type(bound) + step
            toml.write_text(f"[{setting.section}]\n{setting.key} = {outside}\n")
            [problem] = refused(toml)
            assert problem.startswith(f"{toml}, line 2, {setting.name}: expected")
            assert str(outside) in problem
            assert str(bound) in problem


class TestEmptyAddressOfTheModel:
    """Questions and the key would go to the provider where somebody meant a server of their own."""

    @pytest.mark.parametrize("text", ["", "  "])
    def test_is_refused_in_the_file(self, toml: Path, text: str) -> None:
        toml.write_text(f"[llm]\nprovider = 'openai'\nbase_url = '{text}'\n")
        [problem] = refused(toml)
        assert problem.startswith(f"{toml}, line 3, llm.base_url: is empty; ")
        assert "remove the setting to ask the provider" in problem

    @pytest.mark.parametrize("text", ["", "  "])
    def test_is_refused_in_the_environment(self, text: str) -> None:
        [problem] = refused(None, {"CAMSERVER_LLM_BASE_URL": text})
        assert problem.startswith("environment variable CAMSERVER_LLM_BASE_URL (llm.base_url): is empty; ")

    def test_one_that_is_not_set_is_the_providers_own(self) -> None:
        assert load(None, {"CAMSERVER_LLM_PROVIDER": "openai"}).llm.base_url is None


def test_an_empty_address_of_the_store_of_objects_is_refused(toml: Path) -> None:
    toml.write_text("[objects]\nurl = 's3://pictures'\nendpoint = ''\n")
    [problem] = refused(toml)
    assert "objects.endpoint: is empty; give the address of your store" in problem


class TestOrder:
    def test_defaults_are_those_of_the_rules(self) -> None:
        settings = load(None, {})
        assert settings.events == EventPolicy()
        assert settings.jobs == JobPolicy()
        assert settings.config_file is None
        assert settings.warnings == ()

    def test_a_later_place_wins(self, toml: Path, tmp_path: Path) -> None:
        toml.write_text("[analyzer]\nurl = 'http://file'\n[server]\ndata_dir = '/file'\n")
        assert load(toml, {}).analyzer.url == "http://file"
        seeds = {"IS21_BASE_URL": "http://seed", "CAMSERVER_SERVER_DATA_DIR": "/variable"}
        assert load(toml, seeds).analyzer.url == "http://seed"
        both = seeds | {"CAMSERVER_ANALYZER_URL": "http://own"}
        settings = load(toml, both)
        assert settings.analyzer.url == "http://own"
        assert settings.server.data_dir == Path("/variable")
        told = load(toml, both, data_dir=tmp_path)
        assert told.server.data_dir == tmp_path
        assert told.sources["server.data_dir"] == "command line"

    def test_defaults_follow_the_data_folder(self, tmp_path: Path) -> None:
        settings = load(None, {}, data_dir=tmp_path)
        assert settings.store.url == DatabaseUrl.for_file(tmp_path / "camserver.db")
        assert settings.objects.dir == tmp_path / "objects"
        assert settings.worker.spool_dir == tmp_path / "spool"
        assert settings.server.secrets_dir == tmp_path / "secrets"

    def test_paths_are_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert load(None, {}).server.data_dir == tmp_path / "data"
        assert load(None, {}, data_dir=Path("here")).objects.dir == tmp_path / "here/objects"

    @pytest.mark.parametrize(
        ("host", "address"),
        [
            ("127.0.0.1", "http://127.0.0.1:81"),
            ("0.0.0.0", "http://127.0.0.1:81"),
            ("::", "http://[::1]:81"),
            ("cam.example", "http://cam.example:81"),
        ],
    )
    def test_addresses_follow_host_and_port(self, host: str, address: str) -> None:
        environ = {"CAMSERVER_CONTROL_HOST": host, "CAMSERVER_CONTROL_PORT": "81"}
        assert load(None, environ).worker.server_url == address

    def test_loading_creates_nothing(self, tmp_path: Path) -> None:
        load(None, {}, data_dir=tmp_path / "new")
        assert list(tmp_path.iterdir()) == []

    def test_settings_do_not_change(self) -> None:
        with pytest.raises(FrozenInstanceError):
            load(None, {}).web.port = 1  # type: ignore[misc]


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "where", "what"),
        [
            ("[web]\nprot = 1", "line 2, web.prot", "no such setting; did you mean port?"),
            ("[wep]\nport = 1", "line 1, [wep]", "no such section; did you mean web?"),
            ("port = 1", "line 1, [port]", "did you mean web.port or control.port or streamer.port or analyzer.port"),
            ("web = 1", "line 1, [web]", "write [web] above its keys"),
            ("[web]\npolling_interval_sec = 1", "web.polling_interval_sec", "mean looks.polling_interval_sec?"),
            ("[events]\nevent_merge_gap_sec = 1", "events.event_merge_gap_sec", "that is events.merge_gap_sec"),
            ("[web]\nport = '80'", "line 2, web.port", 'expected a whole number from 0 to 65535, got "80"'),
            ("[web]\nport = 80.0", "web.port", "expected a whole number from 0 to 65535, got 80.0"),
            ("[web]\nport = true", "web.port", "got true"),
            ("[web]\nport = 2020-02-02", "web.port", 'got "2020-02-02"'),
            ("[web]\nhost = 1", "web.host", "expected a text of at least 1 character, got 1"),
            ("[web]\nhost = ''", "web.host", 'got ""'),
            ("[web]\nhost = '''a\nb'''", "web.host", "control character"),
            ("[web]\nallowed_hosts = 'a'", "web.allowed_hosts", "expected a list of texts"),
            ("[web]\nallowed_hosts = ['a', 1]", "web.allowed_hosts", "expected a list of texts"),
            ("[stationary]\nenabled = 1", "stationary.enabled", "expected true or false, got 1"),
            ("[gate]\nrule = 'best'", "gate.rule", 'expected one of "contrast", "threshold", got "best"'),
            ("[gate]\ndiff_ratio_no_event = nan", "gate.diff_ratio_no_event", 'got "nan"'),
            ("[gate]\ndiff_ratio_no_event = inf", "gate.diff_ratio_no_event", 'got "inf"'),
            ("[worker]\nspool_max_bytes = 9999999999999999999", "worker.spool_max_bytes", "whole number"),
            ("[analyzer]\nurl = 'ftp://x'", "analyzer.url", "begins with http:// or https://"),
            ("[analyzer]\nurl = 'http://'", "analyzer.url", "begins with http:// or https://"),
            ("[analyzer]\nurl = 'http://x:99999'", "analyzer.url", "begins with http:// or https://"),
            ("[media]\nhmac_secret = 'short'", "media.hmac_secret", "a text of at least 16 characters"),
        ],
    )
    def test_says_where_and_why(self, text: str, where: str, what: str, toml: Path) -> None:
        toml.write_text(text)
        [problem] = refused(toml)
        assert problem.startswith(f"{toml}, ")
        assert where in problem
        assert what in problem

    def test_all_problems_are_told_at_once(self, toml: Path) -> None:
        toml.write_text("[web]\nport = 'x'\nprot = 1\n[nonsense]\n")
        environ = {"CAMSERVER_LOG_LEVEL": "loud", "CAMSERVER_LOG_LEVLE": "info", "TICK_SEC": "soon"}
        problems = refused(toml, environ)
        assert len(problems) == 6
        assert "environment variable CAMSERVER_LOG_LEVEL (log.level): expected one of" in problems[4]
        assert problems[5].endswith("CAMSERVER_LOG_LEVLE: no such setting; did you mean CAMSERVER_LOG_LEVEL?")

    @pytest.mark.parametrize(
        ("written", "what"),
        [
            ('["10.0.0.300"]', "a list of addresses and networks"),
            ('["proxy.example.com"]', "a list of addresses and networks"),
            ('["*"]', "a list of addresses and networks"),
            ('["172.16.0.5/12"]', "has host bits set"),
            ('["10.0.0.0/8", "0.0.0.0/0"]', "every address there is"),
            ('["::/0"]', "every address there is"),
            ('"10.0.0.1"', "a list of addresses and networks"),
        ],
    )
    def test_a_proxy_that_is_no_address_is_refused(self, written: str, what: str, toml: Path) -> None:
        toml.write_text(f"[web]\ntrusted_proxies = {written}\n")
        (said,) = refused(toml)
        assert "trusted_proxies" in said
        assert what in said

    def test_very_many_problems_stay_readable(self, toml: Path) -> None:
        toml.write_text("[web]\n" + "".join(f"x{number} = 1\n" for number in range(60)))
        with pytest.raises(BadSettings) as error:
            load(toml, {})
        assert "60 problems" in error.value.message
        assert "and 10 more" in error.value.message

    def test_a_flood_as_a_name_is_cut(self, toml: Path) -> None:
        toml.write_text(f'[web]\n"{"y" * 500}" = 1\n"a\\u0007b" = 1\n')
        long, odd = refused(toml)
        assert len(long) < len(str(toml)) + 200
        assert "\\x07" in odd

    def test_broken_toml_names_line_and_column(self, toml: Path) -> None:
        toml.write_text("[web]\nport = = 1\n")
        [problem] = refused(toml)
        assert str(toml) in problem
        assert "line 2, column 8" in problem

    def test_a_missing_file(self, tmp_path: Path) -> None:
        [problem] = refused(tmp_path / "none.toml")
        assert "does not exist" in problem

    def test_a_folder_as_file(self, tmp_path: Path) -> None:
        [problem] = refused(tmp_path)
        assert "can't be read" in problem

    def test_a_file_that_is_no_text(self, toml: Path) -> None:
        toml.write_bytes(b"[web]\n\xff\xfe")
        [problem] = refused(toml)
        assert "no UTF-8 text (byte 6)" in problem

    def test_a_huge_file(self, toml: Path) -> None:
        toml.write_text("#" * 1_000_001)
        [problem] = refused(toml)
        assert "larger than" in problem

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("[jobs]\nlock_sec = 10\nrenew_every_sec = 10", "jobs.renew_every_sec"),
            ("[jobs]\nbackoff_base_sec = 400", "jobs.backoff_base_sec"),
            ("[leases]\nheartbeat_sec = 85", "leases.heartbeat_sec"),
            ("[admission]\ntotal_stream_units = 14", "admission.total_stream_units"),
            ("[admission]\ncpu_recover_percent = 90", "admission.cpu_recover_percent"),
            ("[web]\nport = 8081", "web.port"),
            ("[archive]\nfolders = ['/mnt/a', 'archive']", "archive.folders"),
            ("[archive]\nfolders = ['./archive']", "archive.folders"),
        ],
    )
    def test_settings_must_fit_each_other(self, text: str, name: str, toml: Path) -> None:
        toml.write_text(text)
        [problem] = refused(toml)
        assert problem.startswith(f"{name}: ")

    @pytest.mark.parametrize(
        "text",
        [
            "[jobs]\nlock_sec = 21",
            "[leases]\nheartbeat_sec = 84",
            "[admission]\ntotal_stream_units = 15",
            "[web]\nport = 8081\nhost = '10.0.0.1'",
            "[web]\nport = 0\n[control]\nport = 0",
            "[archive]\nfolders = ['/mnt/a', '/mnt/b']",
        ],
    )
    def test_settings_that_just_fit_are_accepted(self, text: str, toml: Path) -> None:
        toml.write_text(text)
        load(toml, {})

    @given(st.text(max_size=40))
    def test_any_text_in_a_variable_is_read_or_refused_by_name(self, text: str) -> None:
        for name in ("web.port", "jobs.backoff_base_sec", "stationary.enabled", "analyzer.url", "store.url"):
            setting = all_settings()[name]
            try:
                value = value_of(load(None, {setting.variable: text}), name)
            except BadSettings as error:
                value = error
            named = isinstance(value, BadSettings) and setting.variable in value.message
            assert named or type(value) is setting.type

    @given(
        st.recursive(
            st.booleans() | st.integers() | st.floats() | st.text(alphabet="ab1", max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        )
    )
    def test_no_value_of_a_wrong_type_gets_in(self, value: object) -> None:
        for setting in ALL:
            with suppress(BadInput):
                read = from_toml(setting, value)
                if get_origin(setting.type) is Literal:
                    assert read in get_args(setting.type)
                else:
                    # Exactly, because True is an int to isinstance; a Path has a class of its system's own.
                    kind = get_origin(setting.type) or setting.type
                    assert type(read) is (type(Path()) if kind is Path else kind)


class TestText:
    @pytest.mark.parametrize(
        ("text", "value"), [("true", True), ("On", True), ("1", True), ("no", False), ("0", False)]
    )
    def test_truth(self, text: str, value: bool) -> None:
        assert load(None, {"CAMSERVER_STATIONARY_ENABLED": text}).stationary.enabled is value

    def test_lists_are_separated_by_commas(self) -> None:
        hosts = load(None, {"CAMSERVER_WEB_ALLOWED_HOSTS": " a.example, ,b.example "}).web.allowed_hosts
        assert hosts == ("a.example", "b.example")

    def test_a_home_folder_is_understood(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/cam")
        assert load(None, {"CAMSERVER_OBJECTS_DIR": "~/pictures"}).objects.dir == Path("/home/cam/pictures")

    def test_other_programs_variables_are_left_alone(self) -> None:
        load(None, {"CAMSERVER_CONFIG": "x", "CAMSERVER_TEST_ID": "x", "PATH": "x", "PORT": "x"})


class TestWarnings:
    def test_a_setting_without_effect_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every section has an effect now; the next one that does not have it yet will say so."""
        name = "admission.modal_ttl_sec"
        monkeypatch.setitem(all_settings(), name, replace(all_settings()[name], unused="it is not there yet"))
        [warning] = load(None, {"MODAL_TTL_SEC": "60"}).warnings
        assert warning.startswith("admission.modal_ttl_sec (environment MODAL_TTL_SEC) has no effect")

    def test_secrets_in_a_file_that_others_may_read(self, toml: Path) -> None:
        toml.write_text("[media]\nhmac_secret = 'a-very-long-secret'\n")
        assert load(toml, {}).warnings == ()
        toml.chmod(0o640)
        [warning] = load(toml, {}).warnings
        assert "media.hmac_secret" in warning
        assert f"chmod 600 {toml}" in warning

    def test_a_file_without_secrets_may_be_read_by_all(self, toml: Path) -> None:
        toml.write_text("[store]\nurl = 'sqlite:////srv/c.db'\n")
        toml.chmod(0o644)
        assert load(toml, {}).warnings == ()
