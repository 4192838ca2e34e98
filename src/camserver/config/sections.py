"""What can be set: one dataclass a section, one field a setting.

Sections that tune a rule are that rule's own policy dataclass in `domain`; the others are defined here. The
reference pages, the checks and `camserver config show` are all made from these fields. This module reads
nothing.
"""

# ruff: noqa: RUF009
# The calls in defaults below make dataclass fields, not values that instances would share.

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from camserver.base.secrets import Secret
from camserver.config.analyzer_section import AnalyzerSettings
from camserver.config.database_url import DatabaseUrl
from camserver.config.fields import Chosen, address_of, derived, section, setting
from camserver.config.oidc_section import OidcSettings
from camserver.domain.admission import AdmissionPolicy
from camserver.domain.archive import ArchivePolicy
from camserver.domain.assignment_types import AssignmentPolicy
from camserver.domain.availability import AvailabilityPolicy
from camserver.domain.certificates import CertificatePolicy
from camserver.domain.deliveries import DeliveriesPolicy
from camserver.domain.detections import DetectionPolicy
from camserver.domain.events import EventPolicy
from camserver.domain.gate import GatePolicy
from camserver.domain.incidents import IncidentPolicy
from camserver.domain.jobs import JobPolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.domain.notices import LlmReviewPolicy, NotifyPolicy
from camserver.domain.retention import RetentionPolicy
from camserver.domain.scoring import ScoringPolicy
from camserver.domain.sheet_layout import SheetLayout
from camserver.domain.sight import HealthPolicy
from camserver.domain.stationary import StationaryPolicy
from camserver.domain.suggest import SuggestPolicy
from camserver.domain.summaries import SummaryPolicy


