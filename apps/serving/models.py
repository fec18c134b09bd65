"""Deployments, their revisions and replicas, weight downloads, routes, API keys, gateways and usage."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Team, User
from apps.fleet.models import Cluster, Node
from apps.models.models import ModelVersion
from apps.quotas.models import Queue
from controlplane.domain.serving.lifecycle import (
    ACTIVE_WEIGHT_DOWNLOAD_STATES,
    DeploymentState,
    ReplicaState,
    WeightDownloadState,
)
from controlplane.domain.serving.rollouts import RolloutStrategy
from controlplane.persistence.models import LeasedModel, Transition, UidModel
from controlplane.persistence.reasons import ReasonField


class Deployment(UidModel, LeasedModel):
    """Serving of a model under one public name."""

    STATES = [(state.value, state.value) for state in DeploymentState]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="deployments")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.SlugField(max_length=80)
    state = models.CharField(max_length=20, choices=STATES, default=DeploymentState.STARTING)
    state_reason = ReasonField()
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="deployments")
    #: Replicas that should serve; 0 while it is stopped.
    replica_count = models.PositiveIntegerField(default=1)
    #: Number or percentage of replicas (``1``, ``25%``): see ``controlplane.domain.serving.rollouts``.
    max_surge = models.CharField(max_length=4, default="1", db_default="1")
    max_unavailable = models.CharField(max_length=4, default="0", db_default="0")
    #: When its rollouts were paused; None while they are not.
    paused_at = models.DateTimeField(null=True, blank=True)
    #: When they were last resumed: the progress deadline starts again then.
    resumed_at = models.DateTimeField(null=True, blank=True)
    #: It is deleted once its replicas have stopped.
    deletion_requested_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("name",),
                condition=models.Q(deleted_at=None),
                name="deployment_name_once",
            ),
        )

    @property
    def strategy(self) -> RolloutStrategy:
        return RolloutStrategy(max_surge=self.max_surge, max_unavailable=self.max_unavailable)


class DeploymentTransition(Transition):
    entity = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class Revision(UidModel):
    """One configuration of a deployment: model version, engine, its fields, which never change."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, related_name="revisions"
    )
    engine = models.CharField(max_length=40)
    spec = models.JSONField()
    chips = models.JSONField()
    #: Cards of one replica.
    cards = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    #: When its rollout failed; the deployment then returned to the newest revision that has not failed.
    failed_at = models.DateTimeField(null=True, blank=True)
    failure_reason = ReasonField()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("deployment", "number"), name="revision_number"),
        )

    def __str__(self) -> str:
        return f"{self.deployment} r{self.number}"


class RevisionAdapter(models.Model):
    """A LoRA adapter that a revision serves beside its model, under a model name of its own."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="adapters")
    name = models.SlugField(max_length=80)
    model_version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="+")
    #: Greatest rank of its matrices.
    rank = models.PositiveIntegerField()

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("revision", "name"), name="revision_adapter_name"),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.model_version})"


class Backend(UidModel):
    """A revision on one chip."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="backends")
    chips = models.JSONField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.revision} on {' or '.join(self.chips)}"


class Replica(UidModel, LeasedModel):
    """One serving process group, with a claim of its own."""

    STATES = [(state.value, state.value) for state in ReplicaState]

    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="replicas")
    state = models.CharField(max_length=20, choices=STATES, default=ReplicaState.PENDING)
    message = ReasonField()
    claim_uid = models.CharField(max_length=32, blank=True, db_index=True)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60, blank=True)
    #: Grows with each restart, so that every run has a Launch of its own.
    generation = models.PositiveIntegerField(default=1)
    #: Consecutive crashes; back to 1 after ten minutes in state ready.
    crashes = models.PositiveIntegerField(default=0)
    restart_at = models.DateTimeField(null=True, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    url = models.CharField(max_length=200, blank=True)
    log_tail = models.TextField(blank=True)
    #: The release reason that its claim gets.
    stop_reason = models.CharField(max_length=20, blank=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.backend} {self.uid[:8]}"

    @property
    def launch_name(self) -> str:
        return f"replica-{self.uid}-{self.generation}"


class ReplicaTransition(Transition):
    entity = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class WeightDownload(UidModel, LeasedModel):
    """Download of a model version's weights into the weight cache of a node, before a replica needs them."""

    STATES = [(state.value, state.value) for state in WeightDownloadState]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="weight_downloads")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.CASCADE, related_name="weight_downloads"
    )
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="weight_downloads")
    state = models.CharField(max_length=20, choices=STATES, default=WeightDownloadState.PENDING)
    message = ReasonField()
    #: Bytes of the weights, and how many of them are in the cache.
    size = models.BigIntegerField()
    downloaded = models.BigIntegerField(default=0)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("team", "model_version", "node"),
                condition=models.Q(state__in=ACTIVE_WEIGHT_DOWNLOAD_STATES),
                name="weight_download_active_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.model_version} on {self.node}"

    @property
    def launch_name(self) -> str:
        return f"weights-{self.uid}"


