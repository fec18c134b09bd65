"""Architectures of language models, parsed from ``config.json`` or from catalog facts."""

from controlplane.domain.architectures.architecture import (
    Architecture,
    AttentionCacheKind,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
    generic_decoder,
)
from controlplane.domain.architectures.catalog_facts import (
    Contradiction,
    architecture_from_catalog,
    find_contradictions,
)
from controlplane.domain.architectures.config_parsing import ConfigRefused, parse_architecture

__all__ = [
    "Architecture",
    "AttentionCacheKind",
    "ConfigRefused",
    "Contradiction",
    "LatentAttention",
    "LinearAttention",
    "MixtureOfExperts",
    "architecture_from_catalog",
    "find_contradictions",
    "generic_decoder",
    "parse_architecture",
]
