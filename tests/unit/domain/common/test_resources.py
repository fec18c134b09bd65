from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.common.resources import (
    GIB,
    KIB,
    MIB,
    Bytes,
    Millicpu,
    Resources,
    format_bytes,
)
from controlplane.domain.quotas.claims import GangShape, RoleShape

AMOUNTS = st.integers(min_value=0, max_value=1 << 40)
RESOURCES = st.builds(
    lambda cpu, memory: Resources(cpu=Millicpu(cpu), memory=Bytes(memory)), AMOUNTS, AMOUNTS
)


@given(RESOURCES, RESOURCES, st.integers(min_value=0, max_value=64))
def test_amounts_add_and_multiply_like_vectors(
    one: Resources, other: Resources, count: int
) -> None:
    assert one.plus(other) == other.plus(one)
    assert one.plus(other).plus(other.times(-1)) == one
    assert one.plus(other).times(count) == one.times(count).plus(other.times(count))


@pytest.mark.parametrize(
    ("amount", "formatted"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1.0 KiB"),
        (1536 * MIB, "1.5 GiB"),
        (150 * MIB, "150 MiB"),
        (8 * GIB, "8.0 GiB"),
        (5000 * 1024 * GIB, "5000 TiB"),
        (-3 * GIB, "-3.0 GiB"),
    ],
)
def test_bytes_are_said_with_a_fitting_unit(amount: int, formatted: str) -> None:
    assert format_bytes(amount) == formatted


SHAPES = st.lists(
    st.builds(
        RoleShape,
        name=st.text(min_size=1, max_size=8),
        replicas=st.integers(min_value=1, max_value=8),
        cards=st.integers(min_value=0, max_value=8),
        limits=RESOURCES,
    ),
    min_size=1,
    max_size=3,
).map(lambda roles: GangShape(roles=tuple(roles)))


@given(SHAPES)
def test_a_gang_survives_the_way_into_the_database_and_back(shape: GangShape) -> None:
    assert GangShape.from_json(shape.as_json()) == shape


def test_a_gang_counts_its_cards_and_says_its_shape() -> None:
    shape = GangShape(
        roles=(
            RoleShape(name="trainer", replicas=2, cards=4),
            RoleShape(name="helper", replicas=1, cards=1),
        )
    )
    assert shape.cards == 9
    assert shape.describe() == "2 × 4 cards and 1 × 1 card"


@pytest.mark.parametrize(
    ("replicas", "cards", "message"),
    [
        (0, 1, "replicas must be at least 1, got 0"),
        (1, -1, "role 'trainer': cards must not be negative, got -1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(replicas: int, cards: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RoleShape(name="trainer", replicas=replicas, cards=cards)
