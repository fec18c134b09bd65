"""The five names of a gang, its plan, and what the chip asks of each replica."""

from __future__ import annotations

import pytest

from controlplane.adapters.engines import container_commands
from controlplane.domain.common.spec_fields import with_defaults
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports.adapter_registry import all_chips, plugin_of_chip
from controlplane.ports.launches import LaunchPlacement
from tests.unit.engines.training_requests import NODE, rendered

TWO = (LaunchPlacement(node="a", cards=NODE), LaunchPlacement(node="b", cards=NODE))


def test_two_nodes_of_eight_know_of_each_other() -> None:
    names = container_commands.rendezvous_variables(TWO, launch="attempt-1")
    assert names == {
        "NNODES": "2",
        "NODE_RANK": "{index}",
        "NPROC_PER_NODE": "8",
        "MASTER_ADDR": "{leader}",
        "MASTER_PORT": names["MASTER_PORT"],
    }


def test_the_port_is_the_launchs_own_and_stays() -> None:
    ports = {container_commands.master_port(f"attempt-{number}") for number in range(200)}
    assert container_commands.master_port("attempt-1") == container_commands.master_port(
        "attempt-1"
    )
    assert len(ports) > 190
    assert min(ports) >= 20_000
    assert max(ports) < 30_000


def test_a_replica_without_cards_is_one_process() -> None:
    assert container_commands.processes_per_replica((LaunchPlacement(node="a"),)) == 1


def test_nodes_that_give_different_numbers_of_cards_are_refused_by_name() -> None:
    uneven = (LaunchPlacement(node="a", cards=(0, 1)), LaunchPlacement(node="b", cards=(0,)))
    with pytest.raises(
        container_commands.InvalidParallelPlan, match="the same number of cards; got a: 2, b: 1"
    ):
        container_commands.processes_per_replica(uneven)


@pytest.mark.parametrize(
    ("asked", "cards"), [({"data": 3}, 8), ({"context": 3}, 8), ({"context": 2, "data": 2}, 8)]
)
def test_a_plan_that_does_not_multiply_out_is_refused(asked: dict[str, int], cards: int) -> None:
    plan = with_defaults(FINETUNE, {"parallel": asked})["parallel"]
    with pytest.raises(
        container_commands.InvalidParallelPlan, match=rf"(?s)data {asked.get('data', '')}.*{cards}"
    ):
        container_commands.parallel_plan(plan, cards=cards)


def test_the_engines_render_no_plan_that_does_not_multiply_out() -> None:
    for name in ("llamafactory", "ms_swift"):
        with pytest.raises(container_commands.InvalidParallelPlan, match="8"):
            rendered(name, {"parallel": {"data": 3}}, chip="nvidia-h800")


def test_what_is_left_open_is_the_number_of_copies() -> None:
    plan = with_defaults(FINETUNE, {"parallel": {"tensor": 4}})["parallel"]
    assert container_commands.parallel_plan(plan, cards=16).data == 4


def test_variables_that_differ_between_replicas_are_kept_apart() -> None:
    placements = (
        LaunchPlacement(node="a", cards=(0, 1)),
        LaunchPlacement(node="b", cards=(4, 5)),
    )
    shared, differing = container_commands.chip_variables(all_chips()["nvidia-h800"], placements)
    assert shared == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert differing == ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "4,5"})


def test_scripts_of_a_vendors_images_are_named_where_the_profile_has_some() -> None:
    for chip in all_chips().values():
        scripts = plugin_of_chip(chip).profile().setup_scripts
        shared, _differing = container_commands.chip_variables(
            chip, (LaunchPlacement(node="a", cards=(0,)),)
        )
        assert shared.get("NINEFOLD_SET_ENV", "") == ":".join(scripts)
    assert len(plugin_of_chip(all_chips()["ascend-910b3"]).profile().setup_scripts) == 2
