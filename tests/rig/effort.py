"""How often tests repeat what chance decides.

In `make test` often enough to meet each kind of thing, in `make soak` (TEST_THOROUGH=1) many times more.
"""

import os
from typing import Final

THOROUGH: Final = os.environ.get("TEST_THOROUGH", "") not in ("", "0")


def times(usual: int, thorough: int) -> int:
    return thorough if THOROUGH else usual
