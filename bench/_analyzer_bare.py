"""The bare model in a loop, nothing else: `asked` is {"model", "picture", "detectors", "threads"}.

`detectors` interpreters of `threads` threads each run at the same time on a picture that was put in once. A line with
a number of seconds starts a round; the answer is {"pictures", "sec", "cpu_sec"}. Ends when its standard input does.
"""

import io
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]  # it ships no types
from PIL import Image


def interpreter(model: bytes, picture: bytes, threads: int) -> Any:
    made = Interpreter(model_content=model, num_threads=threads)
    made.allocate_tensors()
    (details,) = made.get_input_details()
    side = int(details["shape"][1])
    with Image.open(io.BytesIO(picture)) as opened:
        square = opened.convert("RGB").resize((side, side))
    made.set_tensor(details["index"], np.asarray(square)[np.newaxis])
    made.invoke()
    return made


def loop(made: Any, deadline: float, counts: list[int]) -> None:
    count = 0
    while time.perf_counter() < deadline:
        made.invoke()
        count += 1
    counts.append(count)


def measure(interpreters: list[Any], seconds: float) -> dict[str, float]:
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
    model, picture = Path(asked["model"]).read_bytes(), Path(asked["picture"]).read_bytes()
    interpreters = [interpreter(model, picture, asked["threads"]) for _ in range(asked["detectors"])]
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(interpreters, float(line))), flush=True)


if __name__ == "__main__":
    main()
