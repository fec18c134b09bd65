"""The reasons check: what it refuses, and that nothing of the product is refused."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from django.utils import translation

from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.persistence import earlier_reasons
from controlplane.ports.clusters import LaunchRefused
from controlplane.web.reasons import reason_as_response_data, render_reason
from tests import reasons

CANCELLED = Reason("transition.by_user.cancelled", "cancelled by {user}", user="ada")


def test_every_code_has_a_template_in_each_language() -> None:
    assert reasons.violations() == []


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ('Reason("job.lost", "lost on {node}", node=name)', None),
        ('Reason("job.lost", "Send [{}].")', None),
        ('Reason("Job.Lost", "lost")', "is not a code"),
        ('Reason("lost", "lost")', "is not a code"),
        ('Reason("job.lost", "lost on {node}")', "are not the parameters"),
        ('Reason("job.lost", "lost", node=name)', "are not the parameters"),
        ('Reason("job.lost", template)', "a literal code, a literal template"),
        ('Reason("job.lost", "lost on {node}", **params)', "named parameters"),
        ('Reason("job.ended", "lost")', "has another template elsewhere"),
        ('FieldRefused("job.lost", "lost on {node}", node=name, field="node")', None),
        # The keyword is the attribute of the error and fills no placeholder.
        ('FieldRefused("job.lost", "{field} is lost", field="node")', "are not the parameters"),
        ('ClusterRefused("job.lost", "{field} is lost", field="node")', "are not the parameters"),
        ('bad_request("job.lost", "lost with {code}", code="lost")', "are not the parameters"),
        ('fleet.ClusterUnavailable("job.lost", "lost on {node}")', "are not the parameters"),
        ('InvalidOption("job.lost", "{option} is lost", option="name")', None),
    ],
)
def test_a_call_that_no_catalogue_could_follow_is_refused(call: str, problem: str | None) -> None:
    found = reasons.CollectedCodes(templates={"job.ended": "ended"})
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    refused = reasons.read_call(node, found)
    assert (refused is None) if problem is None else (refused is not None and problem in refused)


def test_an_error_with_a_code_is_collected_like_a_reason() -> None:
    source = 'raise LaunchRefused("job.lost", "lost on {node}", node=name)\nPath("a", "b")'
    (call,) = reasons.calls(ast.parse(source))
    assert reasons.read_call(call, reasons.CollectedCodes()) is None
    assert str(LaunchRefused("job.lost", "lost on {node}", node="n1")) == "lost on n1"
    assert str(LaunchRefused("ENOSPC")) == "ENOSPC"


def test_a_reader_of_chinese_gets_the_translation_and_foreign_text_verbatim() -> None:
    with translation.override("zh-hans"):
        assert render_reason(CANCELLED) == "由 ada 取消"
        assert render_reason("CUDA error: out of memory") == "CUDA error: out of memory"
        assert render_reason(join_reasons([CANCELLED, "ENOSPC"])) == "由 ada 取消；ENOSPC"
    with translation.override("en"):
        assert render_reason(CANCELLED) == "cancelled by ada"


def test_rest_gives_code_parameters_and_message() -> None:
    assert reason_as_response_data(CANCELLED) == {
        "code": "transition.by_user.cancelled",
        "params": {"user": "ada"},
        "message": "cancelled by ada",
    }
    assert reason_as_response_data("ENOSPC") == {"code": "", "params": {}, "message": "ENOSPC"}


def test_every_earlier_text_has_a_present_code_and_its_parameters() -> None:
    path = Path(earlier_reasons.__file__).with_suffix(".json")
    templates = reasons.catalogue(reasons.ENGLISH)
    for text, (code, names) in json.loads(path.read_text(encoding="utf-8")).items():
        expected = reasons.placeholders(templates[code]) if names else frozenset()
        assert expected == frozenset(names), text


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ('services.end(job, reason=f"stopped by {user}")', True),
        ('event, reason = END, f"{ready} of {all} replicas are ready"', True),
        ('services.end(job, reason=Reason("job.stopped", "stopped by {user}", user=user))', False),
        # Joins foreign texts.
        ('services.fail(error=f"{type(error).__name__}: {error}")', False),
        ('log.info("stopped", extra={"by": f"the user {user}"})', False),
    ],
)
def test_a_message_without_a_code_is_found(source: str, *, plain: bool) -> None:
    assert bool(list(reasons.plain_messages(ast.parse(source)))) is plain
