"""Weights of the backends of a route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controlplane.domain.common.spec_fields import FieldFinding

#: The greatest weight of a backend in a route, as of a backend in the Gateway API of Kubernetes.
MAX_WEIGHT = 1_000_000


def check_weights(weights: Mapping[str, int], *, route: str) -> Iterator[FieldFinding]:
    """Findings about the weights of a route, given by the names of its deployments."""
    for name, weight in weights.items():
        # bool is a subclass of int.
        if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
            message = f"the weight of {name} is {weight}; it must be a whole number from 0 to {MAX_WEIGHT}"
            yield FieldFinding(field="weights", message=message)
    if weights and not any(weights.values()):
        message = f"the weights of the route {route} are all 0; one of them must be at least 1"
        yield FieldFinding(field="weights", message=message)
