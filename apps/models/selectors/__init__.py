"""Queries for datasets, models, artifacts, the catalog and storage."""

from apps.models.selectors.datasets import (
    dataset_versions_usable,
    dataset_versions_visible,
    datasets_visible,
    datasets_with_newest_version,
    datasets_with_versions,
)
from apps.models.selectors.lora_adapters import (
    lora_adapter_input,
    lora_adapters_of,
    lora_config_facts,
)
from apps.models.selectors.model_versions import (
    ComparedEvaluation,
    ComparedMetric,
    JobOutputs,
    engine_model_facts,
    evaluations_visible,
    evaluations_with_base,
    importable_folders,
    model_lines_visible,
    model_version_ancestors,
    model_versions_usable,
    model_versions_visible,
    outputs_of_job,
    training_dataset_version,
)
from apps.models.selectors.storage import (
    ArtifactFileMissing,
    artifact_file,
    artifact_store,
    artifacts_visible,
    code_archives_visible,
    input_tree,
    launch_with_downloads,
)

__all__ = [
    "ArtifactFileMissing",
    "ComparedEvaluation",
    "ComparedMetric",
    "JobOutputs",
    "artifact_file",
    "artifact_store",
    "artifacts_visible",
    "code_archives_visible",
    "dataset_versions_usable",
    "dataset_versions_visible",
    "datasets_visible",
    "datasets_with_newest_version",
    "datasets_with_versions",
    "engine_model_facts",
    "evaluations_visible",
    "evaluations_with_base",
    "importable_folders",
    "input_tree",
    "launch_with_downloads",
    "lora_adapter_input",
    "lora_adapters_of",
    "lora_config_facts",
    "model_lines_visible",
    "model_version_ancestors",
    "model_versions_usable",
    "model_versions_visible",
    "outputs_of_job",
    "training_dataset_version",
]
