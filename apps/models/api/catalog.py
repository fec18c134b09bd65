"""REST API of the catalog. Entries are cached as JSON per catalog revision."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.models import selectors as registry
from apps.models.models import CatalogCell
from apps.models.selectors import catalog as selectors
from apps.models.selectors.catalog import (
    CatalogSupportClaim,
    MatrixRow,
    chip_vendors,
    compatibility_matrix,
)
from controlplane.domain.catalog import CatalogEntry, Modality
from controlplane.domain.catalog.entries import CatalogFacet, SizeClass
from controlplane.domain.common.accelerators import ChipKind
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import (
    EnumField,
    ObjectReference,
    QuerySerializer,
    StrictView,
    TextListField,
)
from controlplane.web.type_schemas import ScalarMapField

CHIP_KINDS = [(kind.value, kind.value) for kind in ChipKind]
_UNKNOWN = "Null where it is not known."


class CatalogFilters(QuerySerializer):
    q = serializers.CharField(
        required=False,
        max_length=100,
        help_text="Search text for title, family, architecture or repository.",
    )
    modality = serializers.MultipleChoiceField(
        choices=[(one.value, one.value) for one in Modality],
        required=False,
        help_text="Modalities; entries with any of them match.",
    )
    size = serializers.MultipleChoiceField(
        choices=[(one.value, one.value) for one in SizeClass],
        required=False,
        help_text="Size classes; entries with any of them match.",
    )
    family = serializers.CharField(required=False, max_length=60)
    licence = serializers.CharField(required=False, max_length=60)
    task = serializers.CharField(required=False, max_length=40)
    train = serializers.MultipleChoiceField(
        choices=sorted(chip_vendors()),
        required=False,
        help_text="Vendors; entries match if an installed engine supports the task on chips of "
        "all of them.",
    )
    serve = serializers.MultipleChoiceField(choices=sorted(chip_vendors()), required=False)
    quantize = serializers.MultipleChoiceField(choices=sorted(chip_vendors()), required=False)

    @staticmethod
    def facet_selection(given: dict[str, Any]) -> dict[CatalogFacet, frozenset[str]]:
        return {
            facet: frozenset([value] if isinstance(value, str) else value)
            for facet in CatalogFacet
            if (value := given.get(facet.value))
        }


class CatalogCellSerializer(serializers.Serializer[Any]):
    """One task by one engine on one vendor's chips."""

    task = serializers.ChoiceField(choices=CatalogCell.TASKS)
    vendor = serializers.CharField()
    engine = serializers.CharField()
    status = serializers.ChoiceField(choices=CatalogCell.STATUSES)
    versions = serializers.CharField(
        help_text="Engine versions that the evidence names (PEP 440); empty if it names none."
    )
    methods = TextListField(help_text="Training methods or quantization schemes.")
    evidence = TextListField(help_text="Keys of the sources.")
    caveat = serializers.ChoiceField(
        choices=CatalogCell.CAVEATS, allow_null=True, help_text="Limitation of the claim."
    )


class CatalogEntrySerializer(serializers.Serializer[Any]):
    """What is publicly known of one model."""

    key = serializers.CharField()
    title = serializers.CharField()
    family = serializers.CharField()
    modality = EnumField(Modality)
    tasks = TextListField()
    architecture = serializers.CharField()
    dtype = serializers.CharField()
    confidence = serializers.DictField(
        child=serializers.CharField(), help_text="Confidence by group of facts."
    )
    evidence = TextListField(help_text="Keys of the sources.")
    parameters = serializers.IntegerField(allow_null=True, help_text=_UNKNOWN)
    active_parameters = serializers.IntegerField(
        allow_null=True, help_text="Parameters that are active per token in a mixture of experts."
    )
    layers = serializers.IntegerField(allow_null=True)
    hidden = serializers.IntegerField(allow_null=True, help_text="Hidden size.")
    heads = serializers.IntegerField(allow_null=True)
    kv_heads = serializers.IntegerField(allow_null=True)
    head_dim = serializers.IntegerField(allow_null=True)
    intermediate = serializers.IntegerField(allow_null=True)
    attention = serializers.CharField()
    mla = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    moe = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    components = ScalarMapField(
        help_text="Facts of the parts of a pipeline, such as its text encoder."
    )
    context_length = serializers.IntegerField(allow_null=True)
    context_extended = serializers.IntegerField(
        allow_null=True, help_text="Context length with RoPE scaling."
    )
    kv_bytes_per_token = serializers.IntegerField(
        allow_null=True, help_text="KV cache in bytes per token at 16 bits."
    )
    licence = serializers.CharField()
    hf_repo = serializers.CharField()
    modelscope_id = serializers.CharField()
    prequantized = TextListField()
    notes = serializers.CharField()
    cells = CatalogCellSerializer(many=True)


