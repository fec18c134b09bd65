"""What a cluster needs beside Kubernetes so that Volcano places our work there."""

from __future__ import annotations

import re
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused
from controlplane.adapters.clusters.volcano import configuration, names
from controlplane.ports.clusters import Check, ClusterError, Verdict

#: What is lost without each of its interfaces; empty where nothing can run.
_NEEDED: Final = {
    names.QUEUES: "",
    names.JOBS: "",
    names.COMMANDS: "",
    names.TOPOLOGY: "work that must lie close together is not kept so",
}
_SCHEDULER: Final = (
    f"/apis/apps/v1/namespaces/{configuration.NAMESPACE}/deployments/volcano-scheduler"
)
_SETTINGS: Final = (
    f"/api/v1/namespaces/{configuration.NAMESPACE}/configmaps/{configuration.CONFIG_MAP}"
)


def volcano_checks(api: Api) -> tuple[Check, ...]:
    """Its interfaces, and how its scheduler is set."""
    try:
        interfaces = _interfaces(api)
        if interfaces.verdict is Verdict.FAILED:
            return (interfaces,)
        return interfaces, configuration.judged(_settings(api))
    except ClusterError as error:
        return (
            Check(
                name="volcano-interfaces",
                verdict=Verdict.FAILED,
                message=f"Volcano's interfaces cannot be asked for: {error}",
                remedy="see the check of the API",
            ),
        )


def _interfaces(api: Api) -> Check:
    missing = []
    for version in _NEEDED:
        group, _, wanted = version.partition("/")
        found = api.found(f"/apis/{group}") or {}
        served = [each["version"] for each in found.get("versions") or ()]
        if wanted not in served:
            has = f" (the cluster has {', '.join(served)})" if served else ""
            missing.append((version, has))
    release = _release(api)
    if not missing:
        return Check(
            name="volcano-interfaces",
            verdict=Verdict.PASSED,
            message=f"Volcano {release} has " + ", ".join(_NEEDED)
            if release
            else "the cluster has " + ", ".join(_NEEDED),
        )
    told = ", ".join(f"{version}{has}" for version, has in missing)
    lost = [_NEEDED[version] for version, _ in missing]
    return Check(
        name="volcano-interfaces",
        verdict=Verdict.LACKING if all(lost) else Verdict.FAILED,
        message=f"the cluster lacks {told}" + (f": {'; '.join(lost)}" if all(lost) else ""),
        remedy="install Volcano 1.12 or newer with all of its CRDs, or let the cluster be of the kind kubernetes",
    )


def _release(api: Api) -> str:
    """As the scheduler's image is tagged; empty where that cannot be seen."""
    try:
        found = api.found(_SCHEDULER) or {}
    except ApiRefused:
        return ""
    containers = found.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or ()
    tags = [re.search(r":(v?\d[\w.-]*)$", each.get("image", "")) for each in containers]
    return next((tag[1] for tag in tags if tag), "")


def _settings(api: Api) -> str | None:
    try:
        found = api.found(_SETTINGS)
    except ApiRefused:
        return None
    return None if found is None else str((found.get("data") or {}).get(configuration.KEY) or "")
