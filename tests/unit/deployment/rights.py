"""What roles allow, as single rights."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.deployment.kustomizations import Manifest

#: (group, resource, verb)
Right = tuple[str, str, str]
#: Asked for apart from the others, as an administrator may make the namespaces instead.
NAMESPACES: Right = ("", "namespaces", "create")
#: Looked at where it is; nobody misses it where it is not.
PICTURE: Right = ("topology.volcano.sh", "hypernodes", "list")


def granted(manifests: Iterable[Manifest]) -> set[Right]:
    """By all roles among them together."""
    return {
        (group, resource, verb)
        for manifest in manifests
        if manifest["kind"] in ("ClusterRole", "Role")
        for rule in manifest["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