class CatalogSourceSerializer(serializers.Serializer[Any]):
    key = serializers.CharField()
    title = serializers.CharField()


class CatalogClaimSerializer(serializers.Serializer[CatalogSupportClaim]):
    engine = serializers.CharField()
    title = serializers.CharField()
    status = serializers.ChoiceField(choices=CatalogCell.STATUSES)
    versions = serializers.CharField()
    methods = TextListField()
    evidence = TextListField()
    caveat = serializers.ChoiceField(choices=CatalogCell.CAVEATS, allow_null=True)
    installed = serializers.BooleanField(help_text="Whether a plug-in for the engine is installed.")
    renders = serializers.CharField(help_text="Engine versions that the plug-in supports.")
    renderable = serializers.BooleanField(
        help_text="Whether the plug-in renders the task for this model on at least one of these "
        "chips."
    )
    refusal = serializers.CharField(help_text="Reason if it does not; else empty.")


class CatalogMatrixSerializer(serializers.Serializer[MatrixRow]):
    """One vendor's chips. A square without claims is unknown."""

    vendor = serializers.CharField(source="vendor.name")
    title = serializers.CharField(source="vendor.title")
    kind = serializers.ChoiceField(source="vendor.kind", choices=CHIP_KINDS, allow_null=True)
    train = CatalogClaimSerializer(many=True, source="cells.train")
    serve = CatalogClaimSerializer(many=True, source="cells.serve")
    quantize = CatalogClaimSerializer(many=True, source="cells.quantize")


class CatalogDetailSerializer(CatalogEntrySerializer):
    withdrawn = serializers.BooleanField(
        help_text="Whether the entry was withdrawn from the catalog."
    )
    matrix = CatalogMatrixSerializer(many=True)
    sources = CatalogSourceSerializer(many=True)
    versions = ObjectReference(
        many=True, help_text="Registered versions that are visible to you, newest first."
    )


def catalog_entry_json(entry: CatalogEntry) -> dict[str, Any]:
    """The entry as ``CatalogEntrySerializer`` describes it."""
    return asdict(entry)


@lru_cache(maxsize=2)
def entry_documents_at(revision: str) -> dict[str, bytes]:
    """Every entry of that revision as JSON, by key; cached because reads are far more frequent than changes."""
    encoder = JSONRenderer()
    return {
        key: encoder.render(catalog_entry_json(entry))
        for key, entry in selectors.catalog_snapshot_at(revision).entries.items()
    }


#: Newest registered versions of an entry that are listed.
_MAX_VERSIONS = 50


class CatalogView(StrictView):
    tag = "catalog"
    token_scope = Scope.MODELS
    queries = {"get": CatalogFilters}

    @extend_schema(
        summary="Model catalog",
        description="All matching models by title, with their compatibility matrices. Not paginated.",
        responses=CatalogEntrySerializer(many=True),
    )
    def get(self, request: Request) -> HttpResponse:
        given = self.query
        index = selectors.catalog_index()
        found = index.fitting(choice=CatalogFilters.facet_selection(given), text=given.get("q", ""))
        documents = entry_documents_at(index.revision)
        body = b"[%s]" % b",".join(documents[entry.key] for entry in found)
        return HttpResponse(body, content_type="application/json")


class CatalogEntryView(StrictView):
    tag = "catalog"
    token_scope = Scope.MODELS

    @extend_schema(
        summary="A catalog model",
        description="Includes the compatibility matrix for all known chips, the sources and the "
        "registered versions.",
        parameters=[OpenApiParameter("key", OpenApiTypes.STR, OpenApiParameter.PATH)],
        responses=CatalogDetailSerializer,
    )
    def get(self, request: Request, key: str) -> Response:
        found = selectors.catalog_entry(key)
        if found is None:
            raise Http404(f"the catalog has no model called {key!r}")
        entry, withdrawn = found
        known = selectors.catalog_sources()
        keys = {*entry.evidence, *(name for cell in entry.cells for name in cell.evidence)}
        versions = registry.model_versions_visible(request.user).filter(catalog_model__key=key)
        answer = {
            **catalog_entry_json(entry),
            "withdrawn": withdrawn,
            "matrix": compatibility_matrix(entry),
            "sources": [known[name] for name in sorted(keys) if name in known],
            "versions": versions[:_MAX_VERSIONS],
        }
        return Response(CatalogDetailSerializer(answer).data)
