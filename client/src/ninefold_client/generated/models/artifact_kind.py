from typing import Literal

ArtifactKind = Literal["code", "dataset", "model", "outputs", "report"]

ARTIFACT_KIND_VALUES: set[ArtifactKind] = {
    "code",
    "dataset",
    "model",
    "outputs",
    "report",
}


def check_artifact_kind(value: str) -> ArtifactKind:
    if value in ARTIFACT_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ARTIFACT_KIND_VALUES!r}")
