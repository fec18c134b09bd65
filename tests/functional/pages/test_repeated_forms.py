"""Forms that are sent twice, and pages whose session has ended meanwhile."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.accounts.models import IdempotencyRecord, Team, User
from apps.jobs.models import Job
from apps.models.models import Artifact, ArtifactKind, StorageQuota
from apps.serving.models import Deployment
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

SCRIPT = "/jobs/new/script"


def token(client: Client, address: str) -> str:
    found = re.search(r'name="once" value="(\w+)"', client.get(address).text)
    assert found is not None
    return found.group(1)


def zipped(files: dict[str, bytes]) -> bytes:
    """An archive that is the same for the same files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name), content)
    return archive.getvalue()


def archive(content: bytes = b"print(1)") -> SimpleUploadedFile:
    return SimpleUploadedFile("code.zip", zipped({"run.py": content}))


@pytest.fixture
def script(browser: Client, empty: EmptyCompany) -> dict[str, str]:
    """A form as the page gave it, filled in."""
    return {
        "team": empty.team.uid,
        "argv": "python\n-V",
        "chip": "cpu",
        "cards": "1",
        "once": token(browser, SCRIPT),
    }


def test_a_form_that_is_sent_twice_makes_one_job_and_shows_it(
    browser: Client, script: dict[str, str]
) -> None:
    first = browser.post(SCRIPT, script)
    second = browser.post(SCRIPT, script, follow=True)
    assert Job.objects.count() == 1
    assert second.redirect_chain[0][0] == first["Location"]
    assert "already submitted" in second.text


def test_a_form_that_was_changed_after_going_back_is_another_job(
    browser: Client, script: dict[str, str]
) -> None:
    browser.post(SCRIPT, script)
    browser.post(SCRIPT, {**script, "argv": "python\n-VV"})
    assert Job.objects.count() == 2


def test_a_form_with_another_file_of_the_same_name_and_size_is_another_job(
    browser: Client, script: dict[str, str]
) -> None:
    for content, jobs in ((b"print(1)", 1), (b"print(1)", 1), (b"print(2)", 2)):
        packed = archive(content)
        assert browser.post(SCRIPT, {**script, "code": packed}).status_code == 302
        assert Job.objects.count() == jobs


def codes(team: Team) -> int:
    return Artifact.objects.filter(team=team, kind=ArtifactKind.CODE).count()


