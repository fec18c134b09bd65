"""Whatever the schema allows, and some of what it does not: no fault of ours, and answers as described.

Schemathesis makes the requests from the published schema. An administrator sends them to a company with
something of everything; uids of real things are put in for half of them, so that more than "not found"
is answered.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any
from unittest.mock import patch
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, models, transaction
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from pytest_django import DjangoDbBlocker
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from apps.accounts import services as accounts
from apps.accounts.models import ApplySet, PersonalToken, Team, User
from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Attempt, Job
from apps.models.models import (
    Artifact,
    CatalogModel,
    Dataset,
    DatasetVersion,
    Evaluation,
    ModelLine,
    ModelVersion,
    StorageRun,
    StorageRunKind,
)
from apps.monitoring.models import (
    AlertGroup,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
    Fault,
    HealthRule,
    Isolation,
    Rollout,
)
from apps.notifications.models import Notification, Webhook, WebhookDelivery
from apps.quotas.models import Claim, Defragmentation, PriorityClass, Queue, QueueChange, WhatIf
from apps.serving.models import ApiKey, Deployment, Replica, Route, WeightDownload
from apps.telemetry.models import NodeToken, Source
from apps.workflows.models import Pipeline
from config.wsgi import application
from controlplane.domain.common.permissions import Scope
from controlplane.persistence.models import new_uid
from tests.functional.roles import team_data

EXAMPLES = 6
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Where the values of a path parameter are found, by the beginning of the path and the parameter. Those of objects
#: that only their owner may see are the administrator's.
REAL: dict[tuple[str, str], Callable[[], models.QuerySet[Any]]] = {
    (beginning, "uid"): model._default_manager.all
    for beginning, model in {
        "alert-receivers": AlertReceiver,
        "alert-routes": AlertRoute,
        "alert-rules": AlertRule,
        "alert-silences": AlertSilence,
        "alerts": AlertGroup,
        "apply-sets": ApplySet,
        "artifacts": Artifact,
        "attempts": Attempt,
        "cards": Card,
        "claims": Claim,
        "clusters": Cluster,
        "company-roles": User,
        "dataset-versions": DatasetVersion,
        "datasets": Dataset,
        "defragmentation-plans": Defragmentation,
        "deliveries": WebhookDelivery,
        "deployments": Deployment,
        "evaluations": Evaluation,
        "faults": Fault,
        "health-rules": HealthRule,
        "isolations": Isolation,
        "jobs": Job,
        "keys": ApiKey,
        "model-versions": ModelVersion,
        "models": ModelLine,
        "node-tokens": NodeToken,
        "nodes": Node,
        "pipelines": Pipeline,
        "priority-classes": PriorityClass,
        "queue-changes": QueueChange,
        "queues": Queue,
        "replicas": Replica,
        "rollouts": Rollout,
        "routes": Route,
        "storage/artifacts": Artifact,
        "storage/runs": StorageRun,
        "teams": Team,
        "telemetry-sources": Source,
        "users": User,
        "webhooks": Webhook,
        "weight-downloads": WeightDownload,
    }.items()
} | {
    ("catalog", "key"): CatalogModel.objects.all,
    ("notifications", "uid"): lambda: Notification.objects.filter(recipient__username="root"),
    ("storage/quotas", "team"): Team.objects.all,
    ("storage/rules", "team"): Team.objects.all,
    ("teams", "user_uid"): User.objects.all,
    ("tokens", "uid"): lambda: PersonalToken.objects.filter(user__username="root"),
    ("what-ifs", "uid"): WhatIf.objects.all,
}
#: Parameters without rows, and why.
WITHOUT_ROWS = {
    "/api/v1/chips/{name}": "of the installed plug-ins",
    "/api/v1/usage/rates/{chip}": "any name of a chip has a rate",
}
#: Other parameters beside one of a row.
BESIDE = {"path"}


@pytest.fixture(scope="module")
def one_connection() -> Iterator[None]:
    """Between requests a server lets go of old connections; here that would end the transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(scope="module")
