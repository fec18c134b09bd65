"""What the product deletes by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from config.tasks import tidy_up

pytestmark = pytest.mark.django_db


def test_sessions_that_have_expired_are_deleted_and_others_kept() -> None:
    now = timezone.now()
    for key, left in (("ended", -timedelta(minutes=1)), ("open", timedelta(minutes=1))):
        Session.objects.create(session_key=key, session_data="", expire_date=now + left)
    tidy_up()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["open"]
