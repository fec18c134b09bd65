"""Engines and the fields of their specs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.ports.engines import FlagsChecked


class EngineFieldSerializer(serializers.Serializer[Any]):
    """One field of an engine's spec, as its plug-in describes it."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment] # declared, not an attribute
    help = serializers.CharField()
    kind = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment] # as above
    default = serializers.JSONField(allow_null=True)
    least = serializers.FloatField(allow_null=True)
    most = serializers.FloatField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField())


class EngineSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(help_text="What people call it.")
    environment = serializers.CharField(
        help_text="The software environment that it runs in; empty where it comes as an image only."
    )
    versions = serializers.CharField(help_text="Those that it was written for, as in PEP 440.")
    default_version = serializers.CharField()
    flags = serializers.ChoiceField(
        choices=[flags.value for flags in FlagsChecked],
        help_text="How its arguments are known to be right: it is run in tests, its own parser reads them, or "
        "neither.",
    )
    formats = serializers.ListField(
        child=serializers.CharField(), help_text="Of quantized weights that it loads or makes."
    )
    metrics = serializers.DictField(
        child=serializers.CharField(),
        help_text="Our names of figures with the series of the engine.",
    )
    images = serializers.DictField(child=serializers.CharField(), help_text="By chip.")
    chips = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="The chips on which it does each task.",
    )
    remarks = serializers.ListField(child=serializers.CharField())
    sources = serializers.ListField(child=serializers.CharField())
    tasks = serializers.DictField(
        child=EngineFieldSerializer(many=True), help_text="The fields of each task's spec."
    )
