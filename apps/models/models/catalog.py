"""Catalog models and their compatibility cells."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.domain.catalog import CatalogTask, Caveat, Support


class CatalogModel(models.Model):
    """One published model. Null and empty mean unknown; ``confidence`` rates the known facts."""

    #: The stable name, as in the data, for example ``qwen2-7b-instruct``.
    key = models.CharField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    family = models.CharField(max_length=60, db_index=True)
    #: ``llm``, ``vlm``, ``embedding`` …
    modality = models.CharField(max_length=20)
    tasks = ArrayField(models.CharField(max_length=40), default=list)
    parameters = models.BigIntegerField(null=True, blank=True)
    #: Parameters active per token of a mixture of experts.
    active_parameters = models.BigIntegerField(null=True, blank=True)
    architecture = models.CharField(max_length=120)
    layers = models.PositiveIntegerField(null=True, blank=True)
    hidden = models.PositiveIntegerField(null=True, blank=True)
    heads = models.PositiveIntegerField(null=True, blank=True)
    kv_heads = models.PositiveIntegerField(null=True, blank=True)
    head_dim = models.PositiveIntegerField(null=True, blank=True)
    intermediate = models.PositiveIntegerField(null=True, blank=True)
    #: ``mha``, ``gqa``, ``mqa``, ``mla``, or a description of a hybrid.
    attention = models.CharField(max_length=60, blank=True)
    #: ``{"kv_lora_rank", "qk_rope_head_dim"}``.
    mla = models.JSONField(null=True, blank=True)
    #: ``{"experts", "top_k", "shared_experts", "moe_intermediate"}``.
    moe = models.JSONField(null=True, blank=True)
    #: Parts of a pipeline: encoders, denoiser blocks.
    components = models.JSONField(default=dict, blank=True)
    #: Maximum positions of the published configuration.
    context_length = models.PositiveIntegerField(null=True, blank=True)
    #: Maximum positions with RoPE scaling.
    context_extended = models.PositiveIntegerField(null=True, blank=True)
    dtype = models.CharField(max_length=60)
    #: Bytes per token of a 16-bit KV cache.
    kv_bytes_per_token = models.PositiveIntegerField(null=True, blank=True)
    licence = models.CharField(max_length=60, blank=True)
    hf_repo = models.CharField(max_length=120, blank=True, db_index=True)
    modelscope_id = models.CharField(max_length=120, blank=True, db_index=True)
    #: Repositories with quantized weights of it.
    prequantized = ArrayField(models.CharField(max_length=120), default=list, blank=True)
    #: Group of facts → ``high`` or ``medium``.
    confidence = models.JSONField(default=dict)
    #: Keys of the sources that the entry rests on.
    evidence = ArrayField(models.CharField(max_length=40), default=list)
    notes = models.TextField(blank=True)
    #: SHA-256 of the entry as it was loaded.
    digest = models.CharField(max_length=64)
    #: Set when the data files no longer contain it; the row stays for versions that refer to it.
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("key",)

    def __str__(self) -> str:
        return self.title


class CatalogCell(models.Model):
    """Support of one task by one engine on one vendor's chips, according to the evidence."""

    TASKS = [(task.value, task.value) for task in CatalogTask]
    STATUSES = [(status.value, status.value) for status in Support]
    CAVEATS = [(caveat.value, caveat.value) for caveat in Caveat]

    model = models.ForeignKey(CatalogModel, on_delete=models.CASCADE, related_name="cells")
    task = models.CharField(max_length=20, choices=TASKS)
    vendor = models.CharField(max_length=40)
    engine = models.CharField(max_length=40)
    status = models.CharField(max_length=20, choices=STATUSES)
    #: Engine versions that the evidence covers, as a PEP 440 specifier; empty if it does not say.
    versions = models.CharField(max_length=60, blank=True)
    #: Training methods or quantization schemes.
    methods = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: Keys of the sources.
    evidence = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: What limits the claim; empty if nothing does.
    caveat = models.CharField(max_length=40, choices=CAVEATS, blank=True)

    class Meta:
        ordering = ("task", "vendor", "engine")
        constraints = (
            models.UniqueConstraint(
                fields=("model", "task", "vendor", "engine"), name="catalog_cell_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.model_id}: {self.task} by {self.engine} on {self.vendor}: {self.status}"
