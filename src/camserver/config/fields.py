"""How a settings dataclass declares its fields: a value, its documentation and what it must look like.

Metadata: "doc"; the bounds "min" and "max" of a number; "min_chars" of a text; "form" = "http_url" or "networks";
"empty_refused", what to do instead, where an empty text does not count as not set; "secret_file", the file in
secrets_dir that keeps a secret which is not set; and for a default that follows from other settings "derive", with
"shown" as the text of that default in the reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from camserver.base.hosts import in_address, reached_at

T = TypeVar("T")
# What is chosen so far, by "section.key". A derived default may read settings that are not derived.
Chosen = Mapping[str, Any]


def setting(default: T, doc: str, **metadata: object) -> T:
    """A setting with a fixed default; None means that nothing is set."""
    made: T = field(default=default, metadata={"doc": doc, **metadata})
    return made


def derived(derive: Callable[[Chosen], T], shown: str, doc: str, **metadata: object) -> T:
    """A setting whose default depends on others, or (with an empty `shown`) on the machine."""
    made: T = field(metadata={"doc": doc, "derive": derive, "shown": shown, **metadata})
    return made


def section(doc: str, unused: str = "") -> Any:
    """A section. `unused` says what does not exist yet; setting one of its keys is answered by a warning."""
    return field(metadata={"section": doc, "unused": unused})


def address_of(service: str) -> Callable[[Chosen], str]:
    """Where a program on this machine reaches that service."""

    def derive(chosen: Chosen) -> str:
        host = str(chosen[f"{service}.host"])
        return f"http://{in_address(reached_at(host))}:{chosen[f'{service}.port']}"

    return derive
