"""How often garbage is looked for."""

import subprocess
import sys

PROGRAM = """
import gc
from camserver.base.collecting import collect_seldom

class Ring:
    def __init__(self):
        self.own = self

collect_seldom()
assert gc.get_freeze_count() > 1_000
assert gc.isenabled()
seen = []
gc.callbacks.append(lambda phase, info: seen.append(info["collected"]) if phase == "stop" else None)
for _ in range(100_000):
    Ring()
assert sum(seen) > 50_000, "what holds itself together still goes"
assert len(seen) < 50
"""


def test_cycles_still_go_though_they_are_looked_for_less_often() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
