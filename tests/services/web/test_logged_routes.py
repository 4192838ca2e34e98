"""No route can change something without an entry in the audit log.

Two halves. What is written in a caller's name is refused by the store when it leaves no entry
(tests/store/test_audit.py). Here every route that changes something is shown to write at all, and every write past
the caller's name is on a list that says how it is logged. Both are read from the sources, so a new route can't be
forgotten.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from camserver.services import web
from camserver.services.web.app import build_api
from camserver.services.web.routing import GuardedRoute

FOLDER = Path(web.__file__).parent
# Routes with a changing method that change nothing, and why they have it.
READS_ONLY = {
    ("POST", "/api/audit/verify"): "a check is long; a foreign page must not be able to ask for it",
    ("POST", "/api/password-links/look"): "a token does not belong into an address, which logs and proxies keep",
}
# Writes that are not in a caller's name, by operation.
NOT_IN_A_NAME = {
    "setup_links.add": "logs who asked for it; at the start of a server nobody did",
    "setup_links.use": "logs `set_up` in the new administrator's name",
    "password_links.use": "logs `password_changed` in the name of whose password it is",
    "password_links.sweep": "deletes links that are over, which nobody asked for",
    "oidc_entries.enter": "logs what it does to whom, and `sessions.begin` logs the sign-in",
    "oidc_entries.note_failed": "logs `sign_in_failed`",
    "sessions.begin": "logs `sign_in`",
    "sessions.sweep": "deletes sign-ins that are over, which nobody asked for",
    "users.note_failed_sign_in": "logs `sign_in_failed`",
    "users.replace_hash": "the same password hashed anew while signing in, which is logged",
    "vocabulary_choices.add": "holds for the installation; logs `vocabulary_added`",
    "vocabulary_choices.use": "holds for the installation; logs `vocabulary_activated`",
    "push_subscriptions.add": "an address may be another tenant's until now; logs `push_subscribed`",
    "upkeep.ask_round": "holds for the installation; logs `retention_asked`",
    "reseal": "goes over all tenants; logs `credentials_moved`",
    "audit.link_opened": "is the entry itself",
    "tenant_desk.add": "is about another tenant; logs `tenant_added` at home",
    "tenant_desk.link_admin": "is about another tenant; logs `admin_link_made` there and one more at home",
    "tenant_desk.change": "is about another tenant; logs `tenant_changed` at home",
    "erasure.begin": "is about another tenant; logs `tenant_erasure_asked` at home, and `tenant_erased` in the end",
    "tenant_export.note": "is about another tenant; logs `tenant_exported` at home",
    "shares.note_opening": "whoever has the address opens it; logs `share_opened`",
    "shares.sweep": "deletes shares that are over, which nobody asked for",
    "request_keys.once": "a scoped write with its request's key; what it does is logged by itself",
    "request_keys.once_beyond": "a write beyond the tenant with its request's key; logged by itself",
    "request_keys.sweep": "deletes keys that are over, which nobody asked for",
    "admissions.admit_all": "the budget is the installation's; logs `live_opened`",
    "viewings.forget_over": "deletes viewings that are over, which nobody asked for",
    "viewings.forget": "deletes viewings that are not allowed any more; why is logged elsewhere",
    "streamers.prune": "deletes what was measured long ago, which nobody asked for",
    "prewarming.prewarm": "opens the suggested stream, which nobody asked for",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A module of the web service: its functions, and what its names stand for in other modules of it."""

    tree: ast.Module
    functions: dict[str, ast.AsyncFunctionDef | ast.FunctionDef]
    imported: dict[str, str]  # a name to the dotted name it was imported as


WRITES = ("write", "write_beyond")
# The store, and what writes entries of the audit log together, in the caller's name.
IN_A_NAME = ("call.store", "call.web.notes")


def _read(path: Path) -> Source:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    }
    imported = {
        name.asname or name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for name in node.names
    }
    return Source(tree, functions, imported)


def _dotted(path: Path) -> str:
    return ".".join([PACKAGE, *path.relative_to(FOLDER).with_suffix("").parts])


PACKAGE = web.__name__


@cache
def _sources() -> dict[str, Source]:
    return {_dotted(path): _read(path) for path in sorted(FOLDER.rglob("*.py"))}


def _writes(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Writes to the store, each with what stands before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            receiver = ast.unparse(node.func.value)
            if receiver == "store" or receiver.endswith((".store", ".beyond", ".notes")) or ".as_(" in receiver:
                yield receiver, node


def _called(module: str, function: ast.AST) -> Iterator[tuple[str, str]]:
    """The functions of the web service that a function calls, each with its module."""
    source = _sources()[module]
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name):
                if name in source.functions:
                    yield module, name
                elif name in source.imported:
                    where, _, original = source.imported[name].rpartition(".")
                    yield where, original
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in source.imported:
                yield source.imported[name], attribute


def _reaches_a_write(module: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> bool:
    function = _sources()[module].functions.get(name) if module in _sources() else None
    if function is None or (module, name) in seen:
        return False
    if any(True for _ in _writes(function)):
        return True
    return any(_reaches_a_write(*one, seen | {(module, name)}) for one in _called(module, function))


def _changing() -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (method, route.path): (route.endpoint.__module__, route.endpoint.__name__)
        for route in build_api().routes
        if isinstance(route, GuardedRoute)
        for method in route.methods or ()
        if method not in ("GET", "HEAD", "OPTIONS")
    }


def test_every_route_that_changes_something_writes() -> None:
    changing = _changing()
    assert len(changing) > 40
    silent = {route for route, handler in changing.items() if not _reaches_a_write(*handler)}
    assert silent == set(READS_ONLY)


def test_what_is_not_written_in_a_callers_name_is_listed_with_how_it_is_logged() -> None:
    found: set[str] = set()
    for module, source in _sources().items():
        for receiver, call in _writes(source.tree):
            # routes/audit.py names its scoped store so.
            scoped = receiver in IN_A_NAME or ".as_(" in receiver or module.endswith("routes.audit")
            if not scoped or call.func.attr == "write_beyond":
                found.add(ast.unparse(call.args[0]))
    assert found == set(NOT_IN_A_NAME)


def test_handlers_are_told_apart() -> None:
    """The comparison above would be worth nothing if everything, or nothing, was found to write."""
    routes = f"{PACKAGE}.routes"
    assert _reaches_a_write(f"{routes}.cases", "create_case")
    assert _reaches_a_write(f"{routes}.errands", "look_now"), "through another module"
    assert not _reaches_a_write(f"{routes}.cases", "list_cases")
    assert not _reaches_a_write(f"{routes}.vocabulary", "get_vocabulary")
