"""What must hold between settings. Bounds of a single setting are its own; they are not here."""

import itertools
import os
from collections.abc import Mapping
from typing import Any, Final

from camserver.config.layers import Problem

# The first must be below the second, or the second never gets its turn.
_BELOW: Final = (
    ("jobs.renew_every_sec", "jobs.lock_sec"),
    ("admission.heartbeat_interval_sec", "admission.heartbeat_grace_sec"),
)
# The first must not be above the second.
_NOT_ABOVE: Final = (
    ("jobs.backoff_base_sec", "jobs.backoff_cap_sec"),
    ("jobs.breaker_open_sec", "jobs.breaker_open_cap_sec"),
    ("leases.camera_retry_base_sec", "leases.camera_retry_cap_sec"),
    ("admission.cpu_recover_percent", "admission.cpu_reject_percent"),
    ("admission.memory_recover_percent", "admission.memory_reject_percent"),
    ("admission.swap_recover_mb", "admission.swap_reject_mb"),
)

_LISTENING: Final = ("web", "control", "analyzer")

Values = Mapping[str, Any]


def check_together(values: Values) -> list[Problem]:
    """Every rule that is broken, by the values of all settings."""
    broken = [_order(values, low, high, "must be below") for low, high in _BELOW if values[low] >= values[high]]
    broken += [
        _order(values, low, high, "must not be above") for low, high in _NOT_ABOVE if values[low] > values[high]
    ]
    return [*broken, *_check_leases(values), *_check_budget(values), *_check_ports(values), *_check_folders(values)]


def _order(values: Values, low: str, high: str, relation: str) -> Problem:
    return Problem(low, f"{values[low]} {relation} {high}, which is {values[high]}; change one of them")


def _check_leases(values: Values) -> list[Problem]:
    """A worker must get at least one renewal in before it lets go by itself."""
    life_sec = values["leases.ttl_sec"] - values["leases.margin_sec"]
    if values["leases.heartbeat_sec"] < life_sec:
        return []
    what = f"{values['leases.heartbeat_sec']} must be below ttl_sec - margin_sec, which is {life_sec}"
    return [Problem("leases.heartbeat_sec", f"{what}; change one of them")]


def _check_budget(values: Values) -> list[Problem]:
    total = values["admission.total_stream_units"]
    users_units = values["admission.max_ui_users"] * values["admission.sub_stream_cost"]
    reserved = values["admission.reserved_baseline_units"] + users_units
    if reserved <= total:
        return []
    what = f"{total} is less than what is reserved for looks and suggestions ({reserved})"
    return [Problem("admission.total_stream_units", f"{what}; raise it or lower max_ui_users")]


def _check_folders(values: Values) -> list[Problem]:
    """A relative path would depend on where the server was started, and so let it write somewhere else."""
    return [
        Problem("archive.folders", f"{folder!r} is no whole path; write it from the root on, such as /mnt/archive")
        for folder in values["archive.folders"]
        if not os.path.isabs(folder)
    ]


def _check_ports(values: Values) -> list[Problem]:
    problems = []
    tls_port = values["control.tls_port"]
    if tls_port and tls_port == values["control.port"]:
        what = f"{tls_port} is also control.port; give the one with TLS another"
        problems.append(Problem("control.tls_port", what))
    own = values["streamer.tls_port"]
    taken = {name: values[name] for name in ("control.tls_port", "control.port", "streamer.port")}
    for name, port in taken.items():
        if own and own == port:
            problems.append(Problem("streamer.tls_port", f"{own} is also {name}; give one of them another"))
    for one, other in itertools.combinations(_LISTENING, 2):
        port = values[f"{one}.port"]
        same_host = values[f"{one}.host"] == values[f"{other}.host"]
        if port == values[f"{other}.port"] and port != 0 and same_host:
            what = f"{port} is also {other}.port on the same host; give one of them another"
            problems.append(Problem(f"{one}.port", what))
    return problems
