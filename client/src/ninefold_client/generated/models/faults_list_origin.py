from typing import Literal

FaultsListOrigin = Literal[
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

FAULTS_LIST_ORIGIN_VALUES: set[FaultsListOrigin] = {
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


def check_faults_list_origin(value: str) -> FaultsListOrigin:
    if value in FAULTS_LIST_ORIGIN_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FAULTS_LIST_ORIGIN_VALUES!r}")
