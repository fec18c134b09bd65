"""Volcano's APIs and the configuration of its scheduler: the recommended one, and checks of the installed one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any, Final

import yaml

from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    KubernetesApi,
    api_object,
    nested_field,
)
from controlplane.adapters.clusters.kubernetes.connection_checks import failed, lacking, passed
from controlplane.adapters.clusters.volcano import object_names
from controlplane.domain.common.reasons import NONE, UNKNOWN, Reason, join_reasons
from controlplane.ports.clusters import CheckVerdict, ClusterCheck

CONFIG_MAP: Final = "volcano-scheduler-configmap"
NAMESPACE: Final = "volcano-system"
KEY: Final = "volcano-scheduler.conf"
#: Beside the resources of chips, which weigh ten times as much: a card left over on a full node is lost to a gang.
_WEIGHT_OF_CARDS, _WEIGHT_OF_THE_REST = 10, 1

#: What each choice is for, as comments above the setting.
_REASONS: Final = """\
# actions
#   preempt   a workload of a higher priority preempts others of its queue
#   reclaim   a queue reclaims its deserved quota from queues that borrow it
#   backfill  small workloads run on cards that no gang waits for
# plugins
#   gang                    all pods of a gang are scheduled or none; none is evicted alone
#   capacity                quotas: deserved, guarantee, capability; incompatible with proportion
#     enableHierarchy       child queues
#   binpack                 fills nodes with cards first, so that whole nodes stay free for gangs
#   network-topology-aware  keeps a gang within one HyperNode
#   numa-aware              CPUs of the card's NUMA node, where a Job requests it
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


def check_scheduler_configuration(
    text: str | None, *, resources: Collection[str] = ()
) -> ClusterCheck:
    """What a scheduler's configuration means for our queues; None: it could not be read.

    :param resources: extended resources of the chips in the fleet, for the recommended configuration.
    """
    name = "volcano-scheduler"
    manifest = render_scheduler_configuration(resources)
    if text is None:
        return lacking(
            name=name,
            message=Reason(
                "volcano.scheduler.unreadable",
                "The scheduler configuration {config_map} cannot be read",
                config_map=f"{NAMESPACE}/{CONFIG_MAP}",
            ),
            remedy=Reason(
                "volcano.scheduler.unreadable_remedy",
                "Allow the account to read this ConfigMap, or compare its key {key} with the recommended one",
                key=KEY,
            ),
            manifest=manifest,
        )
    try:
        settings = yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        settings, text = None, str(wrong)
    remedy = Reason(
        "volcano.scheduler.remedy",
        "Apply the recommended scheduler configuration to the cluster and restart volcano-scheduler",
    )
    if not isinstance(settings, Mapping):
        message = Reason(
            "volcano.scheduler.not_a_mapping",
            "The scheduler configuration is not a YAML mapping: {detail}",
            detail=text[:200],
        )
        return failed(name=name, message=message, remedy=remedy, manifest=manifest)
    if problems := tuple(_setting_problems(settings)):
        return lacking(name=name, message=join_reasons(problems), remedy=remedy, manifest=manifest)
    return passed(
        name=name,
        message=Reason(
            "volcano.scheduler.suitable",
            "The scheduler supports guaranteed quotas, reclaim and hierarchical queues",
        ),
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


#: What is lost without a plug-in, or without an action and its variant for gangs.
_REQUIRED_PLUGINS: Final = {
    "capacity": Reason(
        "volcano.scheduler.capacity_disabled",
        "The plug-in capacity is disabled: guaranteed quotas and caps of queues are not enforced",
    ),
    "gang": Reason(
        "volcano.scheduler.gang_disabled",
        "The plug-in gang is disabled: some pods of a gang may start and wait for the others indefinitely",
    ),
    "network-topology-aware": Reason(
        "volcano.scheduler.topology_disabled",
        "The plug-in network-topology-aware is disabled: topology constraints of workloads are not enforced",
    ),
}
_REQUIRED_ACTIONS: Final = {
    "preempt": Reason(
        "volcano.scheduler.preempt_disabled",
        "The action preempt is disabled: workloads of a high priority do not preempt those of "
        "a lower priority in their queue",
    ),
    "reclaim": Reason(
        "volcano.scheduler.reclaim_disabled",
        "The Volcano action reclaim is disabled: lent cards are not reclaimed",
    ),
}


def _setting_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    actions = {action.strip() for action in str(settings.get("actions") or "").split(",")}
    plugins = {
        str(plugin.get("name")): plugin
        for tier in settings.get("tiers") or ()
        for plugin in tier.get("plugins") or ()
    }
    if "proportion" in plugins:
        yield Reason(
            "volcano.scheduler.proportion_enabled",
            "The plug-in proportion is enabled; it shares by weight and is incompatible with guaranteed quotas",
        )
    yield from (lost for name, lost in _REQUIRED_PLUGINS.items() if name not in plugins)
    if not plugins.get("capacity", {"enableHierarchy": True}).get("enableHierarchy"):
        yield Reason(
            "volcano.scheduler.hierarchy_disabled",
            "The Volcano plug-in capacity lacks enableHierarchy: child queues are not scheduled",
        )
    for plain, lost in _REQUIRED_ACTIONS.items():
        gang = f"gang{plain}"
        if not actions & {plain, gang}:
            yield lost
        if {plain, gang} <= actions:
            yield Reason(
                "volcano.scheduler.conflicting_actions",
                "The actions {action} and {gang_action} are both enabled, which Volcano does not allow",
                action=plain,
                gang_action=gang,
            )


_REQUIRED_APIS: Final = (object_names.QUEUES, object_names.JOBS, object_names.COMMANDS)
#: Without it, topology constraints of workloads are not enforced.
_OPTIONAL_APIS: Final = (object_names.TOPOLOGY,)
_INTERFACES: Final = "volcano-interfaces"
_SCHEDULER: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/volcano-scheduler"
_SETTINGS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}"


