"""LoRA adapters among the model versions: which versions have one, and what its configuration says."""

from __future__ import annotations

import json
from collections.abc import Sequence

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.models.selectors.model_versions import model_versions_usable
from apps.models.selectors.storage import artifact_file, input_tree
from controlplane.domain.common.reasons import Reason
from controlplane.domain.registry.lora_configs import (
    ADAPTER_CONFIG,
    LoraConfigFacts,
    adapter_files,
    parse_lora_config,
)
from controlplane.ports.launches import InputArtifact

#: Adapters of one base model that a form offers.
MAX_OFFERED = 50
_MAX_CONFIG_BYTES = 1024 * 1024


def lora_adapters_of(base: ModelVersion, *, user: accounts.RequestUser) -> Sequence[ModelVersion]:
    """The usable versions with a LoRA adapter that was trained from the base, the newest first."""
    derived = model_versions_usable(user).filter(base=base).order_by("-id")
    found = [
        version
        for version in derived
        if version.artifact is not None and adapter_files(version.artifact.tree)
    ]
    return found[:MAX_OFFERED]


def lora_config_facts(version: ModelVersion) -> LoraConfigFacts | None:
    """The facts of the version's LoRA adapter; None if it has none.

    :raises ValueError: if its configuration is not that of a LoRA adapter.
    :raises ArtifactFileMissing: if its bytes have been removed.
    :raises ArtifactError: if the store has lost it or does not answer.
    """
    artifact = version.artifact
    paths = adapter_files(artifact.tree) if artifact is not None else {}
    if artifact is None or not paths:
        return None
    content, _ = artifact_file(artifact, paths[ADAPTER_CONFIG])
    with content:
        return parse_lora_config(json.loads(content.read(_MAX_CONFIG_BYTES)))


def lora_adapter_input(name: str, version: ModelVersion) -> InputArtifact:
    """The files of the version's LoRA adapter as the input of a launch.

    :raises ValueError: if the version has no files.
    :raises BlobMissing: if its bytes have been removed.
    """
    if version.artifact is None:
        raise ValueError(
            Reason("model_version.files.missing", "{version} has no files", version=str(version))
        )
    whole = input_tree(name, version.artifact).files
    paths = adapter_files(whole)
    return InputArtifact(name=name, files={file: whole[path] for file, path in paths.items()})
