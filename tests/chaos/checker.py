"""Says what was lost, doubled or torn: pure over the records, the workers' ledger and the feed reader's notes.

Each rule yields one sentence a violation. An empty answer means that nothing acknowledged was lost or doubled, that
generations never interleaved as owner and that the feed has no hole.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from camserver.domain.leases import SKEW_MS
from camserver.objects.keys import Kind, frame_key, frame_uuid_of, is_draft
from tests.chaos.ledger import Acknowledged
from tests.chaos.records import Records, Row

# The first few of a kind say enough; a broken run would print thousands.
SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the run left behind."""

    records: Records
    acknowledged: Sequence[Acknowledged] = ()
    # seq -> (kind, at) as a reader of the feed saw it while the run went on, and the events it was told of.
    feed: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    events_seen: frozenset[str] = frozenset()
    worker_kills: int = 0


Rule = Callable[[Evidence], Iterator[str]]


def violations(evidence: Evidence) -> list[str]:
    """Everything that is wrong, by rule; at most `SHOWN_MAX` of a rule and how many more there are."""
    found: list[str] = []
    for rule in RULES:
        wrong = list(rule(evidence))
        found += wrong[:SHOWN_MAX]
        if len(wrong) > SHOWN_MAX:
            found.append(f"… and {len(wrong) - SHOWN_MAX} more of {rule.__name__}")
    return found


# Looks -----------------------------------------------------------------------------------------------------------


def acknowledged_looks_are_rows(evidence: Evidence) -> Iterator[str]:
    camera_id_of = {row["camera_key"]: row["camera_id"] for row in evidence.records.cameras}
    rows: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for frame in evidence.records.frames:
        rows[camera_id_of.get(frame["camera_key"], "?"), frame["generation"], frame["seq"]].append(frame)
    for one in evidence.acknowledged:
        found = rows[one.identity]
        if len(found) != 1:
            yield f"acknowledged look {one.identity} has {len(found)} rows"
        elif found[0]["frame_uuid"] != one.frame_uuid:
            yield f"acknowledged look {one.identity} is frame {found[0]['frame_uuid']}, not {one.frame_uuid}"
        elif bool(found[0]["late"]) != (one.standing == "late"):
            yield f"acknowledged look {one.identity} was said to be {one.standing}, its row says otherwise"


def looks_are_counted_once(evidence: Evidence) -> Iterator[str]:
    for name in ("frame_id", "frame_uuid"):
        yield from _repeated(f"frames with {name}", (row[name] for row in evidence.records.frames))
    identities = ((row["camera_key"], row["generation"], row["seq"]) for row in evidence.records.frames)
    yield from _repeated("frames of look", identities)


def pictures_are_there(evidence: Evidence) -> Iterator[str]:
    objects = evidence.records.objects
    for frame in evidence.records.frames:
        for kind in Kind:
            size_bytes = frame[f"{kind.value}_bytes"]
            if size_bytes is None:
                continue
            place = (frame["epoch_id"], frame["tenant_id"], frame["camera_key"], frame["captured_at"])
            key = frame_key(*place, frame["frame_uuid"], kind)
            if objects.get(key) != size_bytes:
                yield f"{key} has {objects.get(key)} bytes, its row says {size_bytes}"


def swept_epochs_hold_no_orphans(evidence: Evidence) -> Iterator[str]:
    swept = {f"e{row['epoch_id']}" for row in evidence.records.epochs if row["swept_at"] is not None}
    kept = {row["frame_uuid"] for row in evidence.records.frames}
    for key in evidence.records.objects:
        if key.partition("/")[0] in swept and (is_draft(key) or frame_uuid_of(key) not in kept):
            yield f"{key} has no row, though its epoch was swept"


def holes_are_recorded(evidence: Evidence) -> Iterator[str]:
    """A hole in seq is in frame_gaps and nothing else is; killing a worker costs at most one look of each camera."""
    seqs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for frame in evidence.records.frames:
        seqs[frame["camera_key"], frame["generation"]].add(frame["seq"])
    noted: dict[tuple[int, int], set[int]] = defaultdict(set)
    for gap in evidence.records.gaps:
        noted[gap["camera_key"], gap["generation"]].update(range(gap["first_seq"], gap["last_seq"] + 1))
    lost: Counter[int] = Counter()
    for lease in seqs.keys() | noted.keys():
        missing = set(range(1, max(seqs[lease], default=0) + 1)) - seqs[lease]
        lost[lease[0]] += len(missing)
        if missing != noted[lease]:
            yield f"lease {lease} lacks looks {sorted(missing)}, the gaps recorded are {sorted(noted[lease])}"
    for camera_key, count in lost.items():
        if count > evidence.worker_kills:
            yield f"camera {camera_key} lost {count} looks in {evidence.worker_kills} kills of workers"


# Leases ----------------------------------------------------------------------------------------------------------


