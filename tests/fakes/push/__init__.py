"""A fake push service, and the browsers behind it.

It checks what a real one checks (VAPID: who sends, to whom, until when) and opens what a browser would open, with
code of its own. It can also be slow, refuse, forget subscriptions, cut off and lie.
"""

from tests.fakes.push.browser import Browser
from tests.fakes.push.server import Fault, Got, PushService

__all__ = ["Browser", "Fault", "Got", "PushService"]
