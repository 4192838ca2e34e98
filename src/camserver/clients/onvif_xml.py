"""SOAP messages of ONVIF devices: written as text, read without trust.

Devices are strangers on the network, so what they send is bounded, and a document type (the way to entities, and
with them to files and to memory without end) is refused. Names of elements are compared without their namespace:
makers mix versions of the same one.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from camserver.base.errors import Unavailable

DOCUMENT_MAX_BYTES = 1_000_000
ELEMENTS_MAX = 20_000
DEPTH_MAX = 64

SOAP = "http://www.w3.org/2003/05/soap-envelope"
ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
DISCOVERY = "http://schemas.xmlsoap.org/ws/2005/04/discovery"
NETWORK = "http://www.onvif.org/ver10/network/wsdl"
DEVICE = "http://www.onvif.org/ver10/device/wsdl"
MEDIA = "http://www.onvif.org/ver10/media/wsdl"
MEDIA2 = "http://www.onvif.org/ver20/media/wsdl"
SCHEMA = "http://www.onvif.org/ver10/schema"


class Malformed(Unavailable):
    """What came is no XML that is read here; the message holds nothing of it."""

    code = "malformed_xml"


def envelope(header: str, body: str) -> bytes:
    """A SOAP message of parts that are XML already."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:a="{ADDRESSING}" xmlns:d="{DISCOVERY}" xmlns:dn="{NETWORK}" '
        f'xmlns:tds="{DEVICE}" xmlns:trt="{MEDIA}" xmlns:tr2="{MEDIA2}" xmlns:tt="{SCHEMA}">'
        f"<s:Header>{header}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    ).encode()


def escaped(text: str) -> str:
    return escape(text)


def parse(data: bytes) -> Element:
    """The root of a document; Malformed when it is none, or one that is too large or too clever."""
    if len(data) > DOCUMENT_MAX_BYTES:
        raise Malformed(f"the device's answer is longer than {DOCUMENT_MAX_BYTES} bytes")
    reader = _Reader()
    try:
        return reader.read(data)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise Malformed(f"the device's answer is no XML ({type(error).__name__})") from None


class _Reader:
    def __init__(self) -> None:
        self._builder = TreeBuilder()
        self._elements = 0
        self._depth = 0

    def read(self, data: bytes) -> Element:
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._builder.data
        parser.StartDoctypeDeclHandler = self._doctype
        parser.Parse(data, True)
        return self._builder.close()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        if self._elements > ELEMENTS_MAX or self._depth > DEPTH_MAX:
            raise Malformed("the device's answer has too many elements")
        self._builder.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._builder.end(_local(name))

    def _doctype(self, *_: object) -> None:
        raise Malformed("the device's answer has a document type, which is not read")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def find(element: Element, *path: str) -> Element | None:
    """The first element down a path of names; between two of them nothing may be left out."""
    for name in path:
        child = element.find(name)
        if child is None:
            return None
        element = child
    return element


def find_all(element: Element, name: str) -> Iterator[Element]:
    """Every element of that name, however deep."""
    return element.iter(name)


def text(element: Element | None, *path: str) -> str:
    """The text down a path, without blanks around it; empty when there is none."""
    found = None if element is None else find(element, *path)
    return "" if found is None else (found.text or "").strip()


def attribute(element: Element | None, name: str) -> str:
    return "" if element is None else element.get(name, "").strip()