class WeightDownloadTransition(Transition):
    entity = models.ForeignKey(WeightDownload, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class Route(UidModel):
    """The public model name, with weighted backends. Names are unique across the company.

    Its backends are those of its deployment, which always has one, and of others of the same team.
    """

    name = models.SlugField(max_length=80, unique=True)
    #: The deployment that it was created and is deleted with.
    deployment = models.OneToOneField(Deployment, on_delete=models.CASCADE, related_name="route")


class AdapterRoute(UidModel):
    """The public model name of a LoRA adapter of a deployment; no route and no other adapter has it.

    Its requests go to the backend of the deployment that has the traffic of the deployment's own route.
    """

    name = models.SlugField(max_length=80, unique=True)
    deployment = models.ForeignKey(
        Deployment, on_delete=models.CASCADE, related_name="adapter_routes"
    )

    class Meta:
        ordering = ("name",)


class RouteBackend(models.Model):
    """A backend of a route with its weight; a deployment has one in a route."""

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="weights")
    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="+")
    #: Share of the traffic, relative to the other backends of the route; 0 for no requests.
    weight = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("route", "backend"), name="route_backend_once"),
        )

    def __str__(self) -> str:
        return f"{self.route} → {self.backend} ({self.weight})"


class ApiKey(UidModel):
    """Lets a program call a team's deployments through the gateway. Only its digest is stored."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="api_keys")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    #: Names of routes that it may call; None means all of the team's.
    routes = models.JSONField(null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrency = models.PositiveIntegerField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Gateway(models.Model):
    """A gateway process: when it last polled, and the snapshot version that it has."""

    name = models.CharField(max_length=80, unique=True)
    last_seen_at = models.DateTimeField()
    version = models.BigIntegerField(default=0)
    #: Open requests by uid of the replicas that this version no longer names.
    draining_requests = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.name


class GatewaySnapshot(models.Model):
    """What gateways serve from: routes, endpoints, keys. The newest version counts; some older ones are kept."""

    version = models.BigAutoField(primary_key=True)
    digest = models.CharField(max_length=64)
    #: Encrypted at rest: it contains the credentials of the engines.
    body = models.BinaryField()
    issued_at = models.DateTimeField()

    class Meta:
        ordering = ("-version",)

    def __str__(self) -> str:
        return f"snapshot {self.version}"


class UsageBatch(models.Model):
    """A batch that a gateway posted. Its unique key keeps it from being counted twice."""

    gateway = models.CharField(max_length=80)
    sequence = models.BigIntegerField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("gateway", "sequence"), name="usage_batch_once"),
        )
        verbose_name_plural = "usage batches"

    def __str__(self) -> str:
        return f"{self.gateway} #{self.sequence}"


class GatewayCall(models.Model):
    """One call through the gateway."""

    batch = models.ForeignKey(UsageBatch, on_delete=models.CASCADE, related_name="records")
    at = models.DateTimeField()
    key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="usage")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="usage")
    route = models.CharField(max_length=80)
    backend_uid = models.CharField(max_length=32, blank=True)
    operation = models.CharField(max_length=20)
    status = models.PositiveSmallIntegerField()
    outcome = models.CharField(max_length=20)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    #: Milliseconds from request to last byte.
    duration_ms = models.FloatField(default=0.0)
    #: Milliseconds to the first token; None where the answer was not streamed.
    first_token_ms = models.FloatField(null=True, blank=True)

    class Meta:
        # Its name in the first releases.
        db_table = "serving_usagerecord"
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("key", "-at")),
            models.Index(fields=("route", "-at")),
        )

    def __str__(self) -> str:
        return f"{self.route} {self.status}"
