"""What every benchmark prints: a readable table, then one JSON line. A ratio above 1 means that we are better."""

import json
import os
import sys
from dataclasses import asdict, dataclass

QUICK = os.environ.get("QUICK", "") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Row:
    """`aim` None: a figure to know, without an aim."""

    name: str
    ours: float
    peer: float | None
    peer_name: str
    ratio: float | None
    unit: str
    aim: float | None

    @property
    def met(self) -> bool | None:
        return None if self.aim is None or self.ratio is None else self.ratio >= self.aim


def more_is_better(name: str, ours: float, peer: float, peer_name: str, unit: str, aim: float | None = None) -> Row:
    return Row(name, ours, peer, peer_name, ours / peer, unit, aim)


def less_is_better(name: str, ours: float, peer: float, peer_name: str, unit: str, aim: float | None = None) -> Row:
    return Row(name, ours, peer, peer_name, peer / ours, unit, aim)


def figure(name: str, ours: float, unit: str) -> Row:
    return Row(name, ours, None, "", None, unit, None)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(bench: str, rows: list[Row]) -> None:
    width = max(len(row.name) for row in rows)
    for row in rows:
        against = "" if row.peer is None else f"  {row.peer:>12,.2f} {row.peer_name}"
        ratio = "" if row.ratio is None else f"  ratio {row.ratio:.2f}"
        aim = "" if row.aim is None else f"  aim {row.aim:g}: {'met' if row.met else 'MISSED'}"
        say(f"{row.name:<{width}}  {row.ours:>12,.2f} {row.unit}{against}{ratio}{aim}")
    printed = [_rounded({**asdict(row), "met": row.met}) for row in rows]
    print(json.dumps({"bench": bench, "rows": printed}), flush=True)


def _rounded(values: dict[str, object]) -> dict[str, object]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
