"""Every setting of every rule explains itself, and the defaults are the decided ones."""

import dataclasses
import importlib
import pkgutil
import typing

import pytest

import camserver.domain
from camserver.domain.admission import AdmissionPolicy
from camserver.domain.events import EventPolicy
from camserver.domain.gate import GatePolicy
from camserver.domain.incidents import IncidentPolicy
from camserver.domain.jobs import JobPolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.domain.notices import DeliveryPolicy, NotifyPolicy
from camserver.domain.stationary import StationaryPolicy


def _policies() -> list[type]:
    found: set[type] = set()
    for module in pkgutil.iter_modules(camserver.domain.__path__):
        loaded = importlib.import_module(f"camserver.domain.{module.name}")
        found |= {value for name, value in vars(loaded).items() if name.endswith("Policy")}
    return sorted(found, key=lambda policy: policy.__name__)


POLICIES = _policies()
PLAIN = {int, float, str, bool, tuple[str, ...]}


def test_all_policies_are_found() -> None:
    assert {LeasePolicy, GatePolicy, StationaryPolicy, DeliveryPolicy} < set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_is_frozen_explains_each_field_and_keeps_its_own_bounds(policy: type) -> None:
    hints = typing.get_type_hints(policy)
    made = policy()
    for field in dataclasses.fields(policy):
        assert field.metadata["doc"].endswith("."), field.name
        assert hints[field.name] in PLAIN or typing.get_origin(hints[field.name]) is typing.Literal, field.name
        value = getattr(made, field.name)
        if hints[field.name] in (int, float):
            assert type(value) is hints[field.name], field.name
            assert field.metadata["min"] <= value <= field.metadata["max"], field.name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, value)
    assert not hasattr(made, "__dict__")


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        (EventPolicy(), {"close_grace_sec": 120, "merge_gap_sec": 90, "loitering_sec": 180}),
        (IncidentPolicy(), {"cut_min": 30}),
        (NotifyPolicy(), {"cooldown_sec": 300, "camera_cooldown_sec": 60, "min_severity": 2}),
        (DeliveryPolicy(), {"archive": False, "notify": False, "llm_review": False}),
        (
            JobPolicy(),
            {
                "max_attempt": 5,
                "max_age_sec": 86_400,
                "lock_sec": 60,
                "renew_every_sec": 20,
                "backoff_base_sec": 2,
                "backoff_cap_sec": 300,
                "camera_bound": 100,
                "backlog_jobs": 3,
                "backlog_age_sec": 120,
                "batch": 16,
            },
        ),
        (
            LeasePolicy(),
            {
                "ttl_sec": 90,
                "heartbeat_sec": 10,
                "margin_sec": 5,
                "start_timeout_sec": 15,
                "restart_grace_sec": 30,
                "retry_elsewhere_sec": 600,
                "max_camera_failures": 5,
                "late_after_sec": 120,
            },
        ),
        (
            LookPolicy(),
            {
                "polling_interval_sec": 60,
                "connect_timeout_sec": 3,
                "connect_timeout_vpn_sec": 5,
                "infer_width": 640,
                "diff_width": 320,
            },
        ),
        (
            GatePolicy(),
            {"rule": "contrast", "diff_ratio_no_event": 0.003, "luma_delta_no_event": 5, "force_infer_every_n": 60},
        ),
        (
            AdmissionPolicy(),
            {
                "total_stream_units": 50,
                "max_ui_users": 10,
                "reserved_baseline_units": 5,
                "sub_stream_cost": 1,
                "main_stream_cost": 2,
                "modal_ttl_sec": 300,
                "heartbeat_interval_sec": 30,
                "heartbeat_grace_sec": 45,
            },
        ),
    ],
)
def test_defaults(policy: object, wanted: dict[str, object]) -> None:
    assert {name: getattr(policy, name) for name in wanted} == wanted
