from typing import Literal

NotificationSeverityEnum = Literal["bad", "good", "info"]

NOTIFICATION_SEVERITY_ENUM_VALUES: set[NotificationSeverityEnum] = {
    "bad",
    "good",
    "info",
}


def check_notification_severity_enum(value: str) -> NotificationSeverityEnum:
    if value in NOTIFICATION_SEVERITY_ENUM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {NOTIFICATION_SEVERITY_ENUM_VALUES!r}"
    )
