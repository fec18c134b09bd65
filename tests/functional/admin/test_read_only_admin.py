"""Administrators can view every table and edit few."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps as installed
from django.test import Client
from django.urls import reverse

from apps.accounts.models import ApplySetObject, User
from apps.fleet.models import Card
from apps.jobs.models import Job
from apps.serving.models import GatewaySnapshot
from apps.telemetry.models import CardHistory, CardHour, SummedHour
from controlplane.outbox.models import ResourceChange
from tests.functional.admin.conftest import LivedIn
from tests.functional.admin.pages import MODELS, page
from tests.functional.admin.rows import some_row
from tests.integration.company import Company

pytestmark = pytest.mark.slow

EDITABLE = {
    "CardRate",
    "User",
    "Team",
    "Membership",
    "Cluster",
    "Queue",
    "Dataset",
    "ModelLine",
    "PriorityClass",
    "RetentionRule",
    "StorageQuota",
}

#: Grants and limits, not records: the audit trail keeps what they were.
DELETABLE = {"CardRate", "Membership", "PriorityClass", "RetentionRule", "StorageQuota"}


#: Figures by card and time: a card's own page draws them, and rows of a key of two columns have no page here.
DRAWN = {CardHistory, CardHour, SummedHour}
#: Rows of another page, or of a queue that is emptied every hour.
WITHOUT_PAGE = {*DRAWN, ApplySetObject, ResourceChange}


def test_every_model_has_an_admin() -> None:
    ours = {
        model
        for model in installed.get_models()
        if model._meta.app_config.name.startswith(("apps.", "controlplane."))
        and model not in WITHOUT_PAGE
    }
    assert ours == set(MODELS)


def test_every_model_name_is_translated(lived_in: LivedIn, browser: Client) -> None:
    english, chinese = (
        {
            (app["app_label"], model["object_name"]): (str(app["name"]), str(model["name"]))
            for app in browser.get(
                reverse("admin:index"), headers={"accept-language": language}
            ).context["app_list"]
            for model in app["models"]
        }
        for language in ("en", "zh-hans")
    )

    assert english["serving", "ApiKey"] == ("Serving", "API keys")
    assert chinese["serving", "ApiKey"] == ("推理服务", "API 密钥")
    assert len(chinese) >= len(MODELS)
    for key, names in chinese.items():
        # A webhook is called that in Chinese too.
        assert key == ("notifications", "Webhook") or not any(name.isascii() for name in names), key


def test_an_administrator_opens_every_list_and_row_without_secrets_and_changes_few(
    lived_in: LivedIn, browser: Client
) -> None:
    secrets = _secrets(lived_in)
    for model in MODELS:
        name = model.__name__
        row = some_row(model)
        listed = browser.get(page(model))
        assert listed.status_code == 200, name
        # A search that names a field wrongly fails only when it is used.
        assert browser.get(page(model), {"q": "parser"}).status_code == 200, name
        opened = browser.get(page(model, "change", row.pk))
        assert opened.status_code == 200, name
        assert opened.context["has_change_permission"] is (name in EDITABLE), name
        assert opened.context["has_delete_permission"] is (name in DELETABLE), name
        others = model._default_manager.exclude(pk=row.pk).order_by("-pk")[:2]
        shown = [listed, opened, *(browser.get(page(model, "change", each.pk)) for each in others)]
        text = "".join(answer.content.decode() for answer in shown)
        assert not [secret for secret in secrets if secret in text], name


def _secrets(lived_in: LivedIn) -> set[str]:
    snapshot = GatewaySnapshot.objects.latest("version")
    return {
        lived_in.key.digest,
        lived_in.token.digest,
        lived_in.key_text,
        lived_in.token_text,
        "nf-hush",
        "f" * 64,
        snapshot.digest,
        bytes(snapshot.body).decode()[:40],
    }


def test_an_administrator_can_neither_post_to_a_read_only_row_nor_delete_it(
    lived_in: LivedIn, browser: Client
) -> None:
    for model in MODELS:
        row = some_row(model)
        name = model.__name__
        if name not in EDITABLE:
            assert browser.post(page(model, "change", row.pk), {}).status_code == 403, name
        if name not in DELETABLE:
            assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
            assert model._default_manager.filter(pk=row.pk).exists()


def test_a_user_without_staff_status_sees_nothing(lived_in: LivedIn, client: Client) -> None:
    client.force_login(lived_in.company.engineer)
    for model in MODELS:
        row = some_row(model)
        for address in (page(model), page(model, "change", row.pk)):
            response = client.get(address)
            assert response.status_code == 302, address
            assert response["Location"].startswith("/admin/login/"), address
    assert client.get("/admin/login/?next=/admin/").status_code == 403


def test_staff_without_permissions_can_view_nothing_and_run_no_action(
    lived_in: LivedIn, client: Client
) -> None:
    clerk = User.objects.create(username="clerk", is_staff=True)
    client.force_login(clerk)

    assert client.get(page(Job)).status_code == 403
    response = client.post(
        page(Job), {"action": "cancel", "_selected_action": [lived_in.running.pk]}
    )
    assert response.status_code == 403
    lived_in.running.refresh_from_db()
    assert lived_in.running.cancel_requested_at is None


def test_lists_can_be_filtered_by_date(lived_in: LivedIn, browser: Client) -> None:
    tomorrow = lived_in.company.at + timedelta(days=400)
    response = browser.get(page(Job), {"created_at__year": str(tomorrow.year)})

    assert response.status_code == 200
    assert list(response.context["cl"].result_list) == []


def test_the_state_of_a_card_cannot_be_forged(company: Company, browser: Client) -> None:
    card = Card.objects.order_by("id")[0]

    response = browser.post(page(Card, "change", card.pk), {"state": "isolated"})

    assert response.status_code == 403
    card.refresh_from_db()
    assert card.state == "usable"
