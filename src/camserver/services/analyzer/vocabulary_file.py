"""The vocabulary an analyzer was given last, in a file: it survives a restart, as the contract wants."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from camserver.base.errors import BadInput, CamError, Conflict, Unavailable
from camserver.base.folders import write_whole
from camserver.base.log import get_logger
from camserver.domain.vocabulary import Vocabulary, parse_vocabulary

log = get_logger(__name__)


class VocabularyMismatch(Conflict):
    code = "schema_mismatch"


@dataclass(frozen=True, slots=True)
class Held:
    """As it came. `schema` is the document, `received_at` ISO 8601 in UTC."""

    schema_version: str
    schema: dict[str, Any]
    received_at: str


class VocabularyFile:
    """Reading and writing are work for a thread; what is held can be asked for at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: Held | None = None
        self._vocabulary: Vocabulary | None = None

    @property
    def held(self) -> Held | None:
        return self._held

    def load(self) -> None:
        """What was put before. A file that is not whole counts as none: the server puts the vocabulary again."""
        try:
            held = Held(**json.loads(self._path.read_text(encoding="utf-8")))
            vocabulary = parse_vocabulary(held.schema)
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError, CamError) as error:
            log.warning("kept vocabulary not readable", path=str(self._path), cause=str(error))
            return
        self._held, self._vocabulary = held, vocabulary

    def put(self, held: Held) -> None:
        """Keeps a vocabulary; BadInput when it is none. It is in force once it is on disk."""
        vocabulary = parse_vocabulary(held.schema)
        content = _encoded(held)
        try:
            self._write(content)
        except OSError as error:
            raise Unavailable(
                f"the vocabulary can't be kept in {self._path} ({error.strerror}); check the disk of server.data_dir"
            ) from error
        self._held, self._vocabulary = held, vocabulary

    def expect(self, version: str) -> Vocabulary:
        """The vocabulary of that version, or VocabularyMismatch."""
        if self._vocabulary is None or self._vocabulary.version != version:
            has = "none was put yet" if self._vocabulary is None else f"{self._vocabulary.version!r} is in force"
            raise VocabularyMismatch(f"asked for the vocabulary {version!r}, but {has}; put it by PUT /v1/schema")
        return self._vocabulary

    def _write(self, content: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, content)


def _encoded(held: Held) -> bytes:
    """As it is kept. BadInput for what Python reads as JSON and nobody else does: halves of characters, NaN."""
    try:
        return json.dumps(asdict(held), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput("the vocabulary holds half a character (a lone surrogate); correct the document") from None
    except ValueError:
        raise BadInput("the vocabulary holds a number that is none (NaN or Infinity); correct the document") from None