def leases_do_not_overlap(evidence: Evidence) -> Iterator[str]:
    for camera_key, leases in _by(evidence.records.leases, "camera_key").items():
        ordered = sorted(leases, key=lambda row: int(row["generation"]))
        if [row["generation"] for row in ordered] != list(range(1, len(ordered) + 1)):
            yield f"camera {camera_key} has generations {[row['generation'] for row in ordered]}"
        for before, after in pairwise(ordered):
            if before["ended_at"] is None or before["ended_at"] > after["granted_at"]:
                yield (
                    f"camera {camera_key}: generation {before['generation']} ended at {before['ended_at']}, "
                    f"{after['generation']} began at {after['granted_at']}"
                )


def frames_are_of_their_lease(evidence: Evidence) -> Iterator[str]:
    leases = {(row["camera_key"], row["generation"]): row for row in evidence.records.leases}
    highest: dict[tuple[int, int], int] = defaultdict(int)
    for frame in evidence.records.frames:
        key = (frame["camera_key"], frame["generation"])
        highest[key] = max(highest[key], frame["seq"])
        lease = leases.get(key)
        if lease is None:
            yield f"frame {frame['frame_uuid']} is of {key}, which nobody ever held"
            continue
        ended_at = frame["captured_at"] if lease["ended_at"] is None else lease["ended_at"]
        if not lease["granted_at"] - SKEW_MS <= frame["captured_at"] <= ended_at + SKEW_MS:
            yield (
                f"frame {frame['frame_uuid']} was captured at {frame['captured_at']}, its lease {key} held from "
                f"{lease['granted_at']} to {lease['ended_at']}"
            )
    for key, lease in leases.items():
        if lease["last_seq"] != highest[key]:
            yield f"lease {key} says last_seq {lease['last_seq']}, its newest frame is {highest[key]}"


def owners_never_interleave(evidence: Evidence) -> Iterator[str]:
    """Live frames of a camera, as they were recorded, never go back to an earlier generation."""
    for camera_key, frames in _by(evidence.records.frames, "camera_key").items():
        newest = 0
        for frame in sorted(frames, key=lambda row: int(row["frame_id"])):
            if frame["late"]:
                continue
            if frame["generation"] < newest:
                yield (
                    f"camera {camera_key}: frame {frame['frame_id']} of generation {frame['generation']} is live "
                    f"after one of generation {newest}"
                )
            newest = max(newest, frame["generation"])


# Jobs ------------------------------------------------------------------------------------------------------------


def frames_that_passed_have_one_job(evidence: Evidence) -> Iterator[str]:
    count_of = Counter(row["frame_id"] for row in evidence.records.jobs)
    for frame in evidence.records.frames:
        wanted = int(frame["verdict"] != "skip" and frame["infer_bytes"] is not None)
        if count_of.pop(frame["frame_id"], 0) != wanted:
            yield f"frame {frame['frame_id']} ({frame['verdict']}) has not {wanted} job(s)"
    for frame_id, count in count_of.items():
        yield f"{count} job(s) of frame {frame_id}, which does not exist"


def jobs_are_done(evidence: Evidence) -> Iterator[str]:
    """The analyzer was well all the time and no bound was reached, so nothing explains another end."""
    frame_of = {row["frame_id"]: row for row in evidence.records.frames}
    for job in evidence.records.jobs:
        if job["status"] != "done":
            yield f"job {job['job_id']} is {job['status']} after {job['attempt']} attempts: {job['last_error']}"
        frame = frame_of.get(job["frame_id"])
        if frame is not None and bool(frame["analyzed"]) != (job["status"] == "done"):
            yield f"job {job['job_id']} is {job['status']}, its frame says analyzed = {frame['analyzed']}"
    with_job = {row["frame_id"] for row in evidence.records.jobs}
    for frame_id, frame in frame_of.items():
        if frame["analyzed"] and frame_id not in with_job:
            yield f"frame {frame_id} is analyzed and has no job"


def tags_are_written_once(evidence: Evidence) -> Iterator[str]:
    count_of = {row["frame_id"]: row["tags"] for row in evidence.records.tags}
    for frame in evidence.records.frames:
        tags = json.loads(frame["tags_json"]) if frame["tags_json"] else []
        if count_of.get(frame["frame_id"], 0) != len(tags):
            yield f"frame {frame['frame_id']} has {count_of.get(frame['frame_id'], 0)} tag rows for {tags}"


# Events ----------------------------------------------------------------------------------------------------------


