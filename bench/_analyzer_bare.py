"""The bare model in a loop, nothing else: `asked` is {"model", "pictures", "detectors", "threads", "decodes"}.

`detectors` interpreters of `threads` threads each run at the same time. Without `decodes` each runs on a picture that
was put in once; with it, each decodes a JPEG for every run, brings it to the model's size and puts it in, one JPEG of
`pictures` (files) after the other, all in one thread. A line with a number of seconds starts a round; the answer is
{"pictures", "sec", "cpu_sec"}. Ends when its standard input does.
"""

import io
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]  # it ships no types
from PIL import Image

BAR_GREY = (127, 127, 127)


class Bare:
    """One interpreter; `pictures` are the JPEGs that it decodes, if any."""

    def __init__(self, model: bytes, first: bytes, threads: int, pictures: Iterator[bytes] | None) -> None:
        self._interpreter: Any = Interpreter(model_content=model, num_threads=threads)
        self._interpreter.allocate_tensors()
        (details,) = self._interpreter.get_input_details()
        self._index, self._side = details["index"], int(details["shape"][1])
        self._pictures = pictures
        self._put(first)
        self._interpreter.invoke()

    def run(self) -> None:
        if self._pictures is not None:
            self._put(next(self._pictures))
        self._interpreter.invoke()

    def _put(self, picture: bytes) -> None:
        """As models of this form want it: its shape kept, bars beside it."""
        with Image.open(io.BytesIO(picture)) as opened:
            scale = self._side / max(opened.size)
            small = opened.convert("RGB").resize(
                (round(opened.width * scale), round(opened.height * scale)), Image.Resampling.BILINEAR
            )
        square = Image.new("RGB", (self._side, self._side), BAR_GREY)
        square.paste(small, (0, 0))
        self._interpreter.set_tensor(self._index, np.asarray(square)[np.newaxis])


def loop(made: Bare, deadline: float, counts: list[int]) -> None:
    count = 0
    while time.perf_counter() < deadline:
        made.run()
        count += 1
    counts.append(count)


def measure(interpreters: list[Bare], seconds: float) -> dict[str, float]:
    started, cpu_before = time.perf_counter(), time.process_time()
    counts: list[int] = []
    threads = [threading.Thread(target=loop, args=(one, started + seconds, counts)) for one in interpreters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_sec, cpu_sec = time.perf_counter() - started, time.process_time() - cpu_before
    return {"pictures": sum(counts), "sec": took_sec, "cpu_sec": cpu_sec}


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    model = Path(asked["model"]).read_bytes()
    pictures = [Path(one).read_bytes() for one in asked["pictures"]]
    interpreters = [
        Bare(model, pictures[0], asked["threads"], itertools.cycle(pictures) if asked["decodes"] else None)
        for _ in range(asked["detectors"])
    ]
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(interpreters, float(line))), flush=True)


if __name__ == "__main__":
    main()
