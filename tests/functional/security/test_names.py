"""Names that deceive: control, bidirectional and invisible characters."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.test import Client, RequestFactory
from rest_framework import serializers

import apps
from apps.accounts.models import PersonalToken, Team
from controlplane.domain.common.name_validation import is_name_field
from controlplane.web.forms import StyledForm, validate_name
from controlplane.web.rest import StrictSerializer
from tests import factories
from tests.api_document import api_document

HIDDEN = "pay\u202eroll"
_OURS = ("apps.", "controlplane.", "config.")
C = TypeVar("C")


def subclasses(base: type[C]) -> Iterator[type[C]]:
    for each in base.__subclasses__():
        if each.__module__.startswith(_OURS):
            yield each
        yield from subclasses(each)


@pytest.fixture(scope="module")
def everything_imported() -> None:
    for module in pkgutil.walk_packages(apps.__path__, "apps."):
        if ".migrations" not in module.name and ".management." not in module.name:
            importlib.import_module(module.name)


def test_every_form_field_of_a_name_is_validated(everything_imported: None) -> None:
    checked, forgotten = 0, []
    for form in set(subclasses(forms.BaseForm)):
        for name, field in getattr(form, "base_fields", {}).items():
            if not isinstance(field, forms.CharField) or not is_name_field(name):
                continue
            if isinstance(field, forms.ChoiceField | forms.SlugField):
                continue
            checked += 1
            if not issubclass(form, StyledForm) or form._post_clean is not StyledForm._post_clean:
                forgotten.append(f"{form.__module__}.{form.__qualname__}.{name}")
    assert not forgotten
    assert checked > 10


def request_serializers() -> set[type[serializers.BaseSerializer[Any]]]:
    """The serializers of the bodies of all operations of the schema, by their components."""
    schema = api_document()
    bodies = {
        content["schema"].get("$ref", "").rpartition("/")[2].removesuffix("Request")
        for path in schema["paths"].values()
        for operation in path.values()
        for content in operation.get("requestBody", {}).get("content", {}).values()
    }
    bodies = {body.removeprefix("Patched") for body in bodies}
    return {
        each
        for each in subclasses(serializers.BaseSerializer)
        if each.__name__.removesuffix("Serializer") in bodies
    }


def test_every_request_field_of_a_name_is_validated(everything_imported: None) -> None:
    checked, forgotten = 0, []
    for serializer in request_serializers():
        for name, field in getattr(serializer, "_declared_fields", {}).items():
            if not isinstance(field, serializers.CharField) or not is_name_field(name):
                continue
            checked += 1
            validated = issubclass(serializer, StrictSerializer) and validate_name in (
                serializer().fields[name].validators
            )
            if not validated and not isinstance(field, serializers.SlugField):
                forgotten.append(f"{serializer.__module__}.{serializer.__qualname__}.{name}")
    assert not forgotten
    assert checked > 15


@pytest.mark.django_db
def test_every_admin_field_of_a_name_is_validated(everything_imported: None) -> None:
    request = RequestFactory().get("/admin/")
    request.user = factories.user("root", admin=True)
    checked, forgotten = 0, []
    for model, page in admin.site._registry.items():
        if not model.__module__.startswith(_OURS):
            continue
        for field in model._meta.get_fields():
            if not isinstance(field, models.CharField) or not is_name_field(field.name):
                continue
            form_field = page.formfield_for_dbfield(field, request)
            if isinstance(form_field, forms.SlugField | forms.ChoiceField) or form_field is None:
                continue
            checked += 1
            if validate_name not in form_field.validators:
                forgotten.append(f"{model.__name__}.{field.name}")
    assert not forgotten
    assert checked > 5


@pytest.mark.django_db
def test_pages_rest_and_the_admin_refuse_such_a_name() -> None:
    root = factories.user("root", admin=True)
    client = Client()
    client.force_login(root)
    page = client.post("/profile", {"name": HIDDEN, "scopes": ["read"], "expires": "30"})
    assert "U+202E is not allowed in a name" in page.text
    answer = client.post(
        "/api/v1/tokens", {"name": HIDDEN, "scopes": ["read"]}, content_type="application/json"
    )
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["field"] == "name"
    assert "U+202E" in answer.json()["errors"][0]["message"]
    team = factories.team("maps")
    form = {
        "name": HIDDEN,
        "slug": team.slug,
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }
    assert "U+202E" in client.post(f"/admin/accounts/team/{team.pk}/change/", form).text
    assert not PersonalToken.objects.exists()
    assert Team.objects.get(pk=team.pk).name == team.name


@pytest.mark.django_db
def test_a_name_is_stored_composed() -> None:
    client = Client()
    client.force_login(factories.user("mei"))
    client.post("/profile", {"name": "Cafe\u0301", "scopes": ["read"], "expires": "30"})
    named = {"name": "Nai\u0308ve", "scopes": ["read"]}
    client.post("/api/v1/tokens", named, content_type="application/json")
    stored = set(PersonalToken.objects.values_list("name", flat=True))
    assert stored == {"Caf\u00e9", "Na\u00efve"}


def test_the_message_names_the_character() -> None:
    with pytest.raises(ValidationError, match=r"U\+200B is not allowed"):
        validate_name("a\u200bb")