def _under_data_dir(name: str) -> Callable[[Chosen], Path]:
    return lambda chosen: Path(chosen["server.data_dir"]) / name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    data_dir: Path = setting(Path("data"), "Folder for everything camserver keeps on this machine.")
    secrets_dir: Path = derived(
        _under_data_dir("secrets"),
        "data/secrets",
        "Folder of the secrets made on first start, one file each: media_hmac, credential_key, "
        "local_admin_token, worker_token, session_key, push_key, case_key, audit_key, and worker_ca once "
        "control.tls_port is set. Services on several machines need the same files. Default: secrets in data_dir.",
    )
    credential_key: Secret | None = setting(
        None,
        "Key that encrypts stored passwords, 32 bytes in base64url. Not set: from credential_key_command, else the "
        "file credential_key in secrets_dir.",
        secret_file="credential_key",
    )
    credential_key_previous: Secret | None = setting(
        None,
        "The key before, while it is replaced: what it encrypted can still be read, until `camserver credentials "
        "rotate` is through. Not set: the file credential_key_previous in secrets_dir, if there is one.",
    )
    credential_key_command: tuple[str, ...] = setting(
        (),
        "Program and arguments that print the key, such as a client of a key management service. It is started "
        "without a shell, once at start, and has 10 seconds.",
    )
    public_url: str = derived(
        address_of("web"),
        "http://127.0.0.1:8080",
        "Address under which people reach the web pages; links in messages begin with it. "
        "Default: made from [web] host and port.",
        form="http_url",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    url: DatabaseUrl = derived(
        lambda chosen: DatabaseUrl.for_file(Path(chosen["server.data_dir"]) / "camserver.db"),
        "sqlite:///data/camserver.db",
        "The database: sqlite:///file, postgresql://user:password@host/database or mysql://… (MariaDB). "
        "Default: camserver.db in data_dir.",
    )
    pool_size: int = setting(10, "Most connections a process keeps to PostgreSQL or MariaDB.", min=1, max=500)
    acquire_timeout_sec: float = setting(
        5.0, "How long a request waits for a free connection before it gets 503.", min=0.1, max=60
    )
    sqlite_readers: int = setting(4, "Reading connections to the SQLite file.", min=1, max=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    dir: Path = derived(
        _under_data_dir("objects"),
        "data/objects",
        "Folder of pictures and clips. Default: objects in data_dir.",
    )
    url: str | None = setting(
        None,
        "A bucket of an S3-compatible store for pictures and clips instead of the folder: s3://bucket or "
        "s3://bucket/prefix.",
    )
    endpoint: str | None = setting(
        None,
        "Address of that store, such as http://127.0.0.1:9000. Not set: Amazon's of the region. An empty one is "
        "refused: pictures would go to another place than was meant.",
        form="http_url",
        empty_refused="give the address of your store, or remove the setting to use Amazon's",
    )
    region: str = setting(
        "us-east-1", "Region of that store; most stores other than Amazon's ignore it.", min_chars=1
    )
    access_key_id: str | None = setting(
        None, "Name of the key for that store. Not set: AWS_ACCESS_KEY_ID, or the role of the machine."
    )
    secret_access_key: Secret | None = setting(None, "The key itself.")
    path_style: bool = setting(
        True, "Whether the bucket stands in the path of the address; false: in the host name, as Amazon prefers."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    host: str = setting("127.0.0.1", "Address the web pages and the API listen on.", min_chars=1)
    port: int = setting(8080, "Port of the web pages and the API; 0 takes any free one.", min=0, max=65535)
    allowed_hosts: tuple[str, ...] = setting(
        ("localhost", "127.0.0.1", "[::1]"),
        "Host names browsers may use, without port; requests for others are refused. "
        "The host of public_url is always allowed.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        ("127.0.0.1", "::1"),
        "Addresses and networks of reverse proxies, such as 172.30.91.0/24. Who calls, and whether by https, is what "
        "their X-Forwarded-For and X-Forwarded-Proto say; headers of others are ignored. Name no more than proxies: "
        "whoever connects from there can pretend to be anybody.",
        form="networks",
    )
    session_hours: int = setting(12, "How long a sign-in lasts.", min=1, max=720)
    store_url: DatabaseUrl | None = setting(
        None,
        "The same PostgreSQL database under a role of web's own, which row-level security holds to one tenant at a "
        "time (`camserver db rls`). Not set: web uses [store] url for everything.",
    )
    connections_per_address: int = setting(
        512,
        "Connections that one address may have at once; 0: any number. Addresses of this machine and "
        "trusted_proxies, which have everybody's connections, have no bound.",
        min=0,
        max=100_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    host: str = setting("127.0.0.1", "Address the workers' port listens on.", min_chars=1)
    port: int = setting(8081, "The workers' port; 0 takes any free one.", min=0, max=65535)
    max_message_bytes: int = setting(65536, "Longest message on a worker's control socket.", min=1024, max=1_048_576)
    upload_max_bytes: int = setting(
        25_000_000, "Largest upload of one look, all its pictures together.", min=100_000, max=25_000_000
    )
    worker_token: Secret | None = setting(
        None,
        "Token with which a worker signs in; the same on server and worker. "
        "Not set: the file worker_token in secrets_dir.",
        secret_file="worker_token",
    )
    tls_port: int | None = setting(
        None,
        "Port for workers at other sites, with TLS and certificates (`camserver worker token`); 0 takes any free "
        "one. Not set: workers connect from this machine only.",
        min=0,
        max=65535,
    )
    tls_host: str = setting("0.0.0.0", "Address that port listens on.", min_chars=1)
    tls_names: tuple[str, ...] = setting(
        (),
        "Host names and addresses under which workers reach that port; they stand in its certificate, beside this "
        "machine's own name and localhost.",
    )
    arrival_sec: float = setting(
        30.0,
        "Time a connection has to say something: for the TLS handshake and its first request together, and then, on "
        "a worker's socket, for REGISTER.",
        min=0.1,
        max=600,
    )
    strangers_max: int = setting(
        1000,
        "Connections at the TLS port that have said nothing yet or have no certificate; beyond these, the one that "
        "came first is ended.",
        min=1,
        max=100_000,
    )
    address_strangers_max: int = setting(100, "The same, of one address.", min=1, max=100_000)
    ca_file: Path | None = setting(
        None,
        "PEM file with key and certificate of the CA that signs the certificates of workers. Not set: the file "
        "worker_ca in secrets_dir, made when tls_port is set.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamerSettings:
    host: str = setting("127.0.0.1", "Address live streams are offered on.", min_chars=1)
    port: int = setting(8082, "Port of live streams; 0 takes any free one.", min=0, max=65535)
    name: str = derived(
        lambda _: socket.gethostname(),
        "",
        "Name of this streamer; each has its own. Default: the host name.",
    )
    public_url: str | None = setting(
        None,
        "Address under which browsers reach this streamer, such as https://cameras.example.com where a proxy passes "
        "/stream, /hls and /snapshot on to it. Not set: the host name of the page, at this port.",
        form="http_url",
    )
    feed_url: str | None = setting(
        None,
        "Address under which workers reach this streamer: ws://… on this machine, wss://… elsewhere. Not set: this "
        "machine's own, and for workers at other sites that of tls_port.",
    )
    tls_port: int | None = setting(
        None,
        "Port for the live video of workers at other sites, with TLS and the certificates they were enrolled with; "
        "0 takes any free one. Not set: they are watched only where feed_url leads here by wss.",
        min=0,
        max=65535,
    )
    tls_host: str = setting("0.0.0.0", "Address that port listens on.", min_chars=1)
    tls_names: tuple[str, ...] = setting(
        (),
        "Host names and addresses under which workers reach that port, the first of which they are told. Not set: "
        "those of [control] tls_names.",
    )
    server_url: str = derived(
        address_of("control"),
        "http://127.0.0.1:8081",
        "Where this streamer reaches the server, on SQLite; on other databases it opens those itself. Default: made "
        "from [control] host and port.",
        form="http_url",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    name: str = derived(
        lambda _: socket.gethostname(),
        "",
        "Name of this worker in lists and logs. Default: the host name. A worker with a certificate has the "
        "name in it.",
    )
    site_id: str | None = setting(
        None,
        "Id of the site this worker stands in. Not set: the only site there is, or the one it stood in before. A "
        "worker with a certificate has the site in it.",
    )
    server_url: str = derived(
        address_of("control"),
        "http://127.0.0.1:8081",
        "Where this worker reaches the workers' port; https:// with the certificate of `camserver worker enroll`, "
        "from another machine. Default: made from [control] host and port.",
        form="http_url",
    )
    identity_dir: Path = derived(
        _under_data_dir("identity"),
        "data/identity",
        "Folder of the key and certificate that `camserver worker enroll` gets. Default: identity in data_dir.",
    )
    spool_dir: Path = derived(
        _under_data_dir("spool"),
        "data/spool",
        "Folder where looks wait until the server has acknowledged them. Default: spool in data_dir.",
    )
    spool_max_bytes: int = setting(
        2_000_000_000, "Most the spool may hold; past it the oldest quiet looks go first.", min=10_000_000
    )
    slots: int = setting(64, "Most cameras this worker takes at once.", min=1, max=400)
    uploads_in_flight: int = setting(2, "Uploads under way at once.", min=1, max=16)
    ring_sec: int = setting(
        30, "How many of the last seconds of a connected camera's video are kept in memory for clips.", min=5, max=60
    )
    ring_max_bytes: int = setting(
        256_000_000, "Memory for that, of all cameras together; with many cameras each keeps less.", min=1_000_000
    )
    live_sound: bool = setting(
        True, "Whether people who watch live may hear cameras that have a microphone. Sound is never recorded."
    )
    transcodes_max: int = setting(
        4,
        "Most cameras that are transcoded at once for live view: those with a privacy mask, and those whose video "
        "browsers don't play. Each takes up to half a core at 1920x1080.",
        min=0,
        max=64,
    )
    transcode_width: int = setting(1280, "Widest picture of a transcoded live view.", min=160, max=3840)
    transcode_fps: int = setting(15, "Most pictures a second of a transcoded live view.", min=1, max=30)
    allow_loopback: bool = setting(
        False,
        "Whether cameras may be at addresses of the worker's own machine, such as a restreamer beside it. "
        "`camserver up --demo` allows it for its simulated cameras.",
    )


# What each provider offers for pictures at a small price.
_USUAL_MODELS: Final = {"openai": "gpt-5-nano", "gemini": "gemini-2.5-flash", "anthropic": "claude-haiku-4-5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    provider: Literal["none", "openai", "gemini", "anthropic"] = setting(
        "none", "Whose API the model speaks. openai: also Ollama, vLLM and others that are compatible, with base_url."
    )
    base_url: str | None = setting(
        None,
        "Address of the API, such as http://127.0.0.1:11434/v1 for Ollama. Not set: the provider's own. An empty one "
        "is refused: questions and key would go to another place than was meant.",
        form="http_url",
        empty_refused="give the address of your server, or remove the setting to ask the provider at its own address",
    )
    model: str = derived(
        lambda chosen: _USUAL_MODELS.get(str(chosen["llm.provider"]), ""),
        "",
        "Name of the model; it must be able to see pictures. Default: a small one of the provider.",
    )
    key: Secret | None = setting(None, "The API key. Servers of one's own often need none.")
    timeout_sec: float = setting(60.0, "Time-out of one question.", min=1, max=600)
    max_tokens: int = setting(
        2000, "Most tokens of one answer, a model's own thinking included.", min=100, max=100_000
    )
    daily_calls: int = setting(200, "Most questions a day (UTC) and tenant.", min=0, max=1_000_000)
    daily_cost_usd: float = setting(
        0.0,
        "Most that a day's (UTC) questions of a tenant may cost, in US dollars; 0: only daily_calls bounds them.",
        min=0,
        max=1_000_000,
    )
    price_in: float = setting(
        0.0,
        "Price of a million tokens sent, in US dollars; 0 here and in price_out: by the table that camserver has.",
        min=0,
        max=1_000_000,
    )
    price_out: float = setting(0.0, "Price of a million tokens answered, in US dollars.", min=0, max=1_000_000)

    @property
    def is_configured(self) -> bool:
        return self.provider != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularySettings:
    schema_version: str | None = setting(
        None,
        "Version of the tag vocabulary that every start activates; no other can be chosen then. Not set: the first "
        "start takes the one that comes with the program, and `camserver vocabulary use` chooses another.",
        min_chars=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSettings:
    credentials_file: Path | None = setting(
        None, "File with the Google service account that archives pictures to Google Drive."
    )
    folder_id: str | None = setting(None, "Id of the Google Drive folder that archived pictures go to.")
    api_url: str = setting(
        "https://www.googleapis.com",
        "Address of Google's API; another one is of use only for tests.",
        form="http_url",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    url: Secret | None = setting(
        None, "Address that notifications are posted to. Kept secret, because such addresses hold tokens."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSettings:
    link_ttl_sec: int = setting(
        900,
        "How long a signed media link opens its picture; one that somebody makes who may not share, an hour at most.",
        min=10,
        max=604_800,
    )
    shares: Literal["off", "managers", "everybody"] = setting(
        "managers",
        "Who may share events and frames with people who don't sign in: nobody (what was shared is closed), those "
        "who manage cameras, or whoever may see them.",
    )
    hmac_secret: Secret | None = setting(
        None,
        "Key that signs media links, at least 16 characters. Not set: the file media_hmac in secrets_dir.",
        secret_file="media_hmac",
        min_chars=16,
    )
    hmac_secret_previous: Secret | None = setting(
        None, "The key before, while it is rotated: links signed with it stay valid.", min_chars=16
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    port: int = setting(8554, "Port the demo's cameras are played at, on this machine only.", min=1, max=65535)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    format: Literal["auto", "json", "text"] = setting(
        "auto", "Lines of JSON or readable text; auto: text on a terminal, JSON elsewhere."
    )
    level: Literal["debug", "info", "warning", "error"] = setting("info", "The least level that is logged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    token: Secret | None = setting(
        None,
        "Token with which Prometheus reads /metrics, as a bearer. Not set: only programs on the server's own machine "
        "may, directly and not through a proxy.",
        min_chars=16,
    )
    port: int | None = setting(
        None,
        "Port at which each process tells its own figures, for services without pages: control, dispatcher, web and "
        "server at this one, streamer, worker and analyzer at the next three. Not set: only web tells, at /metrics.",
        min=1,
        max=65532,
    )
    host: str = setting("127.0.0.1", "Address that port listens on.", min_chars=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    endpoint: str | None = setting(
        None,
        "Address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; traces go "
        "to /v1/traces below it and figures to /v1/metrics. Not set: nothing is sent.",
        form="http_url",
    )
    headers: Secret | None = setting(
        None, "Headers that are sent along, such as a token: name=value pairs, separated by commas."
    )
    sample_ratio: float = setting(
        0.01, "Share of looks that are traced, the same in every service; 0: none, only figures.", min=0, max=1
    )
    service_name: str = setting(
        "camserver", "Name of this installation at the collector; services are told as NAME-worker.", min_chars=1
    )
    metrics_every_sec: int = setting(60, "How often figures are sent.", min=1, max=3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked. `sources` says for each "section.key" where its value came from."""

    server: ServerSettings = section("The installation as a whole.")
    store: StoreSettings = section("The database.")
    objects: ObjectSettings = section("Where pictures and clips are kept.")
    web: WebSettings = section("Web pages and API.")
    oidc: OidcSettings = section("Signing in with an OpenID Connect provider; none by default.")
    control: ControlSettings = section("The workers' side of the server.")
    streamer: StreamerSettings = section("The process that shows live video to browsers.")
    worker: WorkerSettings = section("The process that talks to cameras.")
    analyzer: AnalyzerSettings = section("The service that says what a picture shows.")
    detections: DetectionPolicy = section("What the analyzer that comes with camserver makes of a picture.")
    vocabulary: VocabularySettings = section("The tags an analyzer may answer with.")
    looks: LookPolicy = section("When and how a camera is looked at.")
    health: HealthPolicy = section("When something is wrong with a camera itself.")
    gate: GatePolicy = section("Which looks are worth analyzing.")
    jobs: JobPolicy = section("Analysis jobs: attempts, back-off, bounds.")
    leases: LeasePolicy = section("Which worker holds which camera, and for how long.")
    certificates: CertificatePolicy = section("How long certificates of workers live.")
    assignment: AssignmentPolicy = section("How cameras are given to workers and moved between them.")
    events: EventPolicy = section("When frames become one event.")
    incidents: IncidentPolicy = section("When events become one incident.")
    stationary: StationaryPolicy = section("Things that stay where they are and so are no news.")
    retention: RetentionPolicy = section("How long evidence is kept.")
    deliveries: DeliveriesPolicy = section("Messages and copies on their way out: attempts, back-off, bounds.")
    notify: NotifyPolicy = section("When people are told; whom, and through what, is set in receivers and rules.")
    llm: LlmSettings = section("The language model that is asked about unclear events; none by default.")
    llm_review: LlmReviewPolicy = section("When the language model is asked about an event, and for what.")
    scoring: ScoringPolicy = section("How rows of a sheet are scored by a language model, that of [llm].")
    sheet: SheetLayout = section("Where a sheet that is scored holds what.")
    summaries: SummaryPolicy = section("The daily summary of each site.")
    admission: AdmissionPolicy = section("How many live views are admitted, and for how long.")
    suggest: SuggestPolicy = section("Which camera is suggested for watching now.")
    media: MediaSettings = section("Signed links to pictures and clips.")
    archive: ArchivePolicy = section("Copies of pictures at archives: folders, buckets, Google Drive.")
    drive: DriveSettings = section("An archive on Google Drive that is made from these settings.")
    webhook: WebhookSettings = section("A receiver of notifications that is made from this setting.")
    availability: AvailabilityPolicy = section(
        "When a camera counts as available, and how much of the time it shall."
    )
    metrics: MetricsSettings = section("Figures for Prometheus.")
    telemetry: TelemetrySettings = section("Traces and figures for an OpenTelemetry collector; none by default.")
    demo: DemoSettings = section("The simulated cameras of `camserver up --demo`.")
    log: LogSettings = section("Logging.")

    config_file: Path | None
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
