"""How the fake analyzer misbehaves: which fault, for which requests, how often."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

ANALYZE = "/v1/analyze"
Answer = dict[str, object]
Breach = Callable[[Answer], object]


class FaultKind(StrEnum):
    SLOW = "slow"  # the right answer, after `seconds`
    HOLD = "hold"  # the right answer, once the test releases it
    RESET = "reset"  # the request is read, then the connection is reset without an answer
    CUT_OFF = "cut_off"  # the answer breaks off in the middle of its body
    STATUS = "status"  # an error status with the contract's error body
    MALFORMED = "malformed"  # 200 with a body that is no JSON
    BREAK = "break"  # 200 with JSON that breaks the contract; `breach` is a key of BREAKS
    HUGE = "huge"  # 200 with a body of `body_bytes`, valid JSON all the same
    REDIRECT = "redirect"  # to `location`


ERROR_NAMES = {
    400: "bad_request",
    409: "schema_mismatch",
    429: "overloaded",
    500: "internal",
    503: "unavailable",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to misbehave; make it with the functions below the fields."""

    kind: FaultKind
    seconds: float = 0.0
    status: int = 200
    retry_after: str | None = None  # the header as it is sent: seconds, a date, or nonsense
    breach: str = ""
    body_bytes: int = 0
    location: str = ""

    @staticmethod
    def slow(seconds: float) -> "Fault":
        return Fault(FaultKind.SLOW, seconds=seconds)

    @staticmethod
    def hold() -> "Fault":
        return Fault(FaultKind.HOLD)

    @staticmethod
    def reset() -> "Fault":
        return Fault(FaultKind.RESET)

    @staticmethod
    def cut_off() -> "Fault":
        return Fault(FaultKind.CUT_OFF)

    @staticmethod
    def answer_status(status: int, retry_after: str | None = None) -> "Fault":
        return Fault(FaultKind.STATUS, status=status, retry_after=retry_after)

    @staticmethod
    def malformed() -> "Fault":
        return Fault(FaultKind.MALFORMED)

    @staticmethod
    def break_contract(breach: str) -> "Fault":
        if breach not in BREAKS | SLIPS | BOASTS:
            raise ValueError(f"no breach is called {breach!r}; there are {sorted(BREAKS | SLIPS | BOASTS)}")
        return Fault(FaultKind.BREAK, breach=breach)

    @staticmethod
    def wrong_camera() -> "Fault":
        return Fault.break_contract("camera_id:other")

    @staticmethod
    def huge(body_bytes: int = 50_000_000) -> "Fault":
        return Fault(FaultKind.HUGE, body_bytes=body_bytes)

    @staticmethod
    def redirect(location: str, status: int = 307) -> "Fault":
        return Fault(FaultKind.REDIRECT, status=status, location=location)

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, object]) -> "Fault":
        values = dict(data)
        return Fault(FaultKind(str(values.pop("kind"))), **values)  # type: ignore[arg-type]  # made by to_json


@dataclass(slots=True)
class Rule:
    """A fault for the requests that match; the first rule that applies wins."""

    fault: Fault
    path: str = ANALYZE
    method: str | None = None
    camera_id: str | None = None
    after: int = 0  # lets this many matching requests pass first
    times: int | None = None  # then strikes this often; None: always

    def strikes(self, method: str, path: str, camera_id: str | None) -> bool:
        """Whether it hits this request; counts down as it goes."""
        if path != self.path or (self.method or method) != method:
            return False
        if self.camera_id is not None and self.camera_id != camera_id:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            if self.times <= 0:
                return False
            self.times -= 1
        return True

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, object]) -> "Rule":
        values = dict(data)
        fault = values.pop("fault")
        assert isinstance(fault, dict)
        return Rule(Fault.from_json(fault), **values)  # type: ignore[arg-type]  # made by to_json


@dataclass(slots=True)
class Faults:
    """The rules in force."""

    rules: list[Rule] = field(default_factory=list)

    def pick(self, method: str, path: str, camera_id: str | None) -> Fault | None:
        for rule in self.rules:
            if rule.strikes(method, path, camera_id):
                return rule.fault
        return None


def _set(name: str, value: object) -> Callable[[Answer], object]:
    def change(answer: Answer) -> object:
        return {**answer, name: value}

    return change


def _without(name: str) -> Callable[[Answer], object]:
    def change(answer: Answer) -> object:
        return {key: value for key, value in answer.items() if key != name}

    return change


def _box(**values: object) -> Callable[[Answer], object]:
    return _set("bboxes", [{"x1": 0.1, "y1": 0.1, "x2": 0.2, "y2": 0.2, **values}])


_REQUIRED = (
    "schema_version",
    "camera_id",
    "captured_at",
    "analyzed",
    "detected",
    "primary_event",
    "tags",
    "severity",
    "unknown_flag",
)

