from typing import Literal

AlertsListSeverity = Literal["critical", "info", "warning"]

ALERTS_LIST_SEVERITY_VALUES: set[AlertsListSeverity] = {
    "critical",
    "info",
    "warning",
}


def check_alerts_list_severity(value: str) -> AlertsListSeverity:
    if value in ALERTS_LIST_SEVERITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ALERTS_LIST_SEVERITY_VALUES!r}")
