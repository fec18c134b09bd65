"""The compose file for one host: what Compose knows, what the manifests run as well, and no secret in it."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml

from tests.unit.deployment.dockerfiles import stages
from tests.unit.deployment.kustomizations import KUBERNETES, ROOT, containers, documents
from tests.unit.deployment.tools import tool

DOCKER = ROOT / "docker"
PROCESSES = ("web", "worker", "beat", "watcher", "gateway")


@cache
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return read


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{([A-Z_]+)", text))


def example() -> dict[str, str]:
    lines = (DOCKER / ".env.example").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def test_it_is_what_the_compose_specification_allows() -> None:
    checker = tool("check-jsonschema")
    if checker is None:
        pytest.skip("check-jsonschema, which carries the schema, is not installed")
    command = [checker, "--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_is_described_in_the_example_and_none_there_is_idle() -> None:
    used = variables((DOCKER / "compose.yaml").read_text()) - {"NINEFOLD_VERSION"}
    used |= {each["environment"] for each in compose()["secrets"].values()}
    assert used == set(example())


def test_secrets_have_no_default_anywhere() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    for name, value in example().items():
        if re.search(r"PASSWORD|SECRET|KEY|TOKEN", name):
            assert value == "", f"{name} has a value in the example"
            assert f"${{{name}:?" in text, f"{name} may be left out"
            assert f"${{{name}:-" not in text


def test_every_variable_of_ours_is_one_that_the_product_reads() -> None:
    said = "\n".join(
        path.read_text()
        for path in (*DOCKER.rglob("*.yaml"), DOCKER / "Dockerfile", DOCKER / ".env.example")
    )
    ours = set(re.findall(r"\bNINEFOLD_[A-Z_]+\b", said)) - {"NINEFOLD_VERSION"}
    of_compose_alone = {"NINEFOLD_LISTEN", "NINEFOLD_HOST"}
    documentation = (ROOT / "docs" / "settings.md").read_text()
    read = "".join(path.read_text() for path in (ROOT / "platform").rglob("*.py"))
    # Secrets are asked for by the name of their file.
    unread = {
        name
        for name in ours - of_compose_alone
        if name not in read and name.removeprefix("NINEFOLD_").lower() not in read
    }
    assert unread == set()
    assert {name for name in ours if name not in documentation} == set()


@pytest.mark.parametrize("name", [*PROCESSES, "migrate", "redis", "prometheus"])
def test_no_container_may_more_than_it_needs(name: str) -> None:
    service = services()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "network_mode", "pid", "cap_add"} & set(service)


def test_every_service_says_how_it_is_or_that_nobody_can_tell() -> None:
    for name, service in services().items():
        if name != "web":  # of the image
            assert service["healthcheck"].get("test") or service["healthcheck"]["disable"], name
    assert "answers" in stages(DOCKER / "Dockerfile")[-1].last("HEALTHCHECK")


def test_what_others_wait_for_can_come_true() -> None:
    for name, service in services().items():
        for awaited, how in service.get("depends_on", {}).items():
            other = services()[awaited]
            checked = not other.get("healthcheck", {}).get("disable", False)
            if how["condition"] == "service_healthy":
                assert checked, f"{name} waits for {awaited}, which has no healthcheck"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert other["restart"] == "on-failure", awaited


@pytest.mark.parametrize("name", PROCESSES)
def test_kubernetes_runs_the_same_command(name: str) -> None:
    [container] = [
        each
        for each in containers(documents(KUBERNETES / "base" / f"{name}.yaml")[0])
        if each["name"] == name
    ]
    theirs, ours = container.get("command"), services()[name].get("command")
    named = "--hostname=ninefold@"
    assert (theirs is None) == (ours is None)
    if theirs is not None and ours is not None:
        assert [word.partition(named)[0] for word in theirs] == [
            word.partition(named)[0] for word in ours
        ]


def test_the_gateway_is_told_neither_the_database_nor_the_key_of_credentials() -> None:
    names = set(services()["gateway"]["environment"])
    assert not {"NINEFOLD_DATABASE_URL", "NINEFOLD_SECRET_KEY", "NINEFOLD_ENCRYPTION_KEY"} & names


def test_volumes_and_files_that_are_mounted_exist() -> None:
    named = set(compose()["volumes"])
    for service in services().values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in named or (DOCKER / source).is_file(), source
    used = {mount.split(":")[0] for one in services().values() for mount in one.get("volumes", ())}
    assert named <= used


def test_prometheus_asks_services_that_exist_at_their_ports() -> None:
    scraped = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())["scrape_configs"]
    [job] = scraped
    targets = {target for group in job["static_configs"] for target in group["targets"]}
    assert targets == {"web:8000", "gateway:8001"}
    assert job["authorization"]["credentials_file"] == "/run/secrets/metrics_token"
    assert services()["prometheus"]["secrets"] == ["metrics_token"]
