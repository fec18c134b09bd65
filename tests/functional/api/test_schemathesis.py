"""Whatever the schema allows, and some of what it does not: no fault of ours, and answers as described.

Schemathesis makes the requests from the published schema. An administrator sends them to a company with
something of everything; uids of real things are put in for half of them, so that more than "not found"
is answered.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
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
from apps.accounts.models import Team
from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Job
from apps.models.models import (
    CatalogModel,
    Dataset,
    DatasetVersion,
    Evaluation,
    ModelLine,
    ModelVersion,
)
from apps.models.selectors.catalog import published_catalog as catalog_published
from apps.models.services.catalog import catalog_load
from apps.monitoring.models import Fault, HealthRule, Isolation
from apps.quotas.models import Claim, PriorityClass, Queue, QueueChange, WhatIf
from apps.serving.models import ApiKey, Deployment
from apps.telemetry.models import NodeToken, Source
from apps.telemetry.services.metric_sources import agent_push_source
from apps.telemetry.services.node_tokens import node_token_issue
from apps.workflows.models import Pipeline
from config.wsgi import application
from controlplane.domain.common.permissions import Scope
from tests import factories
from tests.functional.sample_rows import EmptyCompany, fill

EXAMPLES = 6
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Collections whose rows go by a name that is no uid, and the parameter that takes it.
NAMED: dict[str, tuple[type[models.Model], str]] = {"catalog": (CatalogModel, "key")}
#: Where the uids of a collection are found.
REAL: dict[str, type[models.Model]] = {
    "jobs": Job,
    "pipelines": Pipeline,
    "deployments": Deployment,
    "keys": ApiKey,
    "model-versions": ModelVersion,
    "models": ModelLine,
    "datasets": Dataset,
    "dataset-versions": DatasetVersion,
    "evaluations": Evaluation,
    "claims": Claim,
    "queues": Queue,
    "queue-changes": QueueChange,
    "what-ifs": WhatIf,
    "priority-classes": PriorityClass,
    "clusters": Cluster,
    "nodes": Node,
    "cards": Card,
    "faults": Fault,
    "isolations": Isolation,
    "health-rules": HealthRule,
    "teams": Team,
    "telemetry-sources": Source,
    "node-tokens": NodeToken,
}


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
        catalog_load(catalog=catalog_published(), at=timezone.now())
        team = factories.team()
        queue = factories.queue()
        fill(EmptyCompany(team=team, user=factories.user(team=team), queue=queue))
        root = factories.user("root", admin=True)
        factories.queue_change(queue, actor=root)
        # The document says of a local cluster that it has a folder.
        Cluster.objects.filter(kind="local").update(options={"home": str(home)})
        node = Node.objects.latest("id")
        agent_push_source(node.cluster)
        node_token_issue(node=node, actor=root)
        WhatIf.objects.create(user=root, queue=queue, changes=[])
        factories.ailing_card(actor=root, at=timezone.now())
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


def _name_something_real(case: schemathesis.Case[Any]) -> None:
    """Put the uid of a row there in half of the cases, chosen by what was made up."""
    collection = case.path.removeprefix("/api/v1/").partition("/")[0]
    kind, name = NAMED.get(collection) or (REAL.get(collection), "uid")
    given = (case.path_parameters or {}).get(name)
    if kind is None or not isinstance(given, str) or not given:
        return
    names = list(kind._default_manager.order_by("pk").values_list(name, flat=True))
    place = zlib.crc32(given.encode()) % (2 * len(names))
    if place < len(names):
        case.path_parameters[name] = names[place]
