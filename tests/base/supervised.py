"""A program that runs a Supervisor, for tests that signal and kill it: its one argument is JSON.

    {"policy": {…}, "children": {"name": "Python source", …}}

It logs JSON lines to stderr and prints what `run()` returned.
"""

import asyncio
import dataclasses
import json
import os
import sys

from camserver.base import log
from camserver.base.supervise import ChildSpec, RestartPolicy, Supervisor


async def main() -> None:
    wanted = json.loads(sys.argv[1])
    log.configure("supervised", "json")
    children = [
        ChildSpec(name, [sys.executable, "-c", source], dict(os.environ))
        for name, source in wanted["children"].items()
    ]
    gave_up = await Supervisor(children, RestartPolicy(**wanted["policy"])).run()
    print(json.dumps(dataclasses.asdict(gave_up) if gave_up else None))


if __name__ == "__main__":
    asyncio.run(main())
