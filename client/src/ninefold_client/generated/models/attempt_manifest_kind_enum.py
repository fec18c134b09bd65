from typing import Literal

AttemptManifestKindEnum = Literal["model", "outputs", "report"]

ATTEMPT_MANIFEST_KIND_ENUM_VALUES: set[AttemptManifestKindEnum] = {
    "model",
    "outputs",
    "report",
}


def check_attempt_manifest_kind_enum(value: str) -> AttemptManifestKindEnum:
    if value in ATTEMPT_MANIFEST_KIND_ENUM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {ATTEMPT_MANIFEST_KIND_ENUM_VALUES!r}"
    )
