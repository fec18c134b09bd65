"""The facts of an entry as lines of a page: what, how much, and how well it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.models.web.catalog_words import ABILITIES, COMPONENTS, DOUBTS, MODALITIES
from controlplane.domain.catalog import Entry
from controlplane.domain.common.resources import format_bytes
from controlplane.web.templatetags.ninefold import figure, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line; ``value`` is empty where it is not known."""

    label: str
    value: str
    #: What to say where no second source confirms it; empty elsewhere.
    doubt: str | Promise = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFact:
    """One line for several entries."""

    label: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def facts_of(entry: Entry) -> list[Fact]:
    """Every line, in the same order for every entry; what is not known has no value."""
    figures = "params_context_dtype"
    said = (
        (_("Modality"), str(MODALITIES[entry.modality]), ""),
        (pgettext("of a model", "Tasks"), _listed(entry.tasks), ""),
        (_("Family"), entry.family, ""),
        (_("Parameters"), _parameters(entry), figures),
        (_("Context"), _context(entry), figures),
        (_("Precision of the weights"), entry.dtype, figures),
        (_("Architecture"), entry.architecture, "architecture"),
        (_("Layers"), _count(entry.layers), "architecture"),
        (_("Width of a layer"), _count(entry.hidden), "architecture"),
        (_("Width inside of the feed-forward part"), _count(entry.intermediate), "architecture"),
        (_("Attention"), entry.attention.upper() if entry.attention else "", "architecture"),
        (_("Attention heads"), _count(entry.heads), "architecture"),
        (_("Heads of keys and values"), _count(entry.kv_heads), "architecture"),
        (_("Size of a head"), _count(entry.head_dim), "architecture"),
        (_("Compressed keys and values"), _latent(entry), "architecture"),
        (_("Experts"), _experts(entry), "architecture"),
        (_("KV cache for a token, 16 bit"), _kv(entry), "architecture"),
        (_("Licence"), entry.licence, "license"),
    )
    facts = [
        Fact(
            label=label,
            value=value,
            doubt=DOUBTS.get(entry.confidence.get(group, ""), "") if value else "",
        )
        for label, value, group in said
    ]
    return [*facts, *(_component(entry, name) for name in COMPONENTS)]


def _component(entry: Entry, name: str) -> Fact:
    value = entry.components.get(name)
    return Fact(label=str(COMPONENTS[name]), value="" if value is None else str(value))


def compared(entries: Sequence[Entry]) -> list[ComparedFact]:
    """The lines in which at least one of the entries says something."""
    columns = [facts_of(entry) for entry in entries]
    lines = [
        ComparedFact(label=facts[0].label, values=tuple(fact.value for fact in facts))
        for facts in zip(*columns, strict=True)
    ]
    return [line for line in lines if any(line.values)]


def _listed(tasks: Sequence[str]) -> str:
    return str(_(", ")).join(str(ABILITIES.get(task, task)) for task in tasks)


def _count(value: int | None) -> str:
    return "" if value is None else figure(value)


def _parameters(entry: Entry) -> str:
    if entry.parameters is None:
        return ""
    if entry.active_parameters is None:
        return rounded(entry.parameters)
    return _("%(all)s, %(active)s of them for a token") % {
        "all": rounded(entry.parameters),
        "active": rounded(entry.active_parameters),
    }


def _context(entry: Entry) -> str:
    if entry.context_length is None:
        return ""
    if entry.context_extended is None:
        return _("%(count)s tokens") % {"count": figure(entry.context_length)}
    return _("%(count)s tokens; %(more)s with RoPE scaling") % {
        "count": figure(entry.context_length),
        "more": figure(entry.context_extended),
    }


def _latent(entry: Entry) -> str:
    if not entry.mla:
        return ""
    return _("rank %(rank)s and %(rope)s for the position") % {
        "rank": entry.mla.get("kv_lora_rank", "–"),
        "rope": entry.mla.get("qk_rope_head_dim", "–"),
    }


def _experts(entry: Entry) -> str:
    if not entry.moe:
        return ""
    return _("%(count)s, of which %(chosen)s work on a token, and %(shared)s shared") % {
        "count": entry.moe.get("experts", "–"),
        "chosen": entry.moe.get("top_k", "–"),
        "shared": entry.moe.get("shared_experts", "–"),
    }


def _kv(entry: Entry) -> str:
    return format_bytes(entry.kv_bytes_per_token) if entry.kv_bytes_per_token else ""
