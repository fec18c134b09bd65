"""Lineage graph: dataset versions → jobs → model versions → deployments.

Four queries, however large the graph. Objects that the user may not see are left out, with their edges and
the paths that lead through them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from apps.accounts import selectors as accounts
from apps.jobs import selectors as jobs
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.serving.models import Deployment, RouteBackend
from controlplane.persistence.transactions import fetch_rows

#: Default and maximum number of generations of models in each direction.
DEFAULT_DEPTH = 3
MAX_DEPTH = 24
#: Maximum number of model versions of one graph; the nearest are included.
MAX_VERSIONS = 60
#: Maximum number of jobs that read the dataset; the newest are included.
MAX_READERS = 24

NodePair = tuple[str, str]


class LineageNodeKind(StrEnum):
    DATASET = "dataset"
    JOB = "job"
    MODEL = "model"
    DEPLOYMENT = "deployment"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageNode:
    kind: LineageNodeKind
    uid: str
    name: str
    #: Shown beside the name: the kind of a job, the number of rows of a dataset.
    detail: str
    #: Empty for a dataset, which has no state.
    state: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.uid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    nodes: tuple[LineageNode, ...]
    #: Pairs of keys: source, and what was derived from it.
    edges: tuple[NodePair, ...]
    #: Keys of the requested model versions.
    seeds: frozenset[str]
    #: There are more generations or versions than were requested.
    more: bool


def lineage_of_versions(
    versions: Collection[int], *, user: accounts.RequestUser, depth: int = DEFAULT_DEPTH
) -> Lineage:
    """Ancestors and descendants of the versions (by primary key)."""
    seeds = "SELECT unnest(%s::bigint[])"
    keys, more = _related_version_keys(seeds, [list(versions)], user=user, depth=depth)
    return _build_lineage(keys, user=user, more=more, seeds=versions)


def lineage_of_dataset(
    dataset: DatasetVersion, *, user: accounts.RequestUser, depth: int = DEFAULT_DEPTH
) -> Lineage:
    """Jobs that read the dataset version, and the models derived from it."""
    seeds = "SELECT id FROM registry_modelversion WHERE dataset_version_id = %s"
    keys, more = _related_version_keys(seeds, [dataset.pk], user=user, depth=depth, upwards=False)
    return _build_lineage(keys, user=user, more=more, readers_of=dataset)


_VISIBLE = "(l.team_id IS NULL OR l.team_id IN ({teams}))"
_GENERATIONS = """
WITH RECURSIVE
seeds(id) AS ({seeds}),
up(id, base_id, far) AS (
  SELECT v.id, v.base_id, 0 FROM registry_modelversion v
  JOIN registry_modelline l ON l.id = v.line_id
  WHERE v.id IN (SELECT id FROM seeds) AND {visible}
  UNION
  SELECT v.id, v.base_id, up.far + 1 FROM up
  JOIN registry_modelversion v ON v.id = up.base_id
  JOIN registry_modelline l ON l.id = v.line_id
  WHERE up.far < %s AND {visible}
),
down(id, far) AS (
  SELECT id, 0 FROM up WHERE far = 0
  UNION
  SELECT v.id, down.far + 1 FROM down
  JOIN registry_modelversion v ON v.base_id = down.id
  JOIN registry_modelline l ON l.id = v.line_id
  WHERE down.far < %s AND {visible}
)
SELECT id, min(far) AS nearest FROM (SELECT id, far FROM up UNION SELECT id, far FROM down) every
GROUP BY id ORDER BY nearest, id DESC LIMIT %s
"""


def _related_version_keys(
    seeds: str,
    parameters: list[Any],
    *,
    user: accounts.RequestUser,
    depth: int,
    upwards: bool = True,
) -> tuple[list[int], bool]:
    """Primary keys of the versions within that many generations, and whether there are more."""
    teams, own = accounts.teams_visible(user).order_by().values("pk").query.sql_with_params()
    # One more generation than requested shows whether there are more.
    beyond = depth + 1
    query = _GENERATIONS.format(seeds=seeds, visible=_VISIBLE.format(teams=teams))
    rows = fetch_rows(
        query,
        [*parameters, *own, beyond if upwards else 1, *own, beyond, *own, MAX_VERSIONS + 1],
    )
    near = [key for key, far in rows if far <= depth]
    return near[:MAX_VERSIONS], len(near) < len(rows) or len(near) > MAX_VERSIONS


def _build_lineage(
    keys: list[int],
    *,
    user: accounts.RequestUser,
    more: bool,
    seeds: Collection[int] = (),
    readers_of: DatasetVersion | None = None,
) -> Lineage:
    teams = accounts.teams_visible(user)
    versions = list(
        ModelVersion.objects.filter(pk__in=keys)
        .select_related("line", "dataset_version__dataset")
        .annotate(
            dataset_visible=Exists(
                teams.filter(pk=OuterRef("dataset_version__dataset__team")).order_by()
            )
        )
        .order_by("id")
    )
    runs = _lineage_jobs(versions, user=user, readers_of=readers_of)
    builder = _LineageBuilder(versions, runs)
    if readers_of is not None:
        builder.dataset(readers_of)
    for version in versions:
        builder.version(version)
    for run in runs:
        builder.job(run)
    traffic = RouteBackend.objects.filter(
        route__deployment=F("backend__revision__deployment"),
        backend__revision__model_version__in=keys,
        route__deployment__deleted_at=None,
        route__deployment__team__in=teams,
    ).select_related("route__deployment", "backend__revision")
    for row in traffic.order_by("route__name"):
        builder.deployment(row.route.deployment, row.backend.revision.model_version_id)
    return builder.lineage(seeds=seeds, more=more)


def _lineage_jobs(
    versions: Iterable[ModelVersion],
    *,
    user: accounts.RequestUser,
    readers_of: DatasetVersion | None,
) -> Sequence[Job]:
    wanted = Q(uid__in=[version.job_uid for version in versions if version.job_uid])
    if readers_of is None:
        return list(jobs.jobs_visible(user).filter(wanted).order_by("id"))
    readers = jobs.jobs_visible(user).filter(dataset_version=readers_of).order_by("-id")
    wanted |= Q(pk__in=readers.values("pk")[:MAX_READERS])
    return list(jobs.jobs_visible(user).filter(wanted).order_by("id"))


class _LineageBuilder:
    """Collects nodes and edges without duplicates."""

    def __init__(self, versions: Iterable[ModelVersion], runs: Iterable[Job]) -> None:
        self._nodes: dict[str, LineageNode] = {}
        self._edges: dict[NodePair, None] = {}
        self._models = {version.pk: _model_node(version) for version in versions}
        self._jobs = {run.uid: _job_node(run) for run in runs}

    def version(self, version: ModelVersion) -> None:
        """Add the version, the job that created it if it is visible, and its inputs."""
        node = self._add_node(self._models[version.pk])
        producer = self._jobs.get(version.job_uid)
        if producer is not None:
            self._edges[self._add_node(producer).key, node.key] = None
        onto = producer or node
        if version.base_id in self._models:
            self._edges[self._models[version.base_id].key, onto.key] = None
        data = version.dataset_version
        if data is not None and version.dataset_visible:  # type: ignore[attr-defined] # an annotation
            self._edges[self.dataset(data).key, onto.key] = None

    def job(self, run: Job) -> None:
        """Add a job that read a dataset or a model."""
        node = self._add_node(self._jobs[run.uid])
        if run.dataset_version is not None:
            data = _dataset_node(run.dataset_version)
            if data.key in self._nodes:
                self._edges[data.key, node.key] = None
        if run.model_version_id in self._models:
            self._edges[self._models[run.model_version_id].key, node.key] = None

    def dataset(self, version: DatasetVersion) -> LineageNode:
        return self._add_node(_dataset_node(version))

    def deployment(self, deployment: Deployment, version: int) -> None:
        node = self._add_node(
            LineageNode(
                kind=LineageNodeKind.DEPLOYMENT,
                uid=deployment.uid,
                name=deployment.name,
                detail="",
                state=deployment.state,
            )
        )
        self._edges[self._models[version].key, node.key] = None

    def lineage(self, *, seeds: Collection[int], more: bool) -> Lineage:
        return Lineage(
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges),
            seeds=frozenset(self._models[key].key for key in seeds if key in self._models),
            more=more,
        )

    def _add_node(self, node: LineageNode) -> LineageNode:
        return self._nodes.setdefault(node.key, node)


def _model_node(version: ModelVersion) -> LineageNode:
    return LineageNode(
        kind=LineageNodeKind.MODEL,
        uid=version.uid,
        name=str(version),
        detail=version.architecture,
        state=version.state,
    )


def _job_node(run: Job) -> LineageNode:
    return LineageNode(
        kind=LineageNodeKind.JOB, uid=run.uid, name=run.name, detail=run.kind, state=run.state
    )


def _dataset_node(version: DatasetVersion) -> LineageNode:
    return LineageNode(
        kind=LineageNodeKind.DATASET,
        uid=version.uid,
        name=str(version),
        detail=f"{version.row_count:,}",
        state="",
    )
