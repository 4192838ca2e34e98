"""How each documented command is tried: run, with the end that is expected, or only held against its options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import click

from camserver import cli
from camserver.base.exits import Exit
from tests.docs.stage import PASSWORD, SECRETS, Stage

FOREVER = "runs until it is stopped; whole-product tests start it"
NOBODY_THERE = "nobody is at that address; tests/commands/test_cameras.py runs it against cameras"
OWN_DATABASE = "wants a database or folder of its own that no server uses; tests/care and tests/store run it"
MODELS = "wants a model's bundle; tests/commands/test_models.py runs it"
LLM = "wants a language model; tests/commands/test_score.py and test_llm.py run it against one"
EYES = "loads the model; tests/commands/test_analyze.py runs it"
ELSEWHERE = "is for a worker on another machine; tests/e2e/test_remote_worker.py runs it"
WORDS = "wants a vocabulary of your own; tests/commands/test_vocabulary.py runs it"

# The first words of a command, and why it is not run here. The first that fits counts.
PARSED: tuple[tuple[str, str], ...] = (
    *(
        (name, FOREVER)
        for name in ("up", "server", "web", "control", "dispatcher", "streamer", "analyzer", "simulate")
    ),
    ("--data-dir /srv/camserver up", FOREVER),
    ("worker run", FOREVER),
    ("worker enroll", ELSEWHERE),
    ("worker revoke", ELSEWHERE),
    ("scoring", LLM),
    ("score", LLM),
    ("llm", LLM),
    ("analyze", EYES),
    ("models", MODELS),
    ("conformance", "takes long and asks an analyzer many times; tests/commands/test_conformance.py runs it"),
    ("camera probe rtsp:", NOBODY_THERE),
    ("camera discover", NOBODY_THERE),
    ("camera rediscover", NOBODY_THERE),
    ("camera test", "opens the camera's stream, and pictures of a file have none"),
    ("install", "makes users and units; tests/care/test_install.py runs it in a folder"),
    ("restore /mnt/backups/monday.tar --secrets", OWN_DATABASE),
    ("restore /mnt/backups/monday --secrets", OWN_DATABASE),
    ("restore /mnt/backups/monday --force", OWN_DATABASE),
    ("restore /mnt/backups/before-upgrade --force", OWN_DATABASE),
    ("receiver add drive", "wants a key of Google's; tests/clients/test_drive.py uses one"),
    ("db check", OWN_DATABASE),
    ("db copy", "wants a database server; tests/commands/test_database_copy.py runs it"),
    ("db upgrade", OWN_DATABASE),
    ("db rls", "is for PostgreSQL; tests/commands/test_database_rls.py runs it"),
    ("check --fix", OWN_DATABASE),
    ("credentials rotate", "wants a second key; tests/commands/test_credentials.py runs it"),
    ("vocabulary add", WORDS),
    ("vocabulary use", WORDS),
    ("tenant erase", "waits a day; tests/commands/test_tenants.py runs it"),
    ("retention run", "is done by a dispatcher in its own time; tests/services/dispatcher/test_retaining.py runs it"),
    ("user add kato --oidc-subject", "wants a provider; tests/commands/test_people.py runs it"),
    ("user change tanaka --oidc-subject", "wants a provider; tests/commands/test_people.py runs it"),
)
# What ends otherwise than well here, and why that is right.
ENDS: tuple[tuple[str, tuple[Exit, ...], str], ...] = (
    ("receiver test", (Exit.OK, Exit.CHECK_FAILED), "the receiver is an address where nobody listens"),
    ("notify test", (Exit.OK, Exit.CHECK_FAILED), "the receivers are addresses where nobody listens"),
    ("check", (Exit.OK, Exit.CHECK_FAILED), "it looks at this machine's disk and clock, too"),
    ("setup-link", (Exit.REFUSED,), "there is an administrator already"),
    ("lease reclaim", (Exit.OK, Exit.REFUSED), "its worker is there, or it has none yet"),
    ("job requeue", (Exit.OK, Exit.REFUSED), "no job is dead"),
    ("delivery requeue", (Exit.OK, Exit.REFUSED), "no delivery was given up"),
)


def why_parsed(words: Sequence[str]) -> str | None:
    """The reason why this command is not run; None: it is."""
    return next((reason for begin, reason in PARSED if _begins(words, begin)), None)


def ends(words: Sequence[str]) -> tuple[Exit, ...]:
    return next((codes for begin, codes, _ in ENDS if _begins(words, begin)), (Exit.OK,))


def _begins(words: Sequence[str], begin: str) -> bool:
    text = " ".join(words)
    return text == begin or text.startswith((f"{begin} ", begin) if begin.endswith(":") else f"{begin} ")


@dataclass(frozen=True, slots=True)
class Ready:
    """A command as it can be run here."""

    words: tuple[str, ...]
    stdin: str = ""


UUID = "0198c0de-0000-7000-8000-000000000001"
UUIDS = (UUID, "0190c1f2-5f0e-7c1a-9a55-1f2d3c4b5a69")
# Commands that change or remove a camera get one of their own.
SPOILS_CAMERA = ("camera change", "camera remove", "camera move", "camera pin", "camera unpin", "camera hints",
                 "lease reclaim")  # fmt: skip
# Commands that ask whether it is meant.
ASKS = ("user remove", "site remove")
# The first word after these is the name of something new.
MAKES = ("camera add", "receiver add", "rule add", "site add", "tenant add", "user add", "token add")


def ready(stage: Stage, words: Sequence[str]) -> Ready:
    """With names that are known here, and with what it names made first."""
    length = 2 if isinstance(cli.main.commands.get(words[0]), click.Group) else 1
    path, rest = " ".join(words[:length]), list(words[length:])
    stdin = _stdin(words)
    if path in MAKES:
        rest[0] = stage.fresh(rest[0]).replace("-", "_" if path == "camera add" else "-")
    elif path in SPOILS_CAMERA:
        rest[0] = stage.camera()
    elif path in MADE_FIRST:
        rest = MADE_FIRST[path](stage, rest)
    if path == "tenant add":
        rest[rest.index("--admin") + 1] = stage.fresh("kato")  # logins are of the whole installation
    if path == "incident review":
        stdin = PASSWORD + "\n"
    elif path in ASKS:
        stdin = "y\n"
    _those_it_names(stage, path, rest)
    known = stage.known | (stage.for_cases if path.startswith("case") else {})
    return Ready((*words[:length], *(known.get(word, word) for word in rest)), stdin)


def _stdin(words: Sequence[str]) -> str:
    if "--secrets-stdin" in words:
        kind = words[3] if words[1] == "add" else "webhook"
        return SECRETS[kind]
    return PASSWORD + "\n"


def _those_it_names(stage: Stage, path: str, rest: Sequence[str]) -> None:
    """Receivers, sites and people that options name."""
    for option, value in pairwise(rest):
        if option == "--receiver":
            _receiver(stage, value)
        elif option == "--site" and value != "main":
            stage.ask("POST", "/api/sites", {"name": value})
        elif option == "--user" and path == "token add":
            stage.run(("user", "add", value, "--role", "tenant_admin"))
        elif option == "--tenant" and value != "default":
            stage.run(("tenant", "add", value, "--admin", stage.fresh("kato")))


def _receiver(stage: Stage, name: str) -> None:
    stage.run(("receiver", "add", name, "webhook", "--secrets-stdin"), stdin=SECRETS["webhook"])


def _named_receiver(stage: Stage, rest: list[str]) -> list[str]:
    name = stage.fresh(rest[0])
    if "--set" in rest:
        settings = (
            "--set",
            "host=mail.example.org",
            "--set",
            "sender=a@example.org",
            "--set",
            'to=["b@example.org"]',
        )
        stage.made("receiver", "add", name, "email", *settings)
    else:
        stage.made("receiver", "add", name, "webhook", "--secrets-stdin", stdin=SECRETS["webhook"])
    return [name, *rest[1:]]


def _rule(stage: Stage, rest: list[str]) -> list[str]:
    _receiver(stage, "office")
    name = stage.fresh("rule")
    stage.made("rule", "add", name, "--receiver", "office", "--quiet", "22:00-07:00")
    return [name, *rest[1:]]


def _rule_test(stage: Stage, rest: list[str]) -> list[str]:
    return [stage.known["EVENT"], *rest[1:]]


def _case(stage: Stage, rest: list[str]) -> list[str]:
    """A case with an event and a frame in it, unless those are to be added."""
    case = stage.made("case", "create", "a case")
    stage.known["CASE"] = case
    return rest


def _case_with_all(stage: Stage, rest: list[str]) -> list[str]:
    rest = _case(stage, rest)
    for kind in ("event", "frame"):
        stage.made("case", "add", stage.known["CASE"], kind, stage.for_cases[kind.upper()])
    if "clip" in rest:
        return [word for word in rest if word not in ("--kind", "clip")]
    return rest


def _case_file(stage: Stage, rest: list[str]) -> list[str]:
    case, name = stage.made("case", "create", "a case"), stage.fresh("case") + ".zip"
    stage.made("case", "export", case, "-o", name)
    return [name, *(() if "--key" not in rest else ("--key", stage.made("case", "key")))]


def _case_export(stage: Stage, rest: list[str]) -> list[str]:
    return [*_case(stage, rest)[:-1], stage.fresh("export") + ".zip"]


def _share_add(stage: Stage, rest: list[str]) -> list[str]:
    return [rest[0], stage.known[rest[0].upper()], *rest[2:]]


def _share_revoke(stage: Stage, rest: list[str]) -> list[str]:
    stage.made("share", "add", "event", stage.known["EVENT"])
    return [stage.first("/api/shares", "shares", "share_uuid")]


def _token_revoke(stage: Stage, rest: list[str]) -> list[str]:
    stage.run(("user", "add", "robot", "--role", "tenant_admin"))
    stage.made("token", "add", stage.fresh("token"), "--user", "robot")
    return [stage.first("/api/tokens", "tokens", "token_uuid")]


def _unsnooze(stage: Stage, rest: list[str]) -> list[str]:
    stage.made("notify", "snooze", "--for", "30m")
    return rest if "--all" in rest else [stage.first("/api/snoozes", "snoozes", "snooze_uuid")]


def _site(stage: Stage, rest: list[str]) -> list[str]:
    name = stage.fresh("site")
    stage.ask("POST", "/api/sites", {"name": name})
    return [name, *(stage.fresh(word) if word == "headquarters" else word for word in rest[1:])]


def _user(stage: Stage, rest: list[str]) -> list[str]:
    name = stage.fresh("user")
    stage.made("user", "add", name)
    return [name, *rest[1:]]


def _tenant(stage: Stage, rest: list[str]) -> list[str]:
    name = stage.fresh("acme")
    stage.made("tenant", "add", name, "--admin", stage.fresh("kato"))
    return [name, *rest[1:]]


def _tenant_and_login(stage: Stage, rest: list[str]) -> list[str]:
    return [*_tenant(stage, rest[:1]), stage.fresh("kato")]


def _audit_file(stage: Stage, rest: list[str]) -> list[str]:
    if "--file" not in rest:
        return rest
    name = stage.fresh("audit") + ".jsonl"
    stage.made("audit", "export", name)
    return ["--file", name]


def _backup(stage: Stage, rest: list[str]) -> list[str]:
    """To a new place; the secrets, too."""
    return [stage.fresh(word) if word.startswith("/") else word for word in rest]


def _restore(stage: Stage, rest: list[str]) -> list[str]:
    place = stage.fresh("/mnt/backups/made")
    stage.made("backup", place)
    return [place, *rest[1:]]


def _new_file(stage: Stage, rest: list[str]) -> list[str]:
    """The file that is written is a new one: nothing is written over."""
    return [stage.fresh(word) if word.endswith((".jsonl", ".jpg", ".txt")) else word for word in rest]


MADE_FIRST = {
    **dict.fromkeys(("receiver change", "receiver test", "receiver disable", "receiver enable", "receiver remove"),
                    _named_receiver),
    **dict.fromkeys(("rule change", "rule remove"), _rule),
    **dict.fromkeys(("rule test", "notify preview"), _rule_test),
    **dict.fromkeys(("case add", "case show", "case hold", "case note", "case close"), _case),
    "case remove": _case_with_all,
    "case export": _case_export,
    "case verify": _case_file,
    "share add": _share_add,
    "share revoke": _share_revoke,
    "token revoke": _token_revoke,
    "notify unsnooze": _unsnooze,
    **dict.fromkeys(("site change", "site remove"), _site),
    **dict.fromkeys(("user change", "user remove", "user reset"), _user),
    **dict.fromkeys(("tenant change", "tenant export"), _tenant),
    "tenant reset": _tenant_and_login,
    "audit verify": _audit_file,
    "backup": _backup,
    "restore": _restore,
    **dict.fromkeys(("audit export", "camera picture", "gate explain", "doctor"), _new_file),
}  # fmt: skip


def environment(pairs: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    return dict(pairs)
