"""What a cluster is asked to allow is what the adapter does there, and not a verb more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from controlplane.adapters.clusters.kubernetes.connection_checks import (
    DEVICE_PERMISSIONS,
    PERMISSIONS,
    VOLCANO_PERMISSIONS,
    RequiredPermission,
)
from controlplane.adapters.clusters.kubernetes.node_conditions import signal_table
from tests.unit.deployment.kustomizations import KUBERNETES, ROOT, built
from tests.unit.deployment.rights import NAMESPACES, PICTURE, Right, granted

ADAPTERS = ROOT / "platform" / "controlplane" / "adapters" / "clusters"


def needed(permissions: Iterable[RequiredPermission]) -> set[Right]:
    return {
        (each.group, each.resource, verb) for each in permissions for verb in each.verbs.split()
    }


def test_the_roles_are_what_the_adapter_checks_for_before_it_works() -> None:
    assert granted(built(KUBERNETES / "access")) == needed(PERMISSIONS) | {NAMESPACES, PICTURE}


def test_the_roles_for_volcano_are_what_the_adapter_checks_for_and_a_look_at_its_scheduler() -> (
    None
):
    manifests = built(KUBERNETES / "volcano")
    across = [each for each in manifests if each["kind"] == "ClusterRole"]
    [role] = [each for each in manifests if each["kind"] == "Role"]
    assert granted(across) == needed(VOLCANO_PERMISSIONS)
    assert role["metadata"]["namespace"] == "volcano-system"
    assert all(rule["resourceNames"] and rule["verbs"] == ["get"] for rule in role["rules"])


def test_the_roles_for_devices_of_a_dra_driver_are_what_the_adapter_checks_for() -> None:
    assert granted(built(KUBERNETES / "dra")) == needed(DEVICE_PERMISSIONS)


def test_the_roles_for_mindcluster_read_its_configmaps_where_it_writes_them_and_no_more() -> None:
    manifests = built(KUBERNETES / "mindcluster")
    assert {each["kind"] for each in manifests} == {"Role", "RoleBinding"}
    assert {each["metadata"]["namespace"] for each in manifests} == {
        signal_table("mindcluster")["namespace"],
        signal_table("mindcluster")["own_namespace"],
    }
    assert granted(manifests) == {("", "configmaps", verb) for verb in ("get", "list")}


def test_nothing_but_the_mark_changes_nodes_and_its_role_stands_alone() -> None:
    for folder in ("access", "volcano", "mindcluster", "dra"):
        for role in built(KUBERNETES / folder):
            rights = granted([role])
            if ("", "nodes", "patch") in rights:
                assert (role["metadata"]["name"], len(rights)) == ("ninefold-marker", 1)
            assert not rights & {("", "nodes", verb) for verb in ("create", "update", "delete")}


def test_every_resource_that_a_role_names_is_one_that_the_adapters_speak_of() -> None:
    spoken = "".join(path.read_text() for path in ADAPTERS.glob("[kv]*/*.py"))
    for folder in ("access", "volcano", "mindcluster", "dra"):
        for group, resource, _ in granted(built(KUBERNETES / folder)):
            assert re.search(rf"\b{resource.partition('/')[0]}\b", spoken), (group, resource)


def test_no_role_has_a_star_and_none_reaches_roles_or_accounts() -> None:
    rights = granted(built(KUBERNETES / "access")) | granted(built(KUBERNETES / "volcano"))
    names = {word for right in rights for word in right}
    assert not names & {"*", "serviceaccounts", "clusterroles", "rolebindings", "impersonate"}
    # Whoever may watch or update these could take over what others keep there.
    assert not {
        ("", "secrets", "watch"),
        ("", "secrets", "update"),
        ("", "pods/exec", "create"),
    } & (rights)


def test_the_roles_are_bound_to_the_account_of_the_token_alone() -> None:
    manifests = [*built(KUBERNETES / "access"), *built(KUBERNETES / "dra")]
    for binding in (each for each in manifests if each["kind"] == "ClusterRoleBinding"):
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "ninefold-runner", "namespace": "ninefold"}
        ]
        assert binding["roleRef"]["name"] == binding["metadata"]["name"]
