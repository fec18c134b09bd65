"""REST of nodes, cards and chips: serializers, views and addresses; and the serializers of clusters."""

from __future__ import annotations

from typing import Any

from django.urls import include, path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from apps.fleet import selectors
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.selectors import (
    FleetChip,
    clusters_with_counts,
    nodes_with_cluster,
    stored_cluster_checks,
)
from apps.fleet.services.clusters import ClusterChange, ClusterRegistration
from controlplane.domain.common.accelerators import CardState, ChipKind, ProfileConfidence
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.reasons import Reason
from controlplane.ports.clusters import CheckVerdict
from controlplane.web import rest
from controlplane.web.references import ReferenceNaming, register_reference_naming
from controlplane.web.type_schemas import DeclaredByKindField

#: Characters; the adapter has a bound of its own.
LONGEST_KUBECONFIG = 300_000


register_reference_naming(
    Cluster,
    ReferenceNaming(noun=Reason("reference.noun.cluster", "cluster"), example="cluster-a"),
)
register_reference_naming(
    Node,
    ReferenceNaming(
        noun=Reason("reference.noun.node", "node"), owner="cluster__name", example="node-17"
    ),
)


class ClusterCheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    verdict = rest.EnumField(CheckVerdict)
    message = serializers.CharField()
    remedy = serializers.CharField(help_text="Recommended action; empty if none is required.")
    manifest = serializers.CharField(
        help_text="What the remedy applies to the cluster, as YAML; empty if it applies nothing."
    )


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    nodes = serializers.IntegerField(source="node_count")
    cards = serializers.IntegerField(source="card_count")

    class Meta:
        model = Cluster
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "kind",
            "binding",
            "isolation",
            "error",
            "last_seen_at",
            "reachable_at",
            "version",
            "checked_at",
            "nodes",
            "cards",
        )
        extra_kwargs = {
            "reachable_at": {"help_text": "When the connection that watches it last proved itself."}
        }


class ClusterDetailSerializer(ClusterSerializer):
    """For whoever operates the fleet."""

    options = DeclaredByKindField(
        declared=selectors.cluster_option_models,
        help_text="Options of the adapter, without secrets.",
    )
    checks = serializers.SerializerMethodField(help_text="Results of the last connection check.")

    class Meta(ClusterSerializer.Meta):
        fields = (*ClusterSerializer.Meta.fields, "options", "checks", "created_by_name")

    @extend_schema_field(ClusterCheckSerializer(many=True))
    def get_checks(self, cluster: Cluster) -> list[dict[str, Any]]:
        return list(ClusterCheckSerializer(stored_cluster_checks(cluster), many=True).data)


_KUBECONFIG = (
    "Kept encrypted and never shown again. Empty: the product runs inside of that cluster."
)


class ClusterChangeSerializer(rest.StrictSerializer[Any]):
    options = DeclaredByKindField(
        declared=selectors.remote_cluster_option_models,
        required=False,
        help_text="All options; replaces the current options.",
    )
    binding = serializers.ChoiceField(choices=Cluster.BindingMode.choices, required=False)
    kubeconfig = serializers.CharField(
        required=False,
        write_only=True,
        allow_blank=True,
        trim_whitespace=False,
        max_length=LONGEST_KUBECONFIG,
        help_text=_KUBECONFIG,
    )
    although_unfit = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Save the cluster even if a connection check fails.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        although_unfit = attrs.pop("although_unfit")
        return {"change": ClusterChange(**attrs), "although_unfit": although_unfit}


class ClusterCreateSerializer(ClusterChangeSerializer):
    name = serializers.CharField(
        max_length=40, help_text="Lower-case Latin letters, digits and hyphens; unique."
    )
    kind = serializers.CharField(max_length=20, help_text="Adapter, for example kubernetes.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        although_unfit = attrs.pop("although_unfit")
        return {"registration": ClusterRegistration(**attrs), "although_unfit": although_unfit}


class CardLocalitySerializer(serializers.Serializer[Any]):
    pci_address = serializers.CharField()
    numa_node = serializers.IntegerField(
        allow_null=True, help_text="NUMA node of the card; null if the host does not report it."
    )
    nics_same_switch = rest.TextListField(
        help_text="Network adapters below the same PCI root port."
    )
    nics_same_numa = rest.TextListField(help_text="Further network adapters of the same NUMA node.")


class NodeSerializer(serializers.ModelSerializer[Node]):
    cluster = rest.ObjectReference()
    labels = serializers.DictField(child=serializers.CharField())
    locality = serializers.DictField(
        child=CardLocalitySerializer(),
        help_text="Locality by card index; empty if no agent has reported it.",
    )

    class Meta:
        model = Node
        fields = (
            "uid",
            "name",
            "cluster",
            "cpu",
            "memory",
            "ready",
            "cordoned",
            "labels",
            "locality",
            "last_seen_at",
        )
        extra_kwargs = {
            "cpu": {"help_text": "Thousandths of a core."},
            "memory": {"help_text": "Bytes."},
        }


class CardSerializer(serializers.ModelSerializer[Card]):
    node = rest.ObjectReference()

    class Meta:
        model = Card
        fields = ("uid", "node", "index", "chip", "memory", "serial", "state", "state_reason")
        extra_kwargs = {
            "memory": {"help_text": "Bytes; 0 where the card has no memory of its own."}
        }


class NodeFilters(rest.ListFilters):
    lookups = {"cluster": "cluster", "ready": "ready"}

    cluster = rest.VisibleUidField(
        visible=lambda _user: clusters_with_counts(),
        required=False,
        help_text="Name or uid of the cluster.",
    )
    ready = serializers.BooleanField(required=False)


class CardFilters(rest.ListFilters):
    lookups = {
        "cluster": "node__cluster",
        "node": "node",
        "chip": "chip",
        "state": "state__in",
    }

    cluster = rest.VisibleUidField(
        visible=lambda _user: clusters_with_counts(),
        required=False,
        help_text="Name or uid of the cluster.",
    )
    node = rest.VisibleUidField(
        visible=lambda _user: nodes_with_cluster(),
        required=False,
        help_text="Name or uid of the node.",
    )
    chip = serializers.CharField(required=False)
    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in CardState], required=False
    )


class ChipSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="chip.name")
    title = serializers.CharField(source="chip.label")
    vendor = serializers.CharField(source="chip.vendor")
    kind = rest.EnumField(ChipKind, source="chip.kind")
    memory = serializers.IntegerField(
        source="chip.memory",
        help_text="Memory of one card in bytes; 0 if it has none or is unknown.",
    )
    memory_bandwidth = serializers.FloatField(
        source="chip.memory_bandwidth",
        allow_null=True,
        help_text="Memory bandwidth of one card in bytes per second; null if not published.",
    )
    link_bandwidth = serializers.FloatField(
        source="chip.link_bandwidth",
        allow_null=True,
        help_text="Bandwidth of a link between cards in bytes per second and direction; null if "
        "not published.",
    )
    peak_rates = serializers.DictField(
        source="chip.peak_rates",
        child=serializers.FloatField(),
        help_text="Dense operations per second by data type; only published values.",
    )
    legal_request_sizes = serializers.ListField(
        source="chip.legal_request_sizes",
        child=serializers.IntegerField(),
        help_text="Numbers of cards per request and node that the hardware supports; empty: any.",
    )
    aliases = serializers.SerializerMethodField(
        help_text="Other names of the chip in drivers, exporters and node labels."
    )
    resource = serializers.CharField(
        source="chip.resource", help_text="Extended resource on Kubernetes; empty if none."
    )
    confidence = rest.EnumField(ProfileConfidence, source="chip.confidence")
    unverified = serializers.SerializerMethodField(
        help_text="Fields that no vendor document confirms."
    )
    run_on_hardware = serializers.BooleanField(
        source="profile.run_on_hardware",
        help_text="Whether workloads of this product have run on this chip.",
    )
    cards = serializers.IntegerField(help_text="Cards in the fleet.")
    usable_cards = serializers.IntegerField(
        source="usable", help_text="Cards that accept new workloads."
    )

    def get_aliases(self, known: FleetChip) -> list[str]:
        return sorted(known.chip.aliases)

    def get_unverified(self, known: FleetChip) -> list[str]:
        return sorted(known.chip.unverified)


class NodeViewSet(rest.CollectionViewSet[Node]):
    tag = "fleet"
    summaries = {"list": "Nodes", "retrieve": "A node"}
    token_scope = Scope.ADMIN
    serializer_class = NodeSerializer
    queries = {"list": NodeFilters}
    visible = staticmethod(lambda _user: selectors.nodes_with_cluster())


class CardViewSet(rest.CollectionViewSet[Card]):
    tag = "fleet"
    summaries = {"list": "Cards", "retrieve": "A card"}
    token_scope = Scope.ADMIN
    serializer_class = CardSerializer
    queries = {"list": CardFilters}
    visible = staticmethod(lambda _user: selectors.cards_with_node())


class ChipsView(rest.StrictView):
    """The chips that the installed plug-ins know."""

    tag = "fleet"
    token_scope = Scope.READ

    @extend_schema(summary="Chips", responses=ChipSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(ChipSerializer(selectors.fleet_chips(), many=True).data)


class ChipView(rest.StrictView):
    """One of them, by its name or another that drivers and labels give it."""

    tag = "fleet"
    token_scope = Scope.READ

    @extend_schema(summary="A chip", responses=ChipSerializer)
    def get(self, request: Request, name: str) -> Response:
        known = selectors.fleet_chip(name)
        if known is None:
            raise NotFound(f"no plug-in knows a chip called {name!r}")
        return Response(ChipSerializer(known).data)


router = SimpleRouter(trailing_slash=False)
router.register("nodes", NodeViewSet, basename="node")
router.register("cards", CardViewSet, basename="card")

urlpatterns = [
    path("chips", ChipsView.as_view(), name="api-chips"),
    path("chips/<slug:name>", ChipView.as_view(), name="api-chip"),
    path("", include(router.urls)),
]
