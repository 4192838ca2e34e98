"""What REGISTER and renewals mean to the store, and how their answers are said: by socket and by request alike."""

from camserver.base.errors import BadInput
from camserver.store.workers import Registration
from camserver.wire.worker import PROTOCOL, Held, Lost, Register


def registration(
    message: Register, worker_id: str, connected_epoch: int | None, proven_site_id: int | None
) -> Registration:
    """Who registers. BadInput when it speaks another version."""
    if message.protocol != PROTOCOL:
        raise BadInput(
            f"this server speaks protocol {PROTOCOL}, the worker {message.protocol}; install the same version on both"
        )
    return Registration(
        worker_id=worker_id,
        site=message.site,
        version=message.version,
        labels=tuple(sorted(message.labels.items())),
        slots=message.capacity.slots,
        cpu=message.capacity.cpu,
        gpu=message.capacity.gpu,
        mem=message.capacity.mem,
        boot_id=message.boot_id,
        connected_epoch=connected_epoch,
        proven_site_id=proven_site_id,
    )


def pairs_of(held: tuple[Held, ...]) -> tuple[tuple[str, int], ...]:
    return tuple([(one.camera_id, one.generation) for one in held])


def as_held(pairs: tuple[tuple[str, int], ...]) -> tuple[Held, ...]:
    return tuple(Held(camera_id=camera_id, generation=generation) for camera_id, generation in pairs)


def as_lost(triples: tuple[tuple[str, int, str], ...]) -> tuple[Lost, ...]:
    return tuple(
        Lost(camera_id=camera_id, generation=generation, reason=reason) for camera_id, generation, reason in triples
    )