# Each breach is wrong in exactly one way, so that whoever checks the contract is caught at that one.
BREAKS: dict[str, Breach] = {
    **{f"{name}:missing": _without(name) for name in _REQUIRED},
    **{f"{name}:null": _set(name, None) for name in _REQUIRED},
    "answer:list": lambda answer: [answer],
    "answer:string": lambda answer: "a person walks by",
    "answer:empty": lambda answer: {},
    "schema_version:other": _set("schema_version", "1999-01-01.1"),
    "schema_version:number": _set("schema_version", 20251228),
    "camera_id:other": _set("camera_id", "cam_of_somebody_else"),
    "captured_at:other": _set("captured_at", "1999-01-01T00:00:00Z"),
    "captured_at:number": _set("captured_at", 1_767_225_600_000),
    "analyzed:string": _set("analyzed", "yes"),
    "detected:string": _set("detected", "true"),
    "detected:number": _set("detected", 1),
    "primary_event:unheard": _set("primary_event", "ghost"),
    "primary_event:list": _set("primary_event", ["human"]),
    "tags:string": _set("tags", "count.single"),
    "tags:number_inside": _set("tags", [1]),
    "tags:unheard": _set("tags", ["ghost.friendly"]),
    "severity:high": _set("severity", 4),
    "severity:negative": _set("severity", -1),
    "severity:fraction": _set("severity", 1.5),
    "severity:string": _set("severity", "2"),
    "severity:bool": _set("severity", True),
    "unknown_flag:number": _set("unknown_flag", 0),
    "confidence:high": _set("confidence", 1.5),
    "confidence:negative": _set("confidence", -0.1),
    "confidence:string": _set("confidence", "0.9"),
    "confidence:nan": _set("confidence", float("nan")),
    "count_hint:negative": _set("count_hint", -1),
    "count_hint:string": _set("count_hint", "1"),
    "request_id:number": _set("request_id", 7),
    "request_id:other": _set("request_id", "of_somebody_else"),
    "bboxes:object": _set("bboxes", {}),
    "bboxes:string_inside": _set("bboxes", ["person"]),
    "bboxes:outside": _box(x2=1.2),
    "bboxes:negative": _box(x1=-0.1),
    "bboxes:turned": _box(x1=0.3),
    "bboxes:corner_missing": _set("bboxes", [{"x1": 0.1, "y1": 0.1, "x2": 0.2}]),
    "bboxes:conf_high": _box(conf=2),
    "bboxes:label_number": _box(label=3),
    "diff:string": _set("diff", "much"),
    "processing_ms:string": _set("processing_ms", "5 ms"),
    "model_info:string": _set("model_info", "fake 1"),
    "warnings:string": _set("warnings", "dark"),
}


def _says(**values: object) -> Callable[[Answer], object]:
    return lambda answer: {**answer, **values}


def _human(**values: object) -> Callable[[Answer], object]:
    """Of a picture that shows nothing, an answer that is right but for `values`."""
    right = {"detected": True, "primary_event": "human", "tags": ["count.single"], "severity": 0, "confidence": 0.9}
    return _says(**(right | values))


# Each field is right by itself; together they break a rule, or say more than the contract names. A server bears them.
SLIPS: dict[str, Breach] = {
    "detected:nothing": _says(detected=True),
    "detected:not_the_human": _human(detected=False),
    "unknown_flag:of_nothing": _says(unknown_flag=True),
    "unknown_flag:unsure": _human(confidence=0.4),
    "unknown_flag:unsure_hazard": _human(
        primary_event="hazard", tags=["hazard.smoke_like"], severity=3, confidence=0.6
    ),
    "primary_event:not_the_hazard": _human(tags=["hazard.smoke_like"], severity=3),
    "tags:both_counts": _human(tags=["count.multiple", "count.single"], severity=1),
    "answer:prose": _says(description="a person walks by"),
    "diff:more": _says(diff={"used_prev_image": False, "comment": "much"}),
    "model_info:more": _says(model_info={"name": "fake", "version": "1", "vendor": "nobody"}),
    "bboxes:more": _human(bboxes=[{"x1": 0.1, "y1": 0.1, "x2": 0.2, "y2": 0.2, "age": 40}]),
}
# What an analyzer says of itself and can't be.
BOASTS: dict[str, Breach] = {
    "max_image_bytes:small": _says(max_image_bytes=4_999_999),
    "max_image_bytes:text": _says(max_image_bytes="5 MB"),
    "supported_primary_events:unheard": _says(supported_primary_events=["none", "ghost"]),
    "supported_primary_events:empty": _says(supported_primary_events=[]),
    "recommended_infer_widths:narrow": _says(recommended_infer_widths=[1, 640]),
    "recommended_infer_widths:wide": _says(recommended_infer_widths=[640, 1_000_000]),
}


def broken(answer: Answer, breach: str) -> object:
    return (BREAKS | SLIPS | BOASTS)[breach](copy.deepcopy(answer))
