"""The agent on Kubernetes: on every node with cards, with no more than it needs, called as it can be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninefold_runtime.agent.__main__ import _argument_parser
from tests.unit.deployment.kustomizations import KUBERNETES, Manifest, built, containers, pod_spec
from tests.unit.deployment.test_kustomizations import parsed

FOLDER = KUBERNETES / "agent"


@pytest.fixture
def daemon() -> Manifest:
    (found,) = (each for each in built(FOLDER) if each["kind"] == "DaemonSet")
    return found


def test_every_object_is_what_kubernetes_knows_under_that_name() -> None:
    for manifest in built(FOLDER):
        parsed(manifest)


def test_it_is_called_with_arguments_that_it_understands(daemon: Manifest) -> None:
    (container,) = containers(daemon)
    assert container["command"] == ["python", "-m", "ninefold_runtime.agent"]
    options = _argument_parser().parse_args(container["args"])
    mount = container["volumeMounts"][0]
    assert options.token_file == Path(mount["mountPath"])
    assert mount["subPathExpr"] == "$(NINEFOLD_NODE)"
    names = {variable["name"]: variable for variable in container["env"]}
    assert names["NINEFOLD_NODE"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_it_keeps_to_the_restricted_standard_and_has_no_way_to_the_cluster(
    daemon: Manifest,
) -> None:
    pod = pod_spec(daemon)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "secret"}]
    (container,) = containers(daemon)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # It reads cards and takes none.
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
