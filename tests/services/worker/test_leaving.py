"""A worker that is told to stop says so before it gives its cameras back, so that it does not get them again."""

import asyncio
from pathlib import Path

from camserver.base.ready import Ready
from camserver.config import load
from camserver.domain.workers import WorkerState
from camserver.services.worker import service
from camserver.services.worker.waiting import end
from camserver.wire.worker import Ack, Heartbeat, Register, Report
from tests.services.worker.build import FollowingClock, start_message
from tests.services.worker.control import TOKEN, ScriptedControl


async def test_the_server_hears_of_draining_before_the_first_camera_is_given_back(tmp_path: Path) -> None:
    clock = FollowingClock()
    async with ScriptedControl(clock.now_ms) as control:
        settings = load(
            None, {"CAMSERVER_CONTROL_WORKER_TOKEN": TOKEN, "CAMSERVER_WORKER_SERVER_URL": control.url}, tmp_path
        )
        worker = asyncio.ensure_future(service.run(clock, settings, Ready()))
        await control.until(lambda one: isinstance(one, Register), "REGISTER")
        await control.send(start_message())
        await control.until(lambda one: isinstance(one, Ack), "ACK")
        await control.until_report("pipeline_ready")
        await end(worker)
        said = [
            one.state.value if isinstance(one, Heartbeat) else one.event_type
            for one in control.received
            if isinstance(one, Heartbeat | Report)
        ]
    assert said.index("pipeline_stopped") > said.index(WorkerState.DRAINING.value)
