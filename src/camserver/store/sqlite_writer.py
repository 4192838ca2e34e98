"""The process that writes the SQLite file.

The server sends whole operations (pickled: function by reference, arguments by value) over a private socket; all
that have arrived are run in one transaction, a savepoint each, and answered after its commit. In a process of its
own because a writer thread shares the interpreter lock with whatever else is busy, and each statement takes it anew.

It ends when the socket ends, holds the owner lock until then, and ignores terminal signals: the server decides.
"""

import contextlib
import signal
import socket
import sqlite3
import struct
import sys
from collections.abc import Iterator
from typing import Any

from camserver.base.errors import Bug, CamError, Conflict, DataUnusable, StoreUnavailable
from camserver.store import pickling
from camserver.store.sqlite_tx import CACHE_KIB, SqliteTx, connect
from camserver.store.tx import drive

BATCH_MAX = 256
_HEADER = struct.Struct("!I")
_NUMBER = struct.Struct("!Q")
# The caller's number and the pickled operation. It is unpickled where its failure harms nobody else.
Request = tuple[int, bytes]
# The number, whether it succeeded, and the result or error.
Reply = tuple[int, bool, Any]
# No caller's: it stands before the replies of a batch that changed what `sql.RULING` names.
RULES_CHANGED: Reply = (0, True, None)
_RECEIVE_BYTES = 1 << 20


def frames(buffer: bytearray) -> Iterator[bytes]:
    """Takes the complete messages off the front of `buffer`."""
    start = 0
    while len(buffer) - start >= _HEADER.size:
        (size,) = _HEADER.unpack_from(buffer, start)
        end = start + _HEADER.size + size
        if len(buffer) < end:
            break
        yield bytes(memoryview(buffer)[start + _HEADER.size : end])
        start = end
    del buffer[:start]


def framed(message: bytes) -> bytes:
    return _HEADER.pack(len(message)) + message


def request(number: int, operation: object, args: object, kwargs: object) -> bytes:
    return framed(_NUMBER.pack(number) + pickling.dumps((operation, args, kwargs)))


def numbered(message: bytes) -> Request:
    return _NUMBER.unpack_from(message)[0], message[_NUMBER.size :]


def run_batch(connection: sqlite3.Connection, requests: list[Request]) -> list[Reply]:
    """Runs the requests in one transaction and answers each: (id, succeeded, result or error)."""
    replies: list[Reply] = []
    rules = False
    try:
        connection.execute("BEGIN IMMEDIATE")
        for request in requests:
            tx = SqliteTx(connection)
            replies.append(_run_one(connection, tx, request))
            rules |= tx.rules
            if not connection.in_transaction:
                # SQLite gave the whole transaction up (disk full): nothing of this batch was kept.
                raise sqlite3.OperationalError("the transaction was rolled back: " + str(replies[-1][2]))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        lost = translated(error)
        return [(request[0], False, lost) for request in requests]
    return [RULES_CHANGED, *replies] if rules else replies


def _run_one(connection: sqlite3.Connection, tx: SqliteTx, request: Request) -> Reply:
    request_id, message = request
    connection.execute("SAVEPOINT operation")
    try:
        operation, args, kwargs = pickling.loads(message)
        result = drive(operation(tx, *args, **kwargs))
        drive(tx.write_changes())
    except Exception as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
        return request_id, False, translated(error)
    connection.execute("RELEASE operation")
    return request_id, True, result


# Trying again does not help; part of the file may still be readable.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _primary_code(error: sqlite3.Error) -> int:
    """Without what an extended code says in its upper bytes; 0 for errors of the module's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def translated(error: Exception) -> Exception:
    """The error of our tree, where there is one; otherwise one that can be sent to the other process."""
    if isinstance(error, CamError):
        return error
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(f"SQLite refused a row that breaks a constraint ({error})")
    if isinstance(error, sqlite3.DatabaseError) and _primary_code(error) in _DAMAGED:
        return DataUnusable(
            f"the SQLite database is damaged ({error}); stop camserver, look after the disk and restore a backup "
            "with camserver restore --force, which keeps the file beside"
        )
    if isinstance(error, sqlite3.OperationalError):
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            # Wrong SQL, or a schema that is not ours: trying again would not help.
            return Bug(f"SQLite does not understand a statement ({error})")
        return StoreUnavailable(
            f"SQLite can't read or write ({error}); check free space and permissions of the data folder"
        )
    try:
        pickling.loads(pickling.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _answer(replies: list[Reply]) -> bytes:
    try:
        return framed(pickling.dumps(replies))
    except Exception as error:
        # Only the caller of the operation with the odd result may suffer for it, but its write stands.
        checked = [(i, ok, value) if _picklable(value) else (i, False, repr(error)) for i, ok, value in replies]
        return framed(pickling.dumps(checked))


def _picklable(value: object) -> bool:
    try:
        pickling.dumps(value)
    except Exception:
        return False
    return True


def serve(connection: sqlite3.Connection, channel: socket.socket) -> None:
    """Runs batches until the server closes its end."""
    buffer = bytearray()
    waiting: list[Request] = []
    # One for all: a new one of that size for each would be dearer than what is received.
    room = memoryview(bytearray(_RECEIVE_BYTES))
    while True:
        if not waiting:
            size = channel.recv_into(room)
            if not size:
                return
            buffer += room[:size]
        with contextlib.suppress(BlockingIOError):
            while len(waiting) < BATCH_MAX and (size := channel.recv_into(room, flags=socket.MSG_DONTWAIT)):
                buffer += room[:size]
                waiting.extend(numbered(message) for message in frames(buffer))
        waiting.extend(numbered(message) for message in frames(buffer))
        if waiting:
            channel.sendall(_answer(run_batch(connection, waiting[:BATCH_MAX])))
            del waiting[:BATCH_MAX]


def main() -> None:
    path, channel_fd = sys.argv[1], int(sys.argv[2])
    cache_kib = int(sys.argv[3]) if len(sys.argv) > 3 else CACHE_KIB
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = socket.socket(fileno=channel_fd)
    connection = connect(path, cache_kib=cache_kib)
    channel.sendall(framed(pickling.dumps("ready")))
    with contextlib.suppress(ConnectionError):
        serve(connection, channel)
    connection.close()
