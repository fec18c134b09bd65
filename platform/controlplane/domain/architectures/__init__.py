"""Architectures of language models, parsed from ``config.json`` or from catalog facts."""

from controlplane.domain.architectures.architecture import (
    Architecture,
    AttentionCacheKind,
    generic_decoder,
)
from controlplane.domain.architectures.catalog_facts import (
    Contradiction,
    architecture_from_catalog,
    find_contradictions,
)
from controlplane.domain.architectures.config_parsing import ConfigRefused, parse_architecture
