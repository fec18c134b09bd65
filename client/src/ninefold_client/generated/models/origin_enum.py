from typing import Literal

OriginEnum = Literal[
    "agent",
    "condition",
    "event",
    "exporter",
    "job",
    "mindcluster",
    "nvsentinel",
    "person",
    "rule",
    "silence",
]

ORIGIN_ENUM_VALUES: set[OriginEnum] = {
    "agent",
    "condition",
    "event",
    "exporter",
    "job",
    "mindcluster",
    "nvsentinel",
    "person",
    "rule",
    "silence",
}


def check_origin_enum(value: str) -> OriginEnum:
    if value in ORIGIN_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ORIGIN_ENUM_VALUES!r}")
