"""Labels of catalog values, and the facts of an entry as labelled lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import pgettext, pgettext_lazy

from controlplane.domain.catalog import (
    CatalogEntry,
    CatalogTask,
    Modality,
    SupportCaveat,
    SupportLevel,
)
from controlplane.domain.catalog.entries import CatalogFacet, SizeClass
from controlplane.domain.common.resources import format_bytes
from controlplane.web.templatetags.ninefold import number, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFact:
    """One line; ``value`` is empty if it is unknown."""

    label: str
    value: str
    #: Label of a confidence below high; empty otherwise.
    confidence: str | Promise = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFact:
    """One line for several entries."""

    label: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def catalog_facts(entry: CatalogEntry) -> list[CatalogFact]:
    """Every line, in the same order for every entry; unknown facts have no value."""
    source = "params_context_dtype"
    tasks = str(_(", ")).join(str(ABILITIES.get(task, task)) for task in entry.tasks)
    cache = format_bytes(entry.kv_bytes_per_token) if entry.kv_bytes_per_token else ""
    said = (
        (_("Modality"), str(MODALITIES[entry.modality]), ""),
        (pgettext("of a model", "Tasks"), tasks, ""),
        (_("Family"), entry.family, ""),
        (_("Parameters"), _parameters_label(entry), source),
        (_("Context"), _context_label(entry), source),
        (_("Weight precision"), entry.dtype, source),
        (_("Architecture"), entry.architecture, "architecture"),
        (_("Layers"), _format_count(entry.layers), "architecture"),
        (_("Hidden size"), _format_count(entry.hidden), "architecture"),
        (
            _("Feed-forward (intermediate) size"),
            _format_count(entry.intermediate),
            "architecture",
        ),
        (_("Attention type"), entry.attention.upper() if entry.attention else "", "architecture"),
        (_("Attention heads"), _format_count(entry.heads), "architecture"),
        (_("KV heads"), _format_count(entry.kv_heads), "architecture"),
        (_("Head dimension"), _format_count(entry.head_dim), "architecture"),
        (_("Compressed KV (MLA)"), _latent_attention_label(entry), "architecture"),
        (_("Experts"), _experts_label(entry), "architecture"),
        (_("KV cache per token (16-bit)"), cache, "architecture"),
        (_("Licence"), entry.licence, "license"),
    )
    facts = [
        CatalogFact(
            label=label,
            value=value,
            confidence=CONFIDENCE_LABELS.get(entry.confidence.get(group, ""), "") if value else "",
        )
        for label, value, group in said
    ]
    parts = [
        CatalogFact(label=str(label), value=str(entry.components.get(name, "")))
        for name, label in COMPONENTS.items()
    ]
    return [*facts, *parts]


def compared_facts(entries: Sequence[CatalogEntry]) -> list[ComparedFact]:
    """The lines for which at least one of the entries has a value."""
    columns = [catalog_facts(entry) for entry in entries]
    lines = [
        ComparedFact(label=facts[0].label, values=tuple(fact.value for fact in facts))
        for facts in zip(*columns, strict=True)
    ]
    return [line for line in lines if any(line.values)]


def _format_count(value: int | None) -> str:
    return "" if value is None else number(value)


def _parameters_label(entry: CatalogEntry) -> str:
    if entry.parameters is None:
        return ""
    if entry.active_parameters is None:
        return rounded(entry.parameters)
    return _("%(all)s parameters, %(active)s active per token") % {
        "all": rounded(entry.parameters),
        "active": rounded(entry.active_parameters),
    }


def _context_label(entry: CatalogEntry) -> str:
    if entry.context_length is None:
        return ""
    if entry.context_extended is None:
        return _("%(count)s tokens") % {"count": number(entry.context_length)}
    return _("%(count)s tokens; %(more)s with RoPE scaling") % {
        "count": number(entry.context_length),
        "more": number(entry.context_extended),
    }


def _latent_attention_label(entry: CatalogEntry) -> str:
    if not entry.mla:
        return ""
    return _("KV rank %(rank)s, RoPE dimension %(rope)s") % {
        "rank": entry.mla.get("kv_lora_rank", "–"),
        "rope": entry.mla.get("qk_rope_head_dim", "–"),
    }


def _experts_label(entry: CatalogEntry) -> str:
    if not entry.moe:
        return ""
    return _("%(count)s experts, %(chosen)s active per token, %(shared)s shared") % {
        "count": entry.moe.get("experts", "–"),
        "chosen": entry.moe.get("top_k", "–"),
        "shared": entry.moe.get("shared_experts", "–"),
    }


MODALITIES: Mapping[Modality, Promise] = {
    Modality.LLM: lazy("language"),
    Modality.VLM: lazy("vision-language models"),
    Modality.EMBEDDING: lazy("embedding"),
    Modality.RERANK: lazy("reranking"),
    Modality.ASR: lazy("speech to text"),
    Modality.TTS: lazy("text to speech"),
    Modality.IMAGE: lazy("image generation"),
    Modality.VIDEO: lazy("video generation"),
    Modality.RECOMMENDER: lazy("recommendation"),
}
TASKS: Mapping[CatalogTask, Promise] = {
    CatalogTask.TRAIN: lazy("Train"),
    CatalogTask.SERVE: lazy("Serve"),
    CatalogTask.QUANTIZE: lazy("Quantize"),
}
#: Labels of model tasks; others are shown by their code.
ABILITIES: Mapping[str, Promise] = {
    "chat": lazy("chat"),
    "completion": lazy("completion"),
    "vision": lazy("image input"),
    "video": lazy("video input"),
    "audio": lazy("audio input"),
    "speech": lazy("audio output"),
    "reasoning": lazy("reasoning"),
    "text-to-image": lazy("text to image"),
    "image-to-image": lazy("image to image"),
    "text-to-video": lazy("text to video"),
    "transcription": lazy("transcription"),
    "embedding": lazy("embedding"),
    "multimodal-embedding": lazy("multimodal embedding"),
    "graph-embedding": lazy("graph embedding"),
    "rerank": lazy("reranking"),
    "ranking": lazy("ranking"),
    "retrieval": lazy("retrieval"),
    "ctr": lazy("click prediction"),
    "cvr": lazy("conversion prediction"),
    "generative-recommendation": lazy("generative recommendation"),
}
SIZES: Mapping[SizeClass, Promise | str] = {
    SizeClass.SMALL: lazy("under 1B"),
    SizeClass.LIGHT: "1B – 4B",
    SizeClass.MEDIUM: "4B – 10B",
    SizeClass.LARGE: "10B – 40B",
    SizeClass.HUGE: "40B – 100B",
    SizeClass.GIANT: lazy("100B or more"),
    SizeClass.UNKNOWN: lazy("unknown"),
}
FACETS: Mapping[CatalogFacet, Promise] = {
    CatalogFacet.MODALITY: lazy("Modality"),
    CatalogFacet.TRAIN: lazy("Trainable on"),
    CatalogFacet.SERVE: lazy("Deployable on"),
    CatalogFacet.QUANTIZE: lazy("Chips that support quantization"),
    CatalogFacet.SIZE: lazy("Parameters"),
    CatalogFacet.TASK: pgettext_lazy("of a model", "Task"),
    CatalogFacet.FAMILY: lazy("Family"),
    CatalogFacet.LICENCE: lazy("Licence"),
}
CAVEATS: Mapping[SupportCaveat, Promise] = {
    SupportCaveat.ARCHITECTURE: lazy("The source lists the architecture, not this model."),
    SupportCaveat.UNTRIED: lazy("Listed by the source, but not marked as verified."),
    SupportCaveat.RELEASE_NOTES: lazy("Stated in the release notes, not in the support table."),
    SupportCaveat.BACK_END: lazy("Supported with the FSDP2 backend only."),
    SupportCaveat.GENERIC: lazy("Derived from the layer types; no published result."),
    SupportCaveat.LOADED: lazy(
        "The release loads models of these quantization schemes; the quantization tool is not stated."
    ),
    SupportCaveat.HEARSAY: lazy("No published source."),
}
#: Labels of confidence levels below high.
CONFIDENCE_LABELS: Mapping[str, Promise] = {
    "medium": lazy("source not checked"),
    "low": lazy("assumed value"),
}
#: Labels of component fields of the data files.
COMPONENTS: Mapping[str, Promise] = {
    "pipeline": lazy("Diffusers pipeline"),
    "denoiser_params_b": lazy("Denoiser parameters (billions)"),
    "text_encoder": lazy("Text encoder"),
    "native_px": lazy("Image edge length (pixels)"),
    "cross_attention_dim": lazy("Cross-attention dimension"),
    "joint_blocks": lazy("Joint attention blocks (DiT)"),
    "single_blocks": lazy("Single-stream blocks (DiT)"),
    "ffn_dim": lazy("Denoiser block inner dimension"),
    "source_repo": lazy("Source code"),
}
#: Labels of fields that can differ between a configuration and the catalog.
FIELDS: Mapping[str, Promise] = {
    "architecture": lazy("Architecture"),
    "layers": lazy("Layers"),
    "hidden_size": lazy("Hidden size"),
    "attention_heads": lazy("Attention heads"),
    "kv_heads": lazy("KV heads"),
    "head_dim": lazy("Head dimension"),
    "intermediate_size": lazy("Feed-forward (intermediate) size"),
    "context_length": lazy("Context"),
    "dtype": lazy("Weight precision"),
    "params_b": lazy("Parameters (billions)"),
    "mla.kv_lora_rank": lazy("KV compression rank"),
    "mla.qk_rope_head_dim": lazy("RoPE head dimension"),
    "moe.experts": lazy("Experts"),
    "moe.top_k": lazy("Experts per token"),
    "moe.shared_experts": lazy("Shared experts"),
    "moe.moe_intermediate_size": lazy("Expert intermediate size"),
}


def support_display_state(status: SupportLevel) -> str:
    return "unsaid" if status is SupportLevel.UNKNOWN else status.value
