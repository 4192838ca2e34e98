"""Which language somebody is answered in: what the request asks for, else that of the account that makes it.

The account's is noted where it is recognized, before anything is refused to it. What is refused earlier (a foreign
host name, a body that is too large) has the request's own header to go by.
"""

from collections.abc import Mapping

from starlette.requests import HTTPConnection

from camserver.services.web.messages import Language

HEADER_READ_MAX_CHARS = 200
_OURS: Mapping[str, Language] = {"ja": "ja", "en": "en"}


def choose_language(accept_language: str, otherwise: Language = "en") -> Language:
    """The reader's language from the browser's header: the one of ours that is named with the highest weight."""
    best: tuple[float, Language] = (0.0, otherwise)
    for part in accept_language[:HEADER_READ_MAX_CHARS].split(","):
        name, *parameters = (one.strip().lower() for one in part.split(";"))
        language = _OURS.get(name.partition("-")[0])
        weight = _weight(parameters)
        if language is not None and weight > best[0]:
            best = (weight, language)
    return best[1]


def _weight(parameters: list[str]) -> float:
    """Of a name in the header, by its `q`; 0 when that is no number."""
    for one in parameters:
        name, _, value = one.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def note_language(request: HTTPConnection, of_account: str) -> None:
    """Said as soon as it is known who asks."""
    request.state.language = "ja" if of_account == "ja" else "en"


def language_of(request: HTTPConnection) -> Language:
    """What the request asks for, as pages do for the one they are shown in; else the account's."""
    otherwise: Language = getattr(request.state, "language", "en")
    return choose_language(request.headers.get("accept-language", ""), otherwise)
