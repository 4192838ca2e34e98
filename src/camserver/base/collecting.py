"""How often Python looks for garbage that holds itself together.

What requests and jobs leave behind goes with its last reference. Looking for more after every 700 new objects, and
every so often through all that a process ever made, was a tenth of a dispatcher's time.
"""

import gc

# New objects after which the young ones are looked through, and after how many such rounds the older ones are.
YOUNG_MAX = 10_000
ROUNDS = (20, 50)


def collect_seldom() -> None:
    """For a process that runs for long: what is there now is taken to stay, and new objects are let gather."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *ROUNDS)
