"""What is in deploy/: judged by the programs it is for, and held against the settings and commands there are."""

import ipaddress
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from camserver.base.certificates import make_authority
from camserver.cli import main
from camserver.config import catalogue, load
from tests.rig.processes import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
COMPOSE = sorted((DEPLOY / "compose").glob("*.yaml"))
PROXIES = sorted((DEPLOY / "proxy").iterdir())
# What the compose specification has, as far as it is used here: a mistyped key is a key that nobody obeys.
SERVICE_KEYS = {
    *("image", "command", "restart", "init", "environment", "ports", "volumes", "read_only", "tmpfs", "cap_drop"),
    *("security_opt", "stop_grace_period", "healthcheck", "depends_on", "deploy", "profiles"),
}
HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period"}


def _lacks(package: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{package} is missing; see tools/system_packages.py")
    pytest.skip(f"{package} is missing; see tools/system_packages.py")


def _program(*names: str) -> str | None:
    return next((found for name in names if (found := shutil.which(name) or shutil.which(f"/usr/sbin/{name}"))), None)


def _with_certificates(text: str, folder: Path) -> str:
    """The example with a certificate that exists, and ports that nobody needs a privilege for."""
    pem = folder / "both.pem"
    pem.write_text(make_authority())
    return re.sub(r"/etc/ssl/(?:certs|private)/[\w.-]+", str(pem), text)


@pytest.mark.parametrize("name", ["proxy/nginx.conf", "compose/proxy.conf"])
def test_nginx_understands_its_examples(tmp_path: Path, name: str) -> None:
    nginx = _program("nginx") or _lacks("nginx-light")
    (tmp_path / "site.conf").write_text(_with_certificates((DEPLOY / name).read_text(), tmp_path))
    folders = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{folders}include {tmp_path}/site.conf;\n}}\n"
    )
    argv = [nginx, "-t", "-q", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_apache_understands_its_example(tmp_path: Path) -> None:
    apache = _program("apache2", "httpd") or _lacks("apache2-bin")
    modules = ("mpm_event", "authz_core", "proxy", "proxy_http", "proxy_wstunnel", "ssl", "headers", "rewrite")
    found = {name: next(Path("/usr/lib").glob(f"apache2/modules/mod_{name}.so"), None) for name in modules}
    loaded = "".join(f"LoadModule {name}_module {path}\n" for name, path in found.items() if path is not None)
    site = _with_certificates((DEPLOY / "proxy" / "apache.conf").read_text(), tmp_path)
    conf = tmp_path / "apache.conf"
    conf.write_text(f"ServerName localhost\nPidFile {tmp_path}/pid\nErrorLog {tmp_path}/log\n{loaded}{site}")
    argv = [apache, "-t", "-d", str(tmp_path), "-f", str(conf)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_caddy_understands_its_example() -> None:
    caddy = _program("caddy")
    if caddy is None:
        pytest.skip("caddy is in no package list of ours; tried where somebody has it")
    argv = [caddy, "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "proxy" / "Caddyfile")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PROXIES, ids=lambda path: path.name)
def test_every_proxy_leads_everything_to_its_service(path: Path) -> None:
    text = path.read_text()
    for place in ("/stream/", "/hls/", "/snapshot/", "/metrics", "/api", "/media", "8080", "8082"):
        assert place in text
    assert "cameras.example.com" in text


# Containers


def _merged(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_composition_holds_together(path: Path) -> None:
    whole = _merged(path)
    services, volumes = whole["services"], set(whole["volumes"])
    assert {key for key in whole if not key.startswith("x-")} == {"name", "services", "networks", "volumes"}
    known = {setting.variable for setting in catalogue.all_settings().values()}
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("healthcheck", {})) <= HEALTH_KEYS, name
        assert set(service.get("depends_on", {})) <= set(services), name
        image = service["image"]
        assert "/" not in image or image.count("/") == 1, "an image by its name, without a registry"
        assert image == "camserver" or ":" in image, "a version that is known"
        for volume in service.get("volumes", ()):
            begin = volume.partition(":")[0]
            if begin.startswith("."):
                assert (path.parent / begin).is_file(), f"{name}: {begin}"
            else:
                assert begin in volumes, f"{name}: {begin}"
        given = {key for key in service.get("environment", {}) if key.startswith("CAMSERVER_")}
        assert given <= known, name
        if image == "camserver":
            assert service["command"][0] in main.commands, name
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
    used = {v.partition(":")[0] for one in services.values() for v in one.get("volumes", ()) if v[0] != "."}
    assert volumes == used


def test_docker_compose_understands_them() -> None:
    docker = _program("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not here; tried where somebody has it")
    for path in COMPOSE:
        argv = [docker, "compose", "-f", str(path), "config", "--quiet"]
        environment = {**os.environ, "DB_PASSWORD": "x", "S3_SECRET": "x"}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_web_believes_the_proxy_of_its_own_network_and_nobody_else(path: Path) -> None:
    whole = _merged(path)
    subnet = whole["networks"]["default"]["ipam"]["config"][0]["subnet"]
    given = [one.get("environment", {}).get("CAMSERVER_WEB_TRUSTED_PROXIES") for one in whole["services"].values()]
    said = [text for text in given if text]
    assert said == [f"127.0.0.1,::1,{subnet}"]
    chosen = re.sub(r"\$\{SUBNET:-([^}]*)\}", r"\1", said[0])
    settings = load(None, {"CAMSERVER_WEB_TRUSTED_PROXIES": chosen})
    assert ipaddress.ip_address("172.30.0.1") not in ipaddress.ip_network(settings.web.trusted_proxies[-1])


def test_the_fleet_is_one() -> None:
    services = _merged(DEPLOY / "compose" / "fleet.yaml")["services"]
    commands = {name: one["command"][0] for name, one in services.items() if one["image"] == "camserver"}
    assert set(commands.values()) == {"control", "dispatcher", "web", "streamer", "scoring", "analyzer", "worker"}
    assert list(commands.values()).count("worker") == 3
    for name in ("control", "dispatcher", "web", "analyzer"):
        assert services[name]["deploy"]["replicas"] == 2
    assert {"postgres", "mariadb", "objects", "mqtt"} <= set(services)
    json.loads((DEPLOY / "compose" / "s3.json").read_text())


def test_the_image_is_made_of_what_is_locked_and_runs_as_nobody_special() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    assert "--require-hashes" in text
    assert re.search(r"^USER camserver$", text, re.MULTILINE)
    for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert "/" not in image, "without a registry"
    known = {setting.variable for setting in catalogue.all_settings().values()}
    assert set(re.findall(r"\bCAMSERVER_[A-Z_]+", text)) <= known
    from camserver.base.assets import MODEL

    assert MODEL in text
