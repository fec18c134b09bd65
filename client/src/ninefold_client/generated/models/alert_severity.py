from typing import Literal

AlertSeverity = Literal["critical", "info", "warning"]

ALERT_SEVERITY_VALUES: set[AlertSeverity] = {
    "critical",
    "info",
    "warning",
}


def check_alert_severity(value: str) -> AlertSeverity:
    if value in ALERT_SEVERITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ALERT_SEVERITY_VALUES!r}")
