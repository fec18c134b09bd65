"""A connection is looked at point by point, and what is wrong comes with what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.api import ApiRefused
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.connection_checks import (
    PERMISSIONS,
    connection_checks,
    passed,
)
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import CheckVerdict, ClusterCheck, ClusterUnavailable
from tests.unit.adapters.kubernetes.api_objects import H800, OURS, node
from tests.unit.adapters.kubernetes.fake_api import Answer, AnsweringApi, Review, listing

PLUGINS = tuple(adapter_registry.chip_plugins().values())
GPU = "nvidia.com/gpu"
NODES, NAMESPACES, VERSION = "/api/v1/nodes", "/api/v1/namespaces", "/version"
WELL: Mapping[str, Answer] = {
    VERSION: {"major": "1", "minor": "30", "gitVersion": "v1.30.4"},
    NODES: listing(node("n1", {GPU: 8}, labels=H800)),
    NAMESPACES: listing(),
}


def checked(
    changed: Mapping[str, Answer] | None = None,
    *,
    may: Review = lambda _attributes: True,
    cpu_cards: int = 0,
    **options: Any,
) -> list[ClusterCheck]:
    api = AnsweringApi({**WELL, **(changed or {})}, may=may)
    profile = ClusterProfile.read({"cpu_cards": cpu_cards})
    found = connection_checks(api, installation=OURS, profile=profile, plugins=PLUGINS, **options)
    return list(found)


def one(name: str, found: list[ClusterCheck]) -> ClusterCheck:
    (check,) = [check for check in found if check.name == name]
    return check


def test_a_cluster_that_has_everything_passes_every_check_in_a_fixed_order() -> None:
    found = checked()
    assert [check.name for check in found] == [
        "api",
        "permissions",
        "namespaces",
        "nodes",
        "device-plugins",
        "volcano",
    ]
    assert {check.verdict for check in found} == {CheckVerdict.PASSED}
    assert not any(check.remedy for check in found)


@pytest.mark.parametrize(
    "error",
    [
        ClusterUnavailable("the API server https://c is unreachable: connection refused"),
        ApiRefused(status=401, reason="Unauthorized", message="the credential is not accepted"),
    ],
)
def test_a_cluster_that_does_not_answer_fails_one_check(error: Exception) -> None:
    (check,) = checked({VERSION: error})
    assert (check.name, check.verdict, check.message) == ("api", CheckVerdict.FAILED, str(error))
    assert "kubeconfig" in check.remedy


@pytest.mark.parametrize(
    ("minor", "verdict"),
    [
        ("19", CheckVerdict.FAILED),
        ("20+", CheckVerdict.PASSED),
        ("36", CheckVerdict.PASSED),
        ("37", CheckVerdict.LACKING),
    ],
)
def test_releases_that_are_too_old_fail_and_unknown_newer_ones_are_said(
    minor: str, verdict: CheckVerdict
) -> None:
    version = {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"}
    assert one("api", checked({VERSION: version})).verdict is verdict


def test_each_verb_that_is_missing_is_a_line_with_the_rule_to_bind() -> None:
    missing = {("create", "pods"), ("delete", "pods"), ("list", "events")}
    found = checked(may=lambda requested: (requested["verb"], requested["resource"]) not in missing)
    lines = [check for check in found if check.name == "permissions"]
    assert [(check.verdict, check.message) for check in lines] == [
        (CheckVerdict.FAILED, "The account cannot create pods"),
        (CheckVerdict.FAILED, "The account cannot delete pods"),
        (
            CheckVerdict.LACKING,
            "The account cannot list events: the events of pods and nodes are not available",
        ),
    ]
    assert "{apiGroups: [''], resources: ['pods'], verbs: [create]}" in lines[0].remedy


def test_logs_are_asked_about_as_a_part_of_pods() -> None:
    requested: list[tuple[str, str]] = []

    def may(attributes: Mapping[str, Any]) -> bool:
        requested.append((attributes["resource"], attributes["subresource"]))
        return True

    checked(may=may)
    assert ("pods", "log") in requested
    wanted = sum(len(permission.verbs.split()) for permission in PERMISSIONS)
    assert len(requested) == wanted + 1  # whether namespaces can be made


def test_without_the_right_to_make_namespaces_those_that_exist_are_used() -> None:
    def may(attributes: Mapping[str, Any]) -> bool:
        return (attributes["verb"], attributes["resource"]) != ("create", "namespaces")

    spaces = listing({"metadata": {"name": "ninefold-vision"}}, {"metadata": {"name": "default"}})
    there = one("namespaces", checked({NAMESPACES: spaces}, may=may))
    assert there.verdict is CheckVerdict.LACKING
    assert there.message.endswith("ninefold-vision")
    none = one("namespaces", checked(may=may))
    assert none.verdict is CheckVerdict.FAILED
    assert f"ninefold.io/installation={OURS}" in none.remedy


def test_nodes_that_take_no_work_are_named_with_what_keeps_it_away() -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    closed = [
        node("n1", {GPU: 8}, labels=H800, unschedulable=True),
        node("n2", {GPU: 8}, labels=H800, conditions=()),
        node("n3", {GPU: 8}, labels=H800, taints=[taint]),
    ]
    lines = [check for check in checked({NODES: listing(*closed)}) if check.name == "nodes"]
    assert [(check.verdict, check.message) for check in lines] == [
        (CheckVerdict.FAILED, "Schedulable nodes: 0 of 3"),
        (CheckVerdict.LACKING, "Not ready: n2"),
        (CheckVerdict.PASSED, "Cordoned: n1"),
        (CheckVerdict.PASSED, "Tainted: n3 (team=a:NoSchedule)"),
    ]
    open_one = node("n4", {GPU: 8}, labels=H800)
    first, *_ = (
        check for check in checked({NODES: listing(*closed, open_one)}) if check.name == "nodes"
    )
    assert (first.verdict, first.message) == (CheckVerdict.PASSED, "Schedulable nodes: 1 of 4")


def test_without_any_node_nothing_can_run() -> None:
    assert one("nodes", checked({NODES: listing()})).verdict is CheckVerdict.FAILED


def cards_of(*nodes: Mapping[str, Any], **options: Any) -> list[ClusterCheck]:
    found = checked({NODES: listing(*nodes)}, **options)
    return [check for check in found if check.name == "device-plugins"]


def test_nodes_with_accelerators_and_no_device_plug_in_are_named() -> None:
    without_cards = [node(f"s{number}", labels=H800) for number in range(5)]
    offers, lacks = cards_of(node("n1", {GPU: 8}, labels=H800), *without_cards)
    assert (offers.verdict, offers.message) == (
        CheckVerdict.PASSED,
        "Allocatable cards: 8, on 1 of 6 nodes",
    )
    assert lacks.verdict is CheckVerdict.LACKING
    assert lacks.message.endswith("without allocatable accelerators: s0, s1, s2 (+2)")
    assert "device plug-in" in lacks.remedy
    assert [check.verdict for check in cards_of(*without_cards)] == [
        CheckVerdict.FAILED,
        CheckVerdict.LACKING,
    ]


def test_a_chip_that_no_plug_in_knows_is_named_with_its_resource() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-X9000"}
    offers, unknown = cards_of(node("n1", {GPU: 2}, labels=labels))
    assert offers.verdict is CheckVerdict.FAILED
    assert unknown.message == "Unknown chip: 2 × nvidia.com/gpu on n1"
    assert "docs/adding-a-chip.md" in unknown.remedy


def test_processors_do_where_the_profile_shows_them_as_cards() -> None:
    plain = {NODES: listing(node("n1"))}
    assert one("device-plugins", checked(plain)).verdict is CheckVerdict.FAILED
    assert one("device-plugins", checked(plain, cpu_cards=4)).verdict is CheckVerdict.PASSED


def test_volcano_is_missed_only_where_it_has_to_place_the_work() -> None:
    assert one("volcano", checked()).verdict is CheckVerdict.PASSED
    said = passed(name="volcano-scheduler", message="configured")
    found = checked(scheduler_checks=lambda _api: (said,))
    assert one("volcano", found).verdict is CheckVerdict.LACKING
    assert found[-1] is said
    there = {"/apis/batch.volcano.sh": {"kind": "APIGroup"}}
    found = checked(there, scheduler_checks=lambda _api: ())
    assert one("volcano", found).verdict is CheckVerdict.PASSED
