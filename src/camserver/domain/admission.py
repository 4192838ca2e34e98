"""How many live views a streamer admits: the settings and the budget that follows from them.

The order of checks and the viewings themselves come with live view.
"""

from dataclasses import dataclass

from camserver.domain.policy import setting


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The budget of live views, their life, and the load at which none is admitted."""

    total_stream_units: int = setting(50, "Stream units this machine can carry.", min=1, max=100_000)
    max_ui_users: int = setting(
        10, "Users of the pages at one time that a suggestion is reserved for.", min=0, max=10_000
    )
    reserved_baseline_units: int = setting(5, "Units kept for looks and other steady work.", min=0, max=100_000)
    sub_stream_cost: int = setting(1, "Units of a sub stream.", min=1, max=1000)
    main_stream_cost: int = setting(2, "Units of a main stream.", min=1, max=1000)
    transcode_cost: int = setting(
        4, "Units of a stream that is transcoded, for instance under a mask.", min=1, max=1000
    )
    modal_ttl_sec: int = setting(300, "Longest time a live view stays open.", min=10, max=86_400)
    heartbeat_interval_sec: int = setting(30, "How often a live view says that it is still watched.", min=1, max=3600)
    heartbeat_grace_sec: int = setting(45, "A live view silent for longer than this ends.", min=1, max=3600)
    cleanup_interval_sec: int = setting(10, "How often ended live views are cleared away.", min=1, max=3600)
    cpu_warn_percent: float = setting(70.0, "CPU load shown as a warning.", min=1, max=100)
    cpu_reject_percent: float = setting(85.0, "CPU load above which no live view is admitted.", min=1, max=100)
    cpu_recover_percent: float = setting(60.0, "CPU load below which they are admitted again.", min=0, max=100)
    memory_warn_percent: float = setting(75.0, "Memory use shown as a warning.", min=1, max=100)
    memory_reject_percent: float = setting(90.0, "Memory use above which no live view is admitted.", min=1, max=100)
    memory_recover_percent: float = setting(70.0, "Memory use below which they are admitted again.", min=0, max=100)
    swap_warn_mb: int = setting(50, "Growth of swap since the start shown as a warning.", min=0, max=1_000_000)
    swap_reject_mb: int = setting(100, "Growth of swap above which no live view is admitted.", min=0, max=1_000_000)
    swap_recover_mb: int = setting(50, "Growth of swap below which they are admitted again.", min=0, max=1_000_000)
    overload_hold_sec: int = setting(60, "How long after an overload nothing is admitted.", min=0, max=3600)

    def suggest_reserve(self) -> int:
        """Units kept for the suggested camera: one sub stream for every user at worst."""
        return self.max_ui_users * self.sub_stream_cost

    def modal_budget(self) -> int:
        """Units that live views may use together; never negative."""
        return max(0, self.total_stream_units - self.reserved_baseline_units - self.suggest_reserve())
