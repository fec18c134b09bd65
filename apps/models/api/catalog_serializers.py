"""How the catalog looks by REST. Entries are written from the catalog's own values, which every process
keeps; the serializers describe the answers and read the queries."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

from rest_framework import serializers
from rest_framework.renderers import JSONRenderer

from apps.models.models import CatalogCell
from apps.models.selectors import catalog as selectors
from apps.models.selectors.catalog_matrix import Claim, MatrixRow, vendors
from controlplane.domain.catalog import Entry, Modality
from controlplane.domain.catalog.facets import Facet, Size
from controlplane.domain.common.accelerators import ChipKind
from controlplane.web.rest import Query, Reference

CHIP_KINDS = [(kind.value, kind.value) for kind in ChipKind]
_UNKNOWN = "Null where it is not known."


class CatalogFilters(Query):
    q = serializers.CharField(
        required=False,
        max_length=100,
        help_text="Words of the title, family, architecture or repository.",
    )
    modality = serializers.MultipleChoiceField(
        choices=[(one.value, one.value) for one in Modality], required=False, help_text="Any of."
    )
    size = serializers.MultipleChoiceField(
        choices=[(one.value, one.value) for one in Size],
        required=False,
        help_text="Any of these classes of parameters.",
    )
    family = serializers.CharField(required=False, max_length=60)
    licence = serializers.CharField(required=False, max_length=60)
    task = serializers.CharField(required=False, max_length=40)
    train = serializers.MultipleChoiceField(
        choices=sorted(vendors()),
        required=False,
        help_text="Supported by an installed engine on the chips of all of these.",
    )
    serve = serializers.MultipleChoiceField(choices=sorted(vendors()), required=False)
    quantize = serializers.MultipleChoiceField(choices=sorted(vendors()), required=False)

    @staticmethod
    def choice_of(given: dict[str, Any]) -> dict[Facet, frozenset[str]]:
        """What is chosen of each facet."""
        return {
            facet: frozenset([value] if isinstance(value, str) else value)
            for facet in Facet
            if (value := given.get(facet.value))
        }


class CatalogCellSerializer(serializers.Serializer[Any]):
    """One task by one engine on one vendor's chips."""

    task = serializers.ChoiceField(choices=CatalogCell.TASKS)
    vendor = serializers.CharField()
    engine = serializers.CharField()
    status = serializers.ChoiceField(choices=CatalogCell.STATUSES)
    versions = serializers.CharField(
        help_text="Versions of the engine that the evidence speaks of (PEP 440); empty: it does not say."
    )
    methods = serializers.ListField(
        child=serializers.CharField(), help_text="Of training, or schemes of quantizing."
    )
    evidence = serializers.ListField(child=serializers.CharField(), help_text="Keys of sources.")
    caveat = serializers.ChoiceField(
        choices=CatalogCell.CAVEATS, allow_null=True, help_text="What limits the claim."
    )


class CatalogEntrySerializer(serializers.Serializer[Any]):
    """What is publicly known of one model."""

    key = serializers.CharField()
    title = serializers.CharField()
    family = serializers.CharField()
    modality = serializers.ChoiceField(choices=[(one.value, one.value) for one in Modality])
    tasks = serializers.ListField(child=serializers.CharField())
    architecture = serializers.CharField()
    dtype = serializers.CharField()
    confidence = serializers.DictField(
        child=serializers.CharField(), help_text="Group of facts → how sure they are."
    )
    evidence = serializers.ListField(child=serializers.CharField(), help_text="Keys of sources.")
    parameters = serializers.IntegerField(allow_null=True, help_text=_UNKNOWN)
    active_parameters = serializers.IntegerField(
        allow_null=True, help_text="Of a mixture of experts: those that one token passes through."
    )
    layers = serializers.IntegerField(allow_null=True)
    hidden = serializers.IntegerField(allow_null=True, help_text="Width of a layer.")
    heads = serializers.IntegerField(allow_null=True)
    kv_heads = serializers.IntegerField(allow_null=True)
    head_dim = serializers.IntegerField(allow_null=True)
    intermediate = serializers.IntegerField(allow_null=True)
    attention = serializers.CharField()
    mla = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    moe = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    components = serializers.DictField()
    context_length = serializers.IntegerField(allow_null=True)
    context_extended = serializers.IntegerField(allow_null=True, help_text="With RoPE scaling.")
    kv_bytes_per_token = serializers.IntegerField(allow_null=True, help_text="At 16 bit.")
    licence = serializers.CharField()
    hf_repo = serializers.CharField()
    modelscope_id = serializers.CharField()
    prequantized = serializers.ListField(child=serializers.CharField())
    notes = serializers.CharField()
    cells = CatalogCellSerializer(many=True)


class CatalogSourceSerializer(serializers.Serializer[Any]):
    key = serializers.CharField()
    title = serializers.CharField()


class CatalogClaimSerializer(serializers.Serializer[Claim]):
    engine = serializers.CharField()
    title = serializers.CharField()
    status = serializers.ChoiceField(choices=CatalogCell.STATUSES)
    versions = serializers.CharField()
    methods = serializers.ListField(child=serializers.CharField())
    evidence = serializers.ListField(child=serializers.CharField())
    caveat = serializers.ChoiceField(choices=CatalogCell.CAVEATS, allow_null=True)
    installed = serializers.BooleanField(help_text="Whether a plug-in for the engine is here.")
    renders = serializers.CharField(help_text="Versions that the plug-in writes arguments for.")
    renderable = serializers.BooleanField(
        help_text="Whether that plug-in renders the task for this model on some of these chips."
    )
    refusal = serializers.CharField(help_text="Why it does not; empty if it does.")


class CatalogMatrixSerializer(serializers.Serializer[MatrixRow]):
    """One vendor's chips. A square without claims is unknown."""

    vendor = serializers.CharField(source="vendor.name")
    title = serializers.CharField(source="vendor.title")
    kind = serializers.ChoiceField(source="vendor.kind", choices=CHIP_KINDS, allow_null=True)
    train = CatalogClaimSerializer(many=True, source="squares.train")
    serve = CatalogClaimSerializer(many=True, source="squares.serve")
    quantize = CatalogClaimSerializer(many=True, source="squares.quantize")


class CatalogDetailSerializer(CatalogEntrySerializer):
    withdrawn = serializers.BooleanField(help_text="The catalog no longer lists it.")
    matrix = CatalogMatrixSerializer(many=True)
    sources = CatalogSourceSerializer(many=True)
    versions = Reference(many=True, help_text="Of ours, those that you may see, the newest first.")


def document_of(entry: Entry) -> dict[str, Any]:
    """The entry as ``CatalogEntrySerializer`` describes it."""
    return asdict(entry)


@lru_cache(maxsize=2)
def documents_at(revision: str) -> dict[str, bytes]:
    """Every entry of that revision as JSON, by key: they are asked for far more often than they change."""
    encoder = JSONRenderer()
    return {
        key: encoder.render(document_of(entry))
        for key, entry in selectors.shelf_at(revision).entries.items()
    }
