"""Reasons that services wrote in English, read in another language."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest
from django.utils import translation

from controlplane.domain.outbound.egress import EgressPolicy, EgressRefused
from controlplane.domain.quotas.documents import PLAIN_FIELDS
from controlplane.domain.quotas.queues import QUOTA_FIELDS
from controlplane.web.message_translation import MessageCatalog, translate_message
from tests import translatable_messages

CHINESE = MessageCatalog(
    {
        "starting": "正在启动",
        "stopping: {0}": "正在停止：{0}",
        "cancelled by {0}": "由 {0} 取消",
        "needs {0} × {1}; queue {2} holds {3}": "队列 {2} 已占用 {3}，还需要 {0} × {1}",
        "{0} is not a folder": "{0} 不是文件夹",
        "{0} must not be {0}": "{0} 不能是 {0}",
    }
)


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("starting", "正在启动"),
        (
            "needs 8 × ascend-910b3; queue maps holds 12",
            "队列 maps 已占用 12，还需要 8 × ascend-910b3",
        ),
        ("stopping: cancelled by ada", "正在停止：由 ada 取消"),
        ("cancelled by starting", "由 starting 取消"),
        ("a (b) is not a folder", "a (b) 不是文件夹"),
        ("x must not be x", "x 不能是 x"),
        ("x must not be y", "x must not be y"),
        ("CUDA error: out of memory", "CUDA error: out of memory"),
        ("stopping: line 1\nline 2", "正在停止：line 1\nline 2"),
        ("", ""),
    ],
)
def test_a_message_is_translated_with_its_parameters(text: str, translated: str) -> None:
    assert CHINESE.render(text) == translated


def test_english_messages_are_unchanged() -> None:
    with translation.override("en"):
        assert translate_message("waiting for cards") == "waiting for cards"


def test_a_reader_of_chinese_gets_the_translation() -> None:
    with translation.override("zh-hans"):
        assert translate_message("waiting for cards") == "等待计算卡"


def test_a_reader_of_chinese_gets_the_errors_of_queue_fields_with_their_requirements() -> None:
    with translation.override("zh-hans"):
        for declared in (*PLAIN_FIELDS.values(), *QUOTA_FIELDS.values()):
            for message in (declared.error([]), declared.error([], path="lab › vision")):
                assert message is not None
                translated = translate_message(message)
                assert translate_message(declared.requirement) in translated
                assert "must be" not in translated
                assert declared.requirement not in translated


def test_a_reader_of_chinese_gets_the_gateways_refusals_and_the_names_of_networks() -> None:
    with translation.override("zh-hans"):
        limit = (
            "Rate limit reached: this key may make 60 requests a minute here. Try again in 1.5 s."
        )
        assert (
            translate_message(limit)
            == "已达到速率限制：此密钥在这里每分钟最多 60 个请求。请在 1.5 秒后重试。"
        )
        with pytest.raises(EgressRefused) as refused:
            EgressPolicy().check_address(ip_address("10.0.0.7"), host="hooks.example.com")
        assert "10.0.0.7" in translate_message(str(refused.value))
        assert "专用网络" in translate_message(str(refused.value))


@pytest.mark.parametrize(
    "message",
    [
        "not the Prometheus text format: {0}",
        "it answered with status {0}",
        "no {0} of a card can be that",
        "{0}× {1} (such as {2})",
    ],
)
def test_what_readers_and_sources_of_figures_say_is_among_what_can_be_said(message: str) -> None:
    assert message in translatable_messages.spoken()


def test_every_sentence_that_can_be_said_has_a_translation() -> None:
    assert translatable_messages.untranslated() == {}


def test_no_translation_is_kept_of_what_nobody_says() -> None:
    assert translatable_messages.forgotten() == set()


def test_every_text_of_a_table_has_a_translation() -> None:
    assert translatable_messages.untranslated_table_texts() == {}


def test_no_translation_is_kept_of_a_text_that_is_in_no_table() -> None:
    assert translatable_messages.forgotten_table_texts() == set()


def test_a_translation_fills_in_what_its_sentence_fills_in() -> None:
    for entry in translatable_messages.catalogue():
        places = set(re.findall(r"\{\d+\}", entry.msgid))
        assert set(re.findall(r"\{\d+\}", entry.msgstr)) <= places, entry.msgid
