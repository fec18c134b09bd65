"""Volcano's APIs and the configuration of its scheduler: the recommended one, and checks of the installed one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any, Final

import yaml

from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    KubernetesApi,
    api_object,
    part_of,
)
from controlplane.adapters.clusters.kubernetes.checks import failed, lacking, passed
from controlplane.adapters.clusters.volcano import object_names
from controlplane.ports.clusters import CheckVerdict, ClusterCheck, ClusterError

CONFIG_MAP: Final = "volcano-scheduler-configmap"
NAMESPACE: Final = "volcano-system"
KEY: Final = "volcano-scheduler.conf"
#: Beside the resources of chips, which weigh ten times as much: a card left over on a full node is lost to a gang.
_WEIGHT_OF_CARDS, _WEIGHT_OF_THE_REST = 10, 1

#: What each choice is for, as comments above the setting.
_REASONS: Final = """\
# actions
#   preempt   urgent work takes the place of less urgent work of its own queue
#   reclaim   a queue takes back what it deserves and others borrowed
#   backfill  small work runs meanwhile where nothing is kept for a gang
# plugins
#   gang                    all pods of a gang or none; its pods are never single victims
#   capacity                queues by deserved, guarantee and capability; proportion must be off
#     enableHierarchy       queues below queues
#   binpack                 fills nodes with cards up, so that whole nodes stay free for gangs
#   network-topology-aware  keeps a gang below one HyperNode
#   numa-aware              processors beside the cards' memory, where a Job asks for it
"""


def render_scheduler_configuration(resources: Iterable[str]) -> str:
    """The ConfigMap as YAML for an administrator to apply.

    :param resources: extended resources of the chips in the fleet.
    """
    text = _REASONS + yaml.safe_dump(_volcano_settings(sorted(set(resources))), sort_keys=False)
    body = api_object("ConfigMap", {"name": CONFIG_MAP, "namespace": NAMESPACE})
    # The text as it would be written by hand.
    data = indent(f"{KEY}: |\n{indent(text, '  ')}", "  ")
    return f"{yaml.safe_dump(body, sort_keys=False)}data:\n{data}"


def check_scheduler_configuration(text: str | None) -> ClusterCheck:
    """What a scheduler's configuration means for our queues; None: it could not be read."""
    name = "volcano-scheduler"
    if text is None:
        return lacking(
            name=name,
            message=f"the scheduler's configuration {NAMESPACE}/{CONFIG_MAP} cannot be read",
            remedy=f"let our account read that ConfigMap, or see for yourself that it has what {KEY} needs",
        )
    try:
        settings = yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        settings, text = None, str(wrong)
    remedy = "apply the configuration that the cluster's page offers"
    if not isinstance(settings, Mapping):
        message = f"the scheduler's configuration is no YAML mapping: {text[:200]}"
        return failed(name=name, message=message, remedy=remedy)
    if problems := tuple(_setting_problems(settings)):
        return lacking(name=name, message="; ".join(problems), remedy=remedy)
    return passed(
        name=name,
        message="the scheduler keeps guarantees, takes them back on demand and knows queues below queues",
    )


def _volcano_settings(resources: list[str]) -> dict[str, Any]:
    binpack: dict[str, Any] = {
        "binpack.weight": _WEIGHT_OF_CARDS,
        "binpack.cpu": _WEIGHT_OF_THE_REST,
        "binpack.memory": _WEIGHT_OF_THE_REST,
    }
    if resources:
        binpack["binpack.resources"] = ",".join(resources)
        binpack |= {f"binpack.resources.{each}": _WEIGHT_OF_CARDS for each in resources}
    return {
        "actions": "enqueue, allocate, preempt, reclaim, backfill",
        "tiers": [
            {
                "plugins": [
                    {"name": "priority"},
                    {"name": "gang", "enablePreemptable": False, "enableReclaimable": False},
                    {"name": "conformance"},
                ]
            },
            {
                "plugins": [
                    {"name": "overcommit"},
                    {"name": "drf", "enablePreemptable": False},
                    {"name": "predicates"},
                    {"name": "capacity", "enableHierarchy": True},
                    {"name": "nodeorder"},
                    {"name": "binpack", "arguments": binpack},
                    {"name": "network-topology-aware", "arguments": {"weight": 10}},
                    {"name": "numa-aware"},
                ]
            },
        ],
    }