def test_the_archive_of_a_form_that_is_sent_twice_is_kept_once(
    browser: Client, script: dict[str, str], empty: EmptyCompany
) -> None:
    first, second = (browser.post(SCRIPT, {**script, "code": archive()}) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert codes(empty.team) == 1


def test_a_form_that_is_sent_twice_needs_room_for_its_archive_once(
    browser: Client, script: dict[str, str], empty: EmptyCompany
) -> None:
    StorageQuota.objects.create(team=empty.team, limit=(archive().size or 0) + 1)
    for _ in range(2):
        assert browser.post(SCRIPT, {**script, "code": archive()}).status_code == 302
    refused = browser.post(SCRIPT, {**script, "code": archive(), "once": token(browser, SCRIPT)})
    assert refused.status_code == 422
    assert "ask an administrator of the company for a larger quota" in refused.text
    assert Job.objects.count() == codes(empty.team) == 1


def test_a_job_that_is_refused_leaves_no_archive(
    browser: Client, script: dict[str, str], empty: EmptyCompany
) -> None:
    assert browser.post(SCRIPT, {**script, "cards": "5000", "code": archive()}).status_code == 422
    assert codes(empty.team) == 0


def test_each_look_at_the_form_is_a_job_of_its_own(browser: Client, script: dict[str, str]) -> None:
    browser.post(SCRIPT, script)
    browser.post(SCRIPT, {**script, "once": token(browser, SCRIPT)})
    assert Job.objects.count() == 2


def test_a_form_that_was_refused_may_be_sent_again(browser: Client, script: dict[str, str]) -> None:
    assert browser.post(SCRIPT, {**script, "cards": "5000"}).status_code == 422
    browser.post(SCRIPT, script)
    assert Job.objects.count() == 1


def test_the_same_token_of_somebody_else_is_another_form(
    browser: Client, script: dict[str, str], empty: EmptyCompany
) -> None:
    other = Client()
    other.force_login(factories.user("bob", team=empty.team))
    browser.post(SCRIPT, script)
    other.post(SCRIPT, script)
    assert Job.objects.count() == 2


@pytest.mark.parametrize("forged", ["", "a" * 65, "é", "a b"])
def test_a_token_that_no_page_gave_does_no_harm(
    browser: Client, script: dict[str, str], forged: str
) -> None:
    for _ in range(2):
        assert browser.post(SCRIPT, {**script, "once": forged}).status_code == 302
    assert Job.objects.count() == 2


def test_deploy_pressed_twice_makes_one_deployment(browser: Client, filled: FilledCompany) -> None:
    before = Deployment.objects.count()
    once = token(browser, reverse("model-version", args=[filled.tuned.uid]))
    quick = reverse("deployment-quick", args=[filled.tuned.uid])
    first, second = (browser.post(quick, {"once": once}) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert Deployment.objects.count() == before + 1


def live(client: Client, address: str, **headers: Any) -> Any:
    """As htmx asks for a part of that page."""
    htmx_headers = {
        "HX-Request": "true",
        "HX-Current-URL": f"http://testserver{address}",
        **headers,
    }
    return client.get(address, headers=htmx_headers)


def test_a_live_part_takes_its_page_to_the_log_in_and_back(client: Client, db: None) -> None:
    response = live(client, "/jobs?state=running")
    assert response["HX-Redirect"] == "/login?next=%2Fjobs%3Fstate%3Drunning"
    assert not response.content


def test_the_way_back_never_leads_to_another_site(client: Client, db: None) -> None:
    response = live(client, "/jobs", **{"HX-Current-URL": "https://elsewhere.example/jobs"})
    assert response["HX-Redirect"] == "/login?next=%2Fjobs"


def test_a_job_that_is_being_submitted_is_not_submitted_again(
    browser: Client, script: dict[str, str]
) -> None:
    browser.post(SCRIPT, script)
    IdempotencyRecord.objects.update(status=None, body=None)
    second = browser.post(SCRIPT, script)
    assert second.status_code == 422
    assert "The job is already being submitted. See the job list." in second.text
    assert Job.objects.count() == 1


def test_a_form_in_progress_stays_and_says_so(client: Client, db: None) -> None:
    response = client.post("/jobs/new/script/check", headers={"HX-Request": "true"})
    assert response.status_code == 401
    assert "in another tab" in response["HX-Trigger"]


def test_a_script_that_is_logged_out_hears_it_in_words(
    client: Client, filled: FilledCompany
) -> None:
    address = reverse("playground-chat", args=[filled.ready.uid])
    response = client.post(address, headers={"Sec-Fetch-Mode": "cors"})
    assert response.status_code == 401
    assert "Sign in again" in response.json()["error"]["message"]


def test_a_page_that_somebody_opens_leads_to_the_log_in_as_ever(client: Client, db: None) -> None:
    response = client.get("/jobs", headers={"Sec-Fetch-Mode": "navigate"})
    assert response.status_code == 302
    assert response["Location"] == "/login?next=/jobs"


def test_what_came_last_is_chosen_already(browser: Client, filled: FilledCompany) -> None:
    form = browser.get("/jobs/new/finetune").context["form"]
    assert form["model_version"].value() == filled.tuned.uid
    assert form["dataset_version"].value() == filled.dataset.uid
    assert form["output_name"].value() == f"{filled.dataset.dataset.name}-model"


def test_what_the_address_names_comes_before_what_came_last(
    browser: Client, filled: FilledCompany
) -> None:
    form = browser.get(f"/jobs/new/finetune?model={filled.base.uid}").context["form"]
    assert form["model_version"].value() == filled.base.uid


def test_nothing_of_another_team_is_chosen(outsider: Client, filled: FilledCompany) -> None:
    assert User.objects.filter(username="bob").exists()
    form = outsider.get("/jobs/new/finetune").context["form"]
    assert form["model_version"].value() is None
    assert not form["output_name"].value()
