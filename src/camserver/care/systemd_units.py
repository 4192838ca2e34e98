"""The systemd units of camserver, as text: one a service, hardened, named as operators look for them.

`deploy/systemd/` holds what this makes for the usual places; a test keeps the two equal. Nothing is written here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from camserver.base.exits import Exit

PREFIX: Final = "cam-"
USER: Final = "camserver"


@dataclass(frozen=True, slots=True)
class Where:
    """Places and addresses that stand in units."""

    program: str = "/opt/camserver/bin/camserver"
    config: str = "/etc/camserver/camserver.toml"
    environment: str = "/etc/camserver/camserver.env"
    data_dir: str = "/var/lib/camserver"
    # What listens where, by the name of the setting.
    addresses: Mapping[str, str] = field(
        default_factory=lambda: {"web.port": "127.0.0.1:8080", "control.port": "127.0.0.1:8081"}
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """A service. `sockets` are those that systemd keeps open while it is restarted."""

    name: str
    command: str
    purpose: str
    sockets: tuple[str, ...] = ()
    # Beside the usual ones.
    families: tuple[str, ...] = ()
    # Whether it may see devices, for webcams.
    devices: bool = False


UNITS: Final = {
    unit.name: unit
    for unit in (
        Unit("server", "server", "control, dispatcher and web in one process", ("web.port", "control.port")),
        Unit("control", "control", "the workers' side of the server", ("control.port",)),
        Unit("dispatcher", "dispatcher", "has pictures analyzed, sends messages, keeps house"),
        Unit("web", "web", "API and web pages", ("web.port",)),
        Unit("streamer", "streamer", "shows live video to browsers"),
        # On SQLite the server does this itself.
        Unit("scoring", "scoring run", "scores sheets and events by a language model"),
        # Named as the seeds name what takes pictures.
        Unit("collector", "worker", "looks at cameras", families=("AF_NETLINK",), devices=True),
        Unit("analyzer", "analyzer", "says what a picture shows"),
    )
}
# What runs together: on one machine (any database), on a machine of a fleet without cameras, at a site.
SETS: Final[Mapping[str, Sequence[str]]] = {
    "one": ("server", "streamer", "collector", "analyzer"),
    "fleet": ("control", "dispatcher", "web", "streamer", "scoring", "analyzer"),
    "site": ("collector",),
}

_HARDENING: Final = """\
# A user of its own that may nothing but its own folder; the system is read-only for it.
User={user}
Group={user}
UMask=0077
StateDirectory={state}
StateDirectoryMode=0700
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
{devices}
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
LockPersonality=yes
RestrictAddressFamilies={families}
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""


def service(unit: Unit, where: Where) -> str:
    """The text of `cam-NAME.service`."""
    final = " ".join(str(code.value) for code in Exit if not code.restart)
    devices = "PrivateDevices=yes"
    if unit.devices:
        # Webcams; nothing else of /dev than what every program needs.
        devices = "DevicePolicy=closed\nDeviceAllow=char-video4linux rw\nSupplementaryGroups=video"
    kept = " ".join(_socket_file(unit, setting) for setting in unit.sockets)
    needs = f"Requires={kept}\nAfter={kept}\n" if kept else ""
    sockets = f"Sockets={kept}\n" if kept else ""
    families = " ".join(("AF_UNIX", "AF_INET", "AF_INET6", *unit.families))
    state = where.data_dir.removeprefix("/var/lib/")
    hardening = _HARDENING.format(user=USER, state=state, devices=devices, families=families)
    if state.startswith("/"):
        # Elsewhere than below /var/lib, where systemd makes no folder.
        hardening = hardening.replace(f"StateDirectory={state}\nStateDirectoryMode=0700", f"ReadWritePaths={state}")
    return (
        f"[Unit]\nDescription=camserver {unit.name}: {unit.purpose}\n"
        f"{needs}After=network-online.target postgresql.service mariadb.service time-sync.target\n"
        f"Wants=network-online.target\nPartOf=camserver.target\n"
        # A database that is away for long must not end the restarts.
        "StartLimitIntervalSec=0\n\n"
        f"[Service]\nType=exec\n{sockets}"
        f"ExecStart={where.program} --config {where.config} --data-dir {where.data_dir} {unit.command}\n"
        f"EnvironmentFile=-{where.environment}\nWorkingDirectory={where.data_dir}\n"
        "Environment=PYTHONUNBUFFERED=1\n"
        f"Restart=always\nRestartSec=2\n# What trying again can't help (docs/ref/exit-codes.md).\n"
        f"RestartPreventExitStatus={final}\n"
        # Stops within 10 seconds by itself.
        "TimeoutStopSec=20\nKillMode=mixed\nLimitNOFILE=65536\nLimitCORE=0\nTasksMax=4096\n"
        f"{hardening}\n[Install]\nWantedBy=camserver.target\n"
    )


def socket(unit: Unit, where: Where) -> str:
    """The text of `cam-NAME.socket`: kept open while the service is restarted, so nobody is refused."""
    listens = "".join(f"ListenStream={where.addresses[name]}\n" for name in unit.sockets)
    # systemd gives one name to all sockets of a unit, so units with several have a file for each.
    return (
        f"[Unit]\nDescription=camserver {unit.name}: its port\nPartOf=camserver.target\n\n"
        f"[Socket]\n{listens}FileDescriptorName={unit.sockets[0]}\nBacklog=2048\nNoDelay=yes\n"
        f"Service={PREFIX}{unit.name}.service\n\n[Install]\nWantedBy=sockets.target\n"
    )


def target() -> str:
    """`camserver.target` starts and stops all of them together."""
    return "[Unit]\nDescription=camserver: all services of this machine\n\n[Install]\nWantedBy=multi-user.target\n"


def files(names: Sequence[str], where: Where) -> dict[str, str]:
    """All units for these services, by file name."""
    made = {"camserver.target": target()}
    for name in names:
        unit = UNITS[name]
        made[f"{PREFIX}{name}.service"] = service(unit, where)
        for setting in unit.sockets:
            made[_socket_file(unit, setting)] = socket(_only(unit, setting), where)
    return made


def _only(unit: Unit, setting: str) -> Unit:
    return Unit(unit.name, unit.command, unit.purpose, (setting,))


def _socket_file(unit: Unit, setting: str) -> str:
    """The first port of a unit has its name, a further one its own."""
    suffix = "" if setting == unit.sockets[0] else f"-{setting.partition('.')[0]}"
    return f"{PREFIX}{unit.name}{suffix}.socket"
