"""The fake as a process of its own."""

import argparse
import asyncio
import contextlib
import json

from tests.fakes.scoring_llm import (
    Behaviour,
    ByConcurrency,
    ByConcurrencyOverTime,
    ByRate,
    ByTokens,
    Capacity,
    InAnyWindow,
    ScoringLlm,
)
from tests.fakes.scoring_llm.server import serve_forever


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--places", type=int, default=50, help="capacity by what is in flight")
    parser.add_argument("--per-sec", type=float, default=0.0, help="capacity by requests a second instead")
    parser.add_argument("--tokens-per-sec", type=float, default=0.0, help="capacity by tokens a second instead")
    parser.add_argument("--window-sec", type=float, default=0.0, help="capacity by tokens in any such time instead")
    parser.add_argument("--window-tokens", type=float, default=0.0)
    parser.add_argument("--later", type=json.loads, default=[], help="places from seconds on: [[20, 12], [45, 48]]")
    parser.add_argument("--burst", type=float, default=0.0)
    parser.add_argument("--tells", action="store_true", help="send x-ratelimit headers")
    parser.add_argument("--latency-sec", type=float, default=0.2)
    parser.add_argument("--jitter-sec", type=float, default=0.05)
    parser.add_argument("--chances", type=json.loads, default={}, help='such as {"500": 0.005, "fenced": 0.02}')
    given = parser.parse_args()
    capacity: Capacity = ByConcurrency(given.places)
    if given.per_sec:
        capacity = ByRate(given.per_sec, given.burst or given.per_sec, given.tells)
    if given.tokens_per_sec:
        capacity = ByTokens(given.tokens_per_sec, given.burst or given.tokens_per_sec, given.tells)
    if given.window_sec:
        capacity = InAnyWindow(given.window_tokens, given.window_sec)
    if given.later:
        capacity = ByConcurrencyOverTime(given.places, given.later)
    behaviour = Behaviour(given.latency_sec, given.jitter_sec, given.chances, capacity=capacity)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_forever(ScoringLlm(behaviour, port=given.port)))


if __name__ == "__main__":
    main()