def _setting_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    actions = {action.strip() for action in str(settings.get("actions") or "").split(",")}
    plugins = {
        str(plugin.get("name")): plugin
        for tier in settings.get("tiers") or ()
        for plugin in tier.get("plugins") or ()
    }
    if "proportion" in plugins:
        yield "the plugin proportion is on: it divides by weights and does not go with guarantees"
    if "capacity" not in plugins:
        yield "the plugin capacity is off: guarantees and caps of queues are not kept"
    elif not plugins["capacity"].get("enableHierarchy"):
        yield "the plugin capacity has no enableHierarchy: queues below queues are not scheduled"
    if "gang" not in plugins:
        yield "the plugin gang is off: parts of a gang may start and wait for the others for ever"
    if not actions & {"reclaim", "gangreclaim"}:
        yield "the action reclaim is off: lent cards never come back on demand"
    if not actions & {"preempt", "gangpreempt"}:
        yield "the action preempt is off: urgent work waits behind less urgent work of its queue"
    for plain, gang in (("preempt", "gangpreempt"), ("reclaim", "gangreclaim")):
        if {plain, gang} <= actions:
            yield f"the actions {plain} and {gang} are both on, which Volcano forbids"
    if "network-topology-aware" not in plugins:
        yield "the plugin network-topology-aware is off: work that must lie close together is not kept so"


#: What is lost without each of its interfaces; empty where nothing can run.
_REQUIRED_APIS: Final = {
    object_names.QUEUES: "",
    object_names.JOBS: "",
    object_names.COMMANDS: "",
    object_names.TOPOLOGY: "work that must lie close together is not kept so",
}
_INTERFACES: Final = "volcano-interfaces"
_SCHEDULER: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/volcano-scheduler"
_SETTINGS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}"


def volcano_checks(api: KubernetesApi) -> tuple[ClusterCheck, ...]:
    """Its interfaces, and how its scheduler is set."""
    try:
        interfaces = _api_check(api)
        if interfaces.verdict is CheckVerdict.FAILED:
            return (interfaces,)
        return interfaces, check_scheduler_configuration(_installed_configuration(api))
    except ClusterError as error:
        unknown = failed(
            name=_INTERFACES,
            message=f"Volcano's interfaces cannot be asked for: {error}",
            remedy="see the check of the API",
        )
        return (unknown,)


def _api_check(api: KubernetesApi) -> ClusterCheck:
    missing = []
    for version in _REQUIRED_APIS:
        group, _, wanted = version.partition("/")
        found = api.found(f"/apis/{group}") or {}
        versions = [each["version"] for each in found.get("versions") or ()]
        if wanted not in versions:
            has = f" (the cluster has {', '.join(versions)})" if versions else ""
            missing.append((version, has))
    release = _scheduler_version(api)
    if not missing:
        served = f"Volcano {release} has " if release else "the cluster has "
        return passed(name=_INTERFACES, message=served + ", ".join(_REQUIRED_APIS))
    described = ", ".join(f"{version}{has}" for version, has in missing)
    lost = [_REQUIRED_APIS[version] for version, _ in missing]
    return (lacking if all(lost) else failed)(
        name=_INTERFACES,
        message=f"the cluster lacks {described}" + (f": {'; '.join(lost)}" if all(lost) else ""),
        remedy="install Volcano 1.12 or newer with all of its CRDs, or let the cluster be of the kind kubernetes",
    )


def _scheduler_version(api: KubernetesApi) -> str:
    """As the scheduler's image is tagged; empty where that cannot be seen."""
    try:
        found = api.found(_SCHEDULER) or {}
    except ApiRefused:
        return ""
    containers = part_of(found, "spec", "template", "spec", "containers")
    tags = [re.search(r":(v?\d[\w.-]*)$", each.get("image", "")) for each in containers]
    return next((tag[1] for tag in tags if tag), "")


def _installed_configuration(api: KubernetesApi) -> str | None:
    try:
        found = api.found(_SETTINGS)
    except ApiRefused:
        return None
    return None if found is None else str(part_of(found, "data", KEY) or "")
