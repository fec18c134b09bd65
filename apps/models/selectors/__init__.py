"""Queries for datasets, models, artifacts, the catalog and storage."""

from apps.models.selectors.datasets import (
    dataset_versions_usable,
    dataset_versions_visible,
    datasets_visible,
    datasets_with_newest_version,
    datasets_with_versions,
)
from apps.models.selectors.model_versions import (
    JobOutputs,
    engine_model_facts,
    evaluations_visible,
    evaluations_with_base,
    importable_folders,
    lora_adapter_input,
    lora_adapters_of,
    lora_config_facts,
    model_lines_visible,
    model_version_ancestors,
    model_versions_usable,
    model_versions_visible,
    model_versions_with_sources,
    outputs_of_job,
    served_model_facts,
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