def authorization(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    one_connection: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Of an administrator of a company that has been at work; made once, for it takes a while."""
    home = tmp_path_factory.mktemp("home")
    with (
        django_db_blocker.unblock(),
        override_settings(NINEFOLD_HOME=home, NINEFOLD_MODEL_ROOTS=[str(home / "models")]),
        # Who follows the log of a job that never ends is let go at once.
        patch("apps.jobs.api.views.FOLLOW_WITHIN", timedelta()),
        patch("controlplane.web.watch.WATCH_WITHIN", timedelta(seconds=-1)),
        transaction.atomic(),
    ):
        company = team_data.shared()
        root, own = company.root, team_data.side("maps", company)
        team_data.company_names()
        # The document says of a local cluster that it has a folder.
        Cluster.objects.filter(kind="local").update(options={"home": str(home)})
        StorageRun.objects.create(kind=StorageRunKind.GARBAGE, started_at=timezone.now())
        notification = Notification.objects.get(uid=own.names["notification"])
        notification.pk, notification.uid, notification.recipient = None, new_uid(), root
        notification.save()
        _, token = accounts.token_create(
            user=root,
            name="schemathesis",
            scopes=frozenset({Scope.ALL}),
        )
        yield f"Bearer {token}"
        transaction.set_rollback(True)


def served(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The product as a server runs it: an answer is read to its end and closed."""
    body = application(environ, start_response)
    try:
        return [b"".join(body)]
    finally:
        body.close()


def published() -> schemathesis.BaseSchema:
    """The schema as ``manage.py spectacular`` writes it."""
    written = StringIO()
    call_command("spectacular", format="openapi-json", stdout=written)
    found = schemathesis.openapi.from_dict(json.loads(written.getvalue()))
    found.app = served
    return found


# Not by schema.parametrize(): its items all have one name, of which pytest-xdist runs a single one.
@pytest.mark.slow
@pytest.mark.django_db
def test_a_response_is_what_the_schema_says_and_no_server_error(authorization: str) -> None:
    failures: list[Exception] = []
    results = list(published().get_all_operations())
    operations = [result.ok() for result in results if isinstance(result, Ok)]
    for operation in operations:
        try:
            _call_with_examples(operation, authorization)
        except Exception as failure:  # noqa: BLE001 - raised below
            failure.add_note(operation.label)
            failures.append(failure)
    assert len(results) == len(operations) > 200
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(operations)} operations failed", failures)


def _call_with_examples(
    operation: schemathesis.APIOperation[Any, Any, Any, Any], authorization: str
) -> None:
    valid, invalid = (operation.as_strategy(mode) for mode in schemathesis.GenerationMode)

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=valid | invalid)
    def call(case: schemathesis.Case[Any]) -> None:
        _name_something_real(case)
        with transaction.atomic():
            answer = case.call(headers={"Authorization": authorization})
            # What one request deletes is there for the next.
            transaction.set_rollback(True)
        case.validate_response(answer, checks=CHECKS)

    call()


def _rows_of(path: str, parameter: str) -> Callable[[], models.QuerySet[Any]] | None:
    collection = path.removeprefix("/api/v1/").partition("/{")[0]
    return REAL.get((collection, parameter))


def _name_something_real(case: schemathesis.Case[Any]) -> None:
    """Put the uids of rows there in half of the cases, chosen by what was made up."""
    for parameter, generated in (case.path_parameters or {}).items():
        rows = _rows_of(case.path, parameter)
        if rows is None or not isinstance(generated, str) or not generated:
            continue
        column = parameter if parameter == "key" else "uid"
        names = list(rows().order_by("pk").values_list(column, flat=True))
        place = zlib.crc32(generated.encode()) % (2 * len(names))
        if place < len(names):
            case.path_parameters[parameter] = names[place]


@pytest.mark.slow
@pytest.mark.django_db
def test_every_object_of_a_path_is_a_real_one_in_some_cases(authorization: str) -> None:
    """An operation on objects that never exist would be answered by 404 only."""
    paths = {
        result.ok().path for result in published().get_all_operations() if isinstance(result, Ok)
    }
    lacking = {
        f"{path} {parameter}"
        for path in paths - WITHOUT_ROWS.keys()
        for parameter in set(re.findall(r"{(\w+)}", path)) - BESIDE
        if (rows := _rows_of(path, parameter)) is None or not rows().exists()
    }
    assert lacking == set()
