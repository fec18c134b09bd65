"""What every product has after its first start, and after each later one."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from pytest_django import Settings

from apps.accounts.models import Team, User
from apps.fleet.models import Card, Cluster
from apps.jobs.models import Job
from apps.models.models import ModelLine
from apps.quotas.models import Queue
from config.management.commands import bootstrap

pytestmark = pytest.mark.django_db

SAMPLES = {f"build {name}" for name in bootstrap.SAMPLE_MODELS}


@pytest.fixture(autouse=True)
def home(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.NINEFOLD_HOME = tmp_path / "home"
    settings.NINEFOLD_LOCAL_CARDS = 3
    monkeypatch.setenv("NINEFOLD_ADMIN_PASSWORD", "chosen-by-the-operator")
    return tmp_path


def run() -> None:
    call_command("bootstrap", verbosity=0)


def test_a_first_start_leaves_an_administrator_a_queue_cards_and_jobs_for_the_samples() -> None:
    run()
    admin = User.objects.get(username="admin")
    assert admin.check_password("chosen-by-the-operator")
    assert (admin.is_superuser, Team.objects.get().slug) == (True, "default")
    assert Queue.objects.get().name == "default"
    assert Card.objects.filter(chip="cpu").count() == 3
    assert set(Job.objects.values_list("name", flat=True)) == SAMPLES


def test_a_later_start_changes_nothing() -> None:
    run()
    admin = User.objects.get(username="admin")
    admin.set_password("changed since")
    admin.save()
    run()
    admin.refresh_from_db()
    assert admin.check_password("changed since")
    assert Job.objects.count() == len(SAMPLES)


def test_a_start_that_broke_off_is_made_up_for_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(**_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "job_submit", dies)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert not ModelLine.objects.exists()
    run()
    assert set(Job.objects.values_list("name", flat=True)) == SAMPLES


def test_where_this_machine_takes_no_work_there_is_no_cluster_and_the_samples_wait(
    settings: Settings,
) -> None:
    settings.NINEFOLD_LOCAL_CLUSTER = False
    run()
    assert not Cluster.objects.exists()
    assert set(Job.objects.values_list("name", flat=True)) == SAMPLES


def test_without_a_password_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NINEFOLD_ADMIN_PASSWORD")
    with pytest.raises(ImproperlyConfigured, match="set NINEFOLD_ADMIN_PASSWORD"):
        run()
    assert not User.objects.exists()
