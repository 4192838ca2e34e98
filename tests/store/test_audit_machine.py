"""The audit log as a state machine, and under kill -9: whoever adds, seals, deletes and dies, the chain is whole."""

import asyncio
import signal
import subprocess
import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from camserver.domain import audit as rules
from camserver.domain.audit import DAY_MS
from camserver.services.web.audit_check import check_part
from camserver.store import Store, audit, audit_seals, open_store
from tests.rig.effort import times
from tests.store.conftest import Driven
from tests.store.dying_sealer import ENTRIES, KEY, NOW_MS, add

TENANT = audit.INSTALLATION
KEPT_DAYS = 60


async def seal_once(store: Store, now_ms: int) -> None:
    found = await store.read(audit_seals.unsealed, TENANT)
    if found.entries:
        made = rules.seal(found.last, TENANT, found.entries, KEY, now_ms)
        await store.write(audit_seals.put, made, [one.entry_id for one in found.entries])


class AuditMachine(RuleBasedStateMachine):
    driven: Driven

    @initialize()
    def begin(self) -> None:
        self.driven.wipe()
        self.now_ms = NOW_MS
        self.added = 0
        self.deleted = 0

    @rule(count=st.integers(1, 4))
    def somebody_does_something(self, count: int) -> None:
        for _ in range(count):
            entry = audit.Entry("did", self.now_ms, "", "thing", str(self.added))
            self.driven.do(self.driven.store.write(audit.add, TENANT, None, entry))
            self.added += 1

    @rule()
    def they_are_sealed(self) -> None:
        self.driven.do(seal_once(self.driven.store, self.now_ms))

    @rule(days=st.integers(1, 50))
    def time_goes_by(self, days: int) -> None:
        self.now_ms += days * DAY_MS

    @rule()
    def retention_deletes(self) -> None:
        cutoff = self.now_ms - KEPT_DAYS * DAY_MS
        found = self.driven.do(self.driven.store.read(audit_seals.prunable, TENANT, cutoff))
        if not found:
            return
        gone = [rules.pruned(seal, KEY, self.now_ms) for seal in found]
        deleted = self.driven.do(self.driven.store.write(audit_seals.prune, gone, self.now_ms))
        self.deleted += deleted
        self.added += bool(deleted)

    @invariant()
    def the_chain_is_whole_and_nothing_is_lost(self) -> None:
        if not hasattr(self, "now_ms"):
            return
        part = self.driven.do(check_part(self.driven.store, TENANT, 0, KEY, None, self.now_ms))
        assert part.findings == ()
        [chain] = self.driven.do(self.driven.store.read(audit_seals.chains, (TENANT,)))
        assert chain.entries + chain.unsealed == self.added - self.deleted


def test_whatever_is_done_the_chain_is_whole(driven: Driven) -> None:
    examples = times(10, 100) if driven.store.dialect.value == "sqlite" else times(3, 25)
    machine = type("Machine", (AuditMachine,), {"driven": driven})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=15, deadline=None)
    )


@pytest.mark.parametrize("moment", ["unsealed", "sealing"])
async def test_a_kill_between_entries_and_seal_loses_nothing(db_url: str, moment: str) -> None:
    argv = [sys.executable, "-c", "from tests.store.dying_sealer import start; start()", db_url, moment]
    process = await asyncio.to_thread(subprocess.run, argv, capture_output=True, timeout=120, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    store = await open_store(db_url)
    try:
        await store.write(add, 1)
        waiting = await store.read(audit_seals.unsealed, TENANT)
        assert (len(waiting.entries), waiting.last) == (ENTRIES + 1, None)
        await seal_once(store, NOW_MS)
        part = await check_part(store, TENANT, 0, KEY, None, NOW_MS)
        assert (part.entries, part.findings) == (ENTRIES + 1, ())
    finally:
        await store.close()
