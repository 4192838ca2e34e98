"""The HTTP API's messages for getting cameras in: probes, discovery and imports. Shapes and bounds only."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api import UUID_PATTERN, Answer, Asked, SourceAsked

IMPORT_MAX_CHARS = 900_000
HOSTS_MAX = 256

Site = Annotated[str, Field(min_length=1, max_length=128)]
# IP addresses: what is asked by name could be another host for every question.
Host = Annotated[str, Field(pattern=r"^[0-9A-Fa-f:.]{2,45}$")]
MeasureSec = Annotated[float, Field(ge=0, le=20, allow_inf_nan=False)]


class ProbeAsked(Asked):
    """A source that need not be a camera yet, and the site whose worker is to open it."""

    source: SourceAsked
    site: Site | None = None
    transport: Literal["tcp", "udp"] = "tcp"
    # SHA-256 of the camera's certificate, hex, with or without colons. None: checked against the CAs.
    tls_pin: Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$")] | None = None
    measure_sec: MeasureSec = 4.0  # how long rate and keyframes are counted


class CameraProbeAsked(Asked):
    """`at`: probe the camera at another host, where it was seen; its ONVIF reference must be known.

    `renew`: the device was replaced, so the reference of the one that is there now is noted instead of the known one.
    """

    stream: Literal["main", "sub"] = "main"
    measure_sec: MeasureSec = 4.0
    at: Host | None = None
    renew: bool = False


class CameraMove(Asked):
    """The probe that proved the camera to be at another host."""

    errand_uuid: Annotated[str, Field(pattern=UUID_PATTERN)]


class DeviceAsked(Asked):
    """An ONVIF device by its host, host:port or the address of its service."""

    url: Annotated[str, Field(min_length=1, max_length=255)]
    user: Annotated[str | None, Field(max_length=128)] = None
    password: Annotated[str | None, Field(max_length=255, repr=False)] = None


class DiscoveryAsked(Asked):
    """Without `device`: who is there. With it: the streams of that one device."""

    site: Site | None = None
    wait_sec: Annotated[float, Field(ge=0.2, le=20, allow_inf_nan=False)] = 4.0
    hosts: Annotated[list[Host], Field(max_length=HOSTS_MAX)] = Field(
        default_factory=list
    )  # asked by themselves as well
    device: DeviceAsked | None = None


class ImportAsked(Asked):
    """`text` is the file. `environment` holds the FRIGATE_… variables that it names."""

    format: Literal["csv", "frigate"]
    text: Annotated[str, Field(max_length=IMPORT_MAX_CHARS, repr=False)]
    site: Site | None = None
    dry_run: bool = False
    skip_bad: bool = False  # add the good ones although others are wrong
    zones: bool = False  # take over those of Frigate; a camera with zones does not look outside of them
    environment: Annotated[
        dict[Annotated[str, Field(pattern=r"^FRIGATE_[A-Za-z0-9_]{1,100}$")], Annotated[str, Field(max_length=1024)]],
        Field(max_length=500, repr=False),
    ] = Field(default_factory=dict)


class ImportProblem(Answer):
    where: str  # "line 3, column url" or "cameras.front.ffmpeg"
    line: int | None
    column: str | None
    message: str


class ImportedCamera(Answer):
    """`same`: it is there already as the file has it. `differs`: it is there, and was left as it is."""

    camera_id: str
    where: str
    action: Literal["add", "added", "same", "differs", "failed"]
    message: str


class ImportAnswer(Answer):
    cameras: list[ImportedCamera]
    problems: list[ImportProblem]  # while there are any, nothing is added, unless skip_bad is set
    notes: list[ImportProblem]
