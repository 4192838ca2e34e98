"""One look is one trace, from the camera to the message about it, over all processes; and so are its log lines."""

from collections import defaultdict
from pathlib import Path

from camserver.base.traces import Step
from tests.e2e.installation import installation, two_pictures
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.fakes.otlp import FakeCollector, GotSpan, collecting
from tests.fakes.webhook import Act, FakeWebhook
from tests.rig.polling import poll_async
from tests.rig.processes import Launcher


def traces_of(collector: FakeCollector) -> dict[str, list[GotSpan]]:
    found: dict[str, list[GotSpan]] = defaultdict(list)
    for span in list(collector.spans):
        found[span.trace_id].append(span)
    return found


async def test_one_trace_leads_from_the_look_to_the_message(launcher: Launcher, tmp_path: Path) -> None:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    async with FakeWebhook() as hook:
        hook.acts.append(Act(500))
        with collecting() as collector:
            house = installation(
                launcher,
                tmp_path / "data",
                analyzer={"url": analyzer.url},
                webhook={"url": hook.url},
                deliveries={"allow_loopback": True, "backoff_base_sec": 0.1},
                notify={"min_severity": 0},
                telemetry={"endpoint": collector.url, "sample_ratio": 1.0, "metrics_every_sec": 1},
                log={"format": "json", "level": "debug"},
            )
            up = await house.ready()
            await house.command("camera", "add", "entrance", two_pictures(tmp_path / "pictures", (320, 240)))

            async def whole() -> list[GotSpan] | None:
                for spans in traces_of(collector).values():
                    messages = [span for span in spans if span.attributes.get("camserver.kind") == "message"]
                    if {span.name for span in spans} == set(Step) and len(messages) > 1:
                        return spans
                return None

            spans = await poll_async(whole, "a whole trace")
            assert spans is not None
            _hangs_together(spans)

            async def told() -> bool:
                return {"camserver_up", "camserver_frames_recorded_total"} <= collector.metrics.keys()

            await poll_async(told, "figures")
            logged = [line for line in up.log() if line.get("trace_id") == spans[0].trace_id]
            assert {"look_recorded", "delivery_attempt_failed"} <= {line["event"] for line in logged}
            await up.stop()
    assert analyzer.process is not None
    await analyzer.process.stop()


def _hangs_together(spans: list[GotSpan]) -> None:
    by_id = {span.span_id: span for span in spans}
    (root,) = [span for span in spans if not span.parent_id]
    assert root.name == "look"
    for span in spans:
        assert span.ended_ns >= span.started_ns
        # Processes of one machine; the worker follows the server's clock by what it hears in messages.
        assert span.started_ns >= root.started_ns - 2_000_000_000
        assert span is root or span.parent_id in by_id
    services = {span.name: span.service for span in spans}
    assert services["look"] == "camserver-worker"
    assert services["record"] == "camserver-control"
    assert services["deliver"] == "camserver-dispatcher"
    cameras = {span.attributes.get("camserver.camera_id") for span in spans if span.name != "deliver"}
    assert cameras == {"entrance"}
    assert root.attributes["camserver.intent_id"]
    assert root.attributes["camserver.generation"] >= 1
    tries = [span for span in spans if span.attributes.get("camserver.kind") == "message"]
    assert {span.is_error for span in tries} == {True, False}
