"""The alerts in deploy/observability, judged and fired by Prometheus' own tool."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.rig.processes import REPOSITORY

OBSERVABILITY = REPOSITORY / "deploy" / "observability"


def promtool(*words: str, folder: Path = OBSERVABILITY) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail("prometheus is missing; see tools/system_packages.py")
        pytest.skip("prometheus is missing; see tools/system_packages.py")
    return subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_prometheus_understands_its_configuration() -> None:
    done = promtool("check", "config", "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_shall_and_not_otherwise() -> None:
    done = promtool("test", "rules", "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    rules = yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text())["groups"]
    alerts = {rule["alert"] for group in rules for rule in group["rules"]}
    cases = yaml.safe_load((OBSERVABILITY / "alerts_test.yaml").read_text())["tests"]
    expected = [one["labels"] for case in cases for asked in case["promql_expr_test"] for one in asked["exp_samples"]]
    assert {found for text in expected for found in re.findall(r'alertname="(\w+)"', text)} == alerts


def test_a_case_fails_when_its_rule_is_spoiled(tmp_path: Path) -> None:
    text = (OBSERVABILITY / "alerts.yaml").read_text()
    spoiled = text.replace("max(camserver_workers_silent) > 0", "max(camserver_workers_silent) > 1")
    assert spoiled != text
    (tmp_path / "alerts.yaml").write_text(spoiled)
    shutil.copy(OBSERVABILITY / "alerts_test.yaml", tmp_path)
    done = promtool("test", "rules", "alerts_test.yaml", folder=tmp_path)
    assert done.returncode != 0
    assert "CamserverWorkerSilent" in done.stdout + done.stderr
