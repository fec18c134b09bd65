"""URLs of the admin, and its responses."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

#: Registered by what we build on; ours are all others.
FOREIGN = {"auth", "contenttypes", "sessions", "admin"}
MODELS = sorted(
    (model for model in admin.site._registry if model._meta.app_label not in FOREIGN),
    key=lambda model: model._meta.label,
)


def page(model: type[Model], name: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def run_action(browser: Client, model: type[Model], action: str, *rows: Model) -> list[str]:
    """Run an action on those rows; return the messages."""
    response = browser.post(
        page(model), {"action": action, "_selected_action": [row.pk for row in rows]}
    )
    assert response.status_code == 302, response.content.decode()[:2000]
    # Looked at once, as a browser does; what has been read is not told again.
    return [str(message) for message in browser.get(response["Location"]).context["messages"]]


def errors_of(response: Any) -> dict[str, list[str]]:
    form = response.context_data["adminform"].form
    return {name: [str(error) for error in errors] for name, errors in form.errors.items()}