def volcano_checks(
    api: KubernetesApi, *, resources: Callable[[], Collection[str]] = tuple
) -> tuple[ClusterCheck, ...]:
    """Its interfaces, and how its scheduler is set.

    :param resources: returns the extended resources of the chips that the cluster has.
    """
    interfaces = _api_check(api)
    if interfaces.verdict is CheckVerdict.FAILED:
        return (interfaces,)
    return interfaces, check_scheduler_configuration(
        _installed_configuration(api), resources=resources()
    )


def _api_check(api: KubernetesApi) -> ClusterCheck:
    missing: dict[str, str] = {}
    for version in (*_REQUIRED_APIS, *_OPTIONAL_APIS):
        group, _, wanted = version.partition("/")
        found = api.found(f"/apis/{group}") or {}
        versions = [each["version"] for each in found.get("versions") or ()]
        if wanted not in versions:
            missing[version] = Reason(
                "volcano.api.other_versions",
                "{api} (the cluster serves {versions})",
                api=version,
                versions=", ".join(versions) or NONE,
            )
    if not missing:
        message = Reason(
            "volcano.api.served_by_release",
            "Volcano {release} serves {apis}",
            release=_scheduler_version(api),
            apis=", ".join((*_REQUIRED_APIS, *_OPTIONAL_APIS)),
        )
        return passed(name=_INTERFACES, message=message)
    message = Reason(
        "volcano.api.missing",
        "Volcano APIs that the cluster does not serve: {apis}",
        apis=list(missing.values()),
    )
    remedy = Reason(
        "volcano.api.missing_remedy",
        "Install Volcano 1.12 or newer with all of its CRDs, or register the cluster with the kind kubernetes",
    )
    if not missing.keys() <= set(_OPTIONAL_APIS):
        return failed(name=_INTERFACES, message=message, remedy=remedy)
    message = Reason(
        "volcano.api.optional_missing",
        "{missing}; without them, topology constraints of workloads are not enforced",
        missing=message,
    )
    return lacking(name=_INTERFACES, message=message, remedy=remedy)


def _scheduler_version(api: KubernetesApi) -> str:
    """As the scheduler's image is tagged; ``UNKNOWN`` where that cannot be seen."""
    try:
        found = api.found(_SCHEDULER) or {}
    except ApiRefused:
        return UNKNOWN
    containers = nested_field(found, "spec", "template", "spec", "containers")
    tags = [re.search(r":(v?\d[\w.-]*)$", each.get("image", "")) for each in containers]
    return next((tag[1] for tag in tags if tag), UNKNOWN)


def _installed_configuration(api: KubernetesApi) -> str | None:
    try:
        found = api.found(_SETTINGS)
    except ApiRefused:
        return None
    return None if found is None else str(nested_field(found, "data", KEY) or "")