def events_count_their_frames(evidence: Evidence) -> Iterator[str]:
    """An outcome that was applied twice shows as a count above the frames that are there."""
    events = {row["event_id"]: row for row in _of_sight(evidence)}
    frames = _by((row for row in evidence.records.frames if row["event_id"] is not None), "event_id")
    for event_id, event in events.items():
        own = frames.pop(event_id, [])
        if event["frame_count"] != len(own):
            yield f"event {event_id} counts {event['frame_count']} frames and has {len(own)}"
        if event["best_frame_id"] not in {row["frame_id"] for row in own}:
            yield f"event {event_id} has best frame {event['best_frame_id']}, which is none of its own"
        if any(row["camera_key"] != event["camera_key"] for row in own):
            yield f"event {event_id} holds frames of another camera"
        times = [row["captured_at"] for row in own]
        if own and (event["start_at"], event["last_seen_at"]) != (min(times), max(times)):
            yield f"event {event_id} does not span its frames"
    for event_id in frames:
        yield f"frames belong to event {event_id}, which does not exist"


def incidents_count_their_events(evidence: Evidence) -> Iterator[str]:
    incidents = {row["incident_id"]: row for row in evidence.records.incidents}
    events = _by(evidence.records.events, "incident_id")
    for incident_id, incident in incidents.items():
        own = events.pop(incident_id, [])
        if incident["event_count"] != len(own):
            yield f"incident {incident_id} counts {incident['event_count']} events and has {len(own)}"
        if any(row["camera_key"] != incident["camera_key"] for row in own):
            yield f"incident {incident_id} holds events of another camera"
    for incident_id in events:
        yield f"events belong to incident {incident_id}, which does not exist"


def a_camera_has_one_open_event(evidence: Evidence) -> Iterator[str]:
    opened = _by((row for row in _of_sight(evidence) if row["state"] == "open"), "camera_key")
    known = {row["camera_key"]: row["open_event_id"] for row in evidence.records.states}
    for camera_key in opened.keys() | known.keys():
        ids = [row["event_id"] for row in opened.get(camera_key, [])]
        expected = [] if known.get(camera_key) is None else [known[camera_key]]
        if ids != expected:
            yield f"camera {camera_key} has open events {ids}, its state says {expected}"


def deliveries_are_made_once(evidence: Evidence) -> Iterator[str]:
    yield from _repeated("deliveries of", map(_occasion, evidence.records.deliveries))


def _occasion(delivery: Row) -> tuple[object, ...]:
    """A frame has one of each kind; a summary, which comes when the run passes its hour, is of a site and a day."""
    if delivery["frame_id"] is not None:
        return delivery["kind"], delivery["frame_id"]
    return delivery["kind"], delivery["site_id"], str(delivery["request"])


def events_people_saw_are_there(evidence: Evidence) -> Iterator[str]:
    for lost in sorted(evidence.events_seen - {row["event_uuid"] for row in evidence.records.events}):
        yield f"event {lost} was in the feed and is gone"


# The feed --------------------------------------------------------------------------------------------------------


def the_feed_has_no_hole(evidence: Evidence) -> Iterator[str]:
    seqs = sorted(row["seq"] for row in evidence.records.changes)
    last = max((row["last_seq"] for row in evidence.records.counters), default=0)
    if seqs != list(range(1, last + 1)):
        missing = sorted(set(range(1, last + 1)) - set(seqs))
        beyond = [seq for seq in seqs if seq > last]
        yield f"the feed counts to {last}; missing {missing[:SHOWN_MAX]}, beyond it {beyond[:SHOWN_MAX]}"
        yield from _repeated("changes with seq", seqs)


def the_feed_reader_missed_nothing(evidence: Evidence) -> Iterator[str]:
    """What a reader saw is what is there: no number it passed over, none that meant something else afterwards."""
    rows = {row["seq"]: (row["kind"], row["created_at"]) for row in evidence.records.changes}
    if evidence.feed and sorted(evidence.feed) != list(range(1, max(evidence.feed) + 1)):
        missed = sorted(set(range(1, max(evidence.feed) + 1)) - evidence.feed.keys())
        yield f"the feed's reader was never shown {missed[:SHOWN_MAX]}"
    for seq, seen in evidence.feed.items():
        if rows.get(seq) != seen:
            yield f"change {seq} was {seen} when it was read and is {rows.get(seq)} now"


RULES: Sequence[Rule] = (
    acknowledged_looks_are_rows,
    looks_are_counted_once,
    pictures_are_there,
    swept_epochs_hold_no_orphans,
    holes_are_recorded,
    leases_do_not_overlap,
    frames_are_of_their_lease,
    owners_never_interleave,
    frames_that_passed_have_one_job,
    jobs_are_done,
    tags_are_written_once,
    events_count_their_frames,
    incidents_count_their_events,
    a_camera_has_one_open_event,
    deliveries_are_made_once,
    events_people_saw_are_there,
    the_feed_has_no_hole,
    the_feed_reader_missed_nothing,
)


def _of_sight(evidence: Evidence) -> list[Row]:
    """Events about what a camera sees; those about the camera itself have no frames of their own."""
    return [row for row in evidence.records.events if not row.get("subject")]


def _by(rows: Iterable[Row], name: str) -> dict[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[name]].append(row)
    return groups


def _repeated(what: str, values: Iterable[object]) -> Iterator[str]:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{count} {what} {value}"
