"""What can be set about analyzers: where the server reaches them, and what the one that comes with camserver runs."""

# ruff: noqa: RUF009
# The calls in defaults below make dataclass fields, not values that instances would share.

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from camserver.config.fields import address_of, derived, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzerSettings:
    host: str = setting("127.0.0.1", "Address the analyzer that comes with camserver listens on.", min_chars=1)
    port: int = setting(9000, "Port of the analyzer that comes with camserver.", min=1, max=65535)
    url: str = derived(
        address_of("analyzer"),
        "http://127.0.0.1:9000",
        "Where the server reaches the analyzer. With the address of another one, `camserver up` does not start its "
        "own. Default: made from host and port.",
        form="http_url",
    )
    urls: tuple[str, ...] = setting(
        (),
        "Where the server reaches its analyzers when there are several; the least loaded is asked. `camserver up` "
        "starts its own only when its address is among them. Empty: the one at url.",
        form="http_url",
    )
    send_previous: bool = setting(True, "Whether a camera's picture before is sent along with the one to analyze.")
    night_from_hour: int = setting(
        22, "From this hour on, by the site's local time, analyzers are told that it is night.", min=0, max=23
    )
    night_until_hour: int = setting(
        5, "Until this hour. The same as night_from_hour: it is never night.", min=0, max=23
    )
    detector: Literal["litert", "onnx", "remote"] = setting(
        "litert",
        "What the analyzer that comes with camserver finds things with: a LiteRT or an ONNX model in model_path, or "
        "another analyzer at remote_url. A model in use of `camserver models` brings its own runtime.",
    )
    model_path: Path | None = setting(
        None,
        "File of another model for that analyzer; an ONNX one has a TOML of the same name beside it. Not set: the "
        "one in use of `camserver models`, else the one set-up fetched.",
    )
    model_sha256: str | None = setting(
        None, "What the file of model_path must be (sha256, 64 hex digits); another one is not run. Not set: any."
    )
    fast_model_path: Path | None = setting(
        None,
        "File of a smaller model for requests that ask for the profile `fast`. Not set: they get the same model as "
        "all others.",
    )
    fast_model_sha256: str | None = setting(
        None, "What the file of fast_model_path must be, as model_sha256 says it of model_path. Not set: any."
    )
    remote_url: str | None = setting(
        None, 'Address of the analyzer that requests are passed on to with detector = "remote".', form="http_url"
    )
    model_keys: tuple[str, ...] = setting(
        (),
        "Public keys (Ed25519, 64 hex digits each) of those whose models are trusted. With any, a model bundle must "
        "be signed by one of them.",
    )
    bundle_url: str | None = setting(
        None,
        "Address of a signed model bundle (zip). The analyzer looks for a newer one there and takes it into use; "
        "needs model_keys. Not set: models come only by `camserver models install`.",
        form="http_url",
    )
    bundle_check_hours: float = setting(24.0, "How often it looks for a newer bundle.", min=0.1, max=8760)
    bundle_max_bytes: int = setting(
        500_000_000, "Largest bundle it takes, packed or unpacked.", min=1_000_000, max=10_000_000_000
    )
    workers: int = setting(1, "Pictures analyzed at once; each takes about 60 MB of memory.", min=1, max=64)
    waiting_max: int = setting(
        16, "Pictures that may wait for their turn; one more is refused with 429.", min=0, max=1000
    )
    nice: int = setting(
        10, "How far the analyzer stands behind everything else on the CPU, 0 to 19 as in nice(1).", min=0, max=19
    )
    analyze_timeout_sec: float = setting(10.0, "Time-out of one analysis.", min=0.1, max=300)
    schema_timeout_sec: float = setting(5.0, "Time-out of vocabulary and capability requests.", min=0.1, max=300)
    health_timeout_sec: float = setting(3.0, "Time-out of a health request.", min=0.1, max=300)

    def __post_init__(self) -> None:
        default = address_of("analyzer")({"analyzer.host": self.host, "analyzer.port": self.port})
        if self.urls and self.url != default and self.url.rstrip("/") not in self.addresses:
            raise ValueError(f"url is {self.url}, which is not among urls; name it there too, or remove url")
        if self.detector == "remote" and self.remote_url is None:
            raise ValueError('detector is "remote", but remote_url does not say where that analyzer is; set it')
        if self.detector == "remote" and self._is_own(urlsplit(self.remote_url or "")):
            raise ValueError(f"remote_url is {self.remote_url}, which is this analyzer itself; name another one")
        if self.detector == "onnx" and self.model_path is not None and self.model_path.suffix != ".onnx":
            raise ValueError(f'detector is "onnx", but model_path is {self.model_path}; name a .onnx file')
        for name in ("model_sha256", "fast_model_sha256"):
            digits: str | None = getattr(self, name)
            if digits is not None and not re.fullmatch("[0-9a-fA-F]{64}", digits):
                raise ValueError(f"{name} is {digits[:80]!r}, which is no sha256 of 64 hex digits")
        for key in self.model_keys:
            if not re.fullmatch("[0-9a-fA-F]{64}", key):
                raise ValueError(f"model_keys holds {key[:80]!r}, which is no public key of 64 hex digits")

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every analyzer once."""
        return tuple(dict.fromkeys(url.rstrip("/") for url in self.urls or (self.url,)))

    @property
    def is_own(self) -> bool:
        """Whether one of the analyzers is the one that this installation starts itself."""
        return any(self._is_own(urlsplit(url)) for url in self.addresses)

    @property
    def needs_own_model(self) -> bool:
        """Whether the analyzer runs a model that these settings don't name."""
        return self.detector != "remote" and self.model_path is None

    def _is_own(self, asked: SplitResult) -> bool:
        own_hosts = {self.host.strip("[]"), "localhost", "127.0.0.1", "::1"}
        return asked.port == self.port and asked.hostname in own_hosts and asked.path in ("", "/")
