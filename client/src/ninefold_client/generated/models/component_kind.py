from typing import Literal

ComponentKind = Literal[
    "agents",
    "beat",
    "broker",
    "cluster",
    "database",
    "disk",
    "gateway",
    "outbox",
    "watcher",
    "web",
    "worker",
]

COMPONENT_KIND_VALUES: set[ComponentKind] = {
    "agents",
    "beat",
    "broker",
    "cluster",
    "database",
    "disk",
    "gateway",
    "outbox",
    "watcher",
    "web",
    "worker",
}


def check_component_kind(value: str) -> ComponentKind:
    if value in COMPONENT_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {COMPONENT_KIND_VALUES!r}")
