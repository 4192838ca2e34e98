"""Being told to stop, where something else is caught.

A task that is cancelled gives back what it holds on its way out. When that fails too, what is raised is no longer the
cancellation but that failure; a loop that catches failures and goes on would then never stop. `asyncio.wait_for` of
Python 3.11, also inside a library, forgets a cancellation that comes at the same moment as what was waited for.
"""

import asyncio


def go_on_unless_cancelled() -> None:
    """For whoever has just caught an error and means to go on: raises the cancellation that the error may hide."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
