"""A fake analyzer: the whole analyzer contract over HTTP, seeing what the picture tells it to see.

`server.FakeAnalyzer` runs on the test's loop; `python -m tests.fakes.analyzer` is the same as a process of
its own, steered through `remote.RemoteAnalyzer`.
"""

from tests.fakes.analyzer.answers import Seen
from tests.fakes.analyzer.faults import BOASTS, BREAKS, SLIPS, Fault, Rule
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.fakes.analyzer.server import FakeAnalyzer, Recorded

__all__ = ["BOASTS", "BREAKS", "SLIPS", "FakeAnalyzer", "Fault", "Recorded", "RemoteAnalyzer", "Rule", "Seen"]
