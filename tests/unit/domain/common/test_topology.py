"""Where cards are attached, as an agent reports it, becomes groups that placement reads."""

from __future__ import annotations

import pytest

from controlplane.domain.common.topology import (
    CardLocality,
    Geometry,
    card_locality,
    choose_cards,
    nic_groups,
    numa_groups,
)

LABELS = {
    "card": "3",
    "pci_address": "0000:1b:00.0",
    "numa_node": "1",
    "nics_same_switch": "mlx5_0,mlx5_1",
    "nics_same_numa": "mlx5_2",
}


def card(index: int, *, numa_node: int | None = None, nic: str = "") -> CardLocality:
    return CardLocality(
        index=index,
        pci_address=f"0000:{index:02x}:00.0",
        numa_node=numa_node,
        nics_same_switch=(nic,) if nic else (),
    )


def test_labels_of_a_series_are_read_and_stored_and_read_again() -> None:
    found = card_locality(LABELS)

    assert found == CardLocality(
        index=3,
        pci_address="0000:1b:00.0",
        numa_node=1,
        nics_same_switch=("mlx5_0", "mlx5_1"),
        nics_same_numa=("mlx5_2",),
    )
    assert CardLocality.from_document("3", found.document) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"card": ""},
        {"card": "1024"},
        {"card": "-1"},
        {"pci_address": "1b:00"},
        {"numa_node": "-1"},
        {"numa_node": "99999"},
        {"nics_same_switch": "mlx5_0,"},
        {"nics_same_numa": "<script>"},
        {"nics_same_numa": ",".join(f"mlx5_{number}" for number in range(65))},
    ],
)
def test_labels_that_cannot_be_are_refused(wrong: dict[str, str]) -> None:
    assert card_locality(LABELS | wrong) is None


def test_cards_are_grouped_by_numa_node_and_by_the_adapters_on_their_switch() -> None:
    cards = [card(index, numa_node=index // 4, nic=f"mlx5_{index // 2}") for index in range(8)]

    assert numa_groups(cards) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert nic_groups(cards) == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_an_unknown_numa_node_groups_nothing_and_neither_does_a_single_one() -> None:
    assert numa_groups([card(0), card(1), card(2, numa_node=0)]) == ()
    assert numa_groups([card(0, numa_node=0), card(1, numa_node=0)]) == ()
    assert nic_groups([card(0), card(1, nic="mlx5_0")]) == ()


@pytest.mark.parametrize(
    ("free", "count", "chosen"),
    [
        # Two cards behind one adapter rather than of two, although these come first.
        ([1, 2, 3, 4, 5, 6, 7], 2, (2, 3)),
        # One card from a switch that is broken already.
        ([0, 1, 2, 4, 5, 6, 7], 1, (2,)),
        # The NUMA node goes before the adapter.
        ([0, 1, 2, 5, 6, 7], 3, (0, 1, 2)),
        ([1, 3, 4, 5, 6, 7], 3, (4, 5, 6)),
        # What no adapter and no NUMA node holds is given out all the same.
        ([0, 3, 5, 6], 4, (0, 3, 5, 6)),
    ],
)
def test_a_choice_stays_at_one_adapter_and_keeps_others_whole(
    free: list[int], count: int, chosen: tuple[int, ...]
) -> None:
    cards = [card(index, numa_node=index // 4, nic=f"mlx5_{index // 2}") for index in range(8)]
    geometry = Geometry(numa=numa_groups(cards), nics=nic_groups(cards))
    assert choose_cards(free, count, geometry) == chosen
