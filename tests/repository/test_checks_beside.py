"""The checks that take a minute on one core, beside the tests of `make test` instead of before them.

Otherwise they are left out: `make types` and `make ui-test` run them alone.
"""

import os
import subprocess

import pytest

from .tree import ROOT

TIMEOUT_SEC = 1500
pytestmark = [
    pytest.mark.skipif("CHECKS_BESIDE" not in os.environ, reason="`make check` and `make ui-test` run these alone"),
    pytest.mark.timeout(TIMEOUT_SEC + 60),
]


@pytest.mark.parametrize("target", ["types", "ui-test"])
def test_a_check_finds_nothing(target: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST"))}
    argv = ["make", "--old-file=setup-dev", target]
    done = subprocess.run(
        argv, cwd=ROOT, env=kept, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=TIMEOUT_SEC,
    )  # fmt: skip
    assert done.returncode == 0, f"make {target} ended with {done.returncode}:\n{done.stdout}"
