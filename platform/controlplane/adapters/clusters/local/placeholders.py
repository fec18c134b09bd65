"""What the placeholders of a Launch stand for on this machine."""

from __future__ import annotations

from collections.abc import Mapping


def values(
    *, work: str, inputs: str, python: str, index: int, ports: Mapping[str, int]
) -> dict[str, str]:
    filled = {
        "work": work,
        "inputs": inputs,
        "python": python,
        "index": str(index),
        # Every replica of this cluster is on this machine.
        "leader": "127.0.0.1",
    }
    return filled | {f"port:{name}": str(number) for name, number in ports.items()}
