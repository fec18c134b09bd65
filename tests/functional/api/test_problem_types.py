"""The page that ``type`` of each problem leads to."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.test import Client
from rest_framework import exceptions
from rest_framework.test import APIClient

from controlplane.web.problem_details import PROBLEM_TYPES
from tests.integration.company import Company

BASE = Path(settings.BASE_DIR)
#: What Django REST framework raises by itself.
OF_FRAMEWORK = {
    error.default_code.replace("_", "-")
    for error in (
        exceptions.AuthenticationFailed,
        exceptions.MethodNotAllowed,
        exceptions.NotAcceptable,
        exceptions.NotAuthenticated,
        exceptions.NotFound,
        exceptions.ParseError,
        exceptions.PermissionDenied,
        exceptions.Throttled,
        exceptions.UnsupportedMediaType,
        exceptions.ValidationError,
    )
}


def test_every_code_that_is_answered_is_explained_and_no_other() -> None:
    sources = [
        *BASE.glob("apps/*/api/**/*.py"),
        *BASE.glob("apps/*/api.py"),
        BASE / "platform/controlplane/web/problem_details.py",
    ]
    answered = {
        code
        for source in sources
        for code in re.findall(
            r'"([a-z]+(?:-[a-z]+)*)"(?= if large)|code="([a-z-]+)"', source.read_text()
        )
        for code in code
        if code
    } | {"bad-request"}
    assert answered | OF_FRAMEWORK == set(PROBLEM_TYPES)
    assert list(PROBLEM_TYPES) == sorted(PROBLEM_TYPES)


def test_the_type_of_a_problem_leads_to_its_explanation(
    engineer: APIClient, company: Company, client: Client
) -> None:
    problem = engineer.get("/api/v1/jobs/" + "0" * 32).json()
    page, _, code = problem["type"].partition("#")
    assert client.get(page).headers["Location"].startswith("/login")
    client.force_login(company.engineer)
    assert f'<tr id="{code}">' in client.get(page).text
