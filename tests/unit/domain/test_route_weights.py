from __future__ import annotations

from typing import Any

import pytest

from apps.serving.services.routes import MAX_WEIGHT, check_route_weights
from controlplane.domain.serving.rollouts import shift_all_traffic_at_once


@pytest.mark.parametrize(
    "weights",
    [{"a": 100}, {"a": 0, "b": 1}, {"a": MAX_WEIGHT, "b": MAX_WEIGHT}, {}],
)
def test_whole_numbers_with_a_sum_above_zero_are_weights(weights: dict[str, int]) -> None:
    assert list(check_route_weights(weights, route="parser")) == []


@pytest.mark.parametrize("weight", [-1, MAX_WEIGHT + 1, 0.5, 1.0, True, "1", None])
def test_a_weight_that_is_no_whole_number_in_range_is_refused_with_its_value(weight: Any) -> None:
    (finding,) = check_route_weights({"a": weight, "b": 1}, route="parser")
    assert finding.message == (
        f"the weight of a is {weight}; it must be a whole number from 0 to 1000000"
    )


def test_weights_that_are_all_zero_are_refused() -> None:
    (finding,) = check_route_weights({"a": 0, "b": 0}, route="parser")
    assert (
        finding.message == "the weights of route parser are all 0; at least one must be 1 or more"
    )


def test_all_at_once_gives_the_new_revision_the_share_of_the_deployment() -> None:
    assert shift_all_traffic_at_once({"old": 30, "new": 10}, to="new") == {"new": 40}
    assert shift_all_traffic_at_once({"older": 1, "old": 2}, to="new") == {"new": 3}
