"""What is publicly known of models: facts, and where each of them runs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.domain.catalog import CatalogTask, Caveat, Support


class CatalogModel(models.Model):
    """One published model. What is null or empty is not known; ``confidence`` says how sure the rest is."""

    #: The stable name, as in the data, for example ``qwen2-7b-instruct``.
    key = models.CharField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    family = models.CharField(max_length=60, db_index=True)
    #: ``llm``, ``vlm``, ``embedding`` …
    modality = models.CharField(max_length=20)
    tasks = ArrayField(models.CharField(max_length=40), default=list)
    parameters = models.BigIntegerField(null=True, blank=True)
    #: Of a mixture of experts: parameters that one token passes through.
    active_parameters = models.BigIntegerField(null=True, blank=True)
    architecture = models.CharField(max_length=120)
    layers = models.PositiveIntegerField(null=True, blank=True)
    hidden = models.PositiveIntegerField(null=True, blank=True)
    heads = models.PositiveIntegerField(null=True, blank=True)
    kv_heads = models.PositiveIntegerField(null=True, blank=True)
    head_dim = models.PositiveIntegerField(null=True, blank=True)
    intermediate = models.PositiveIntegerField(null=True, blank=True)
    #: ``mha``, ``gqa``, ``mqa``, ``mla``, or a hybrid in words.
    attention = models.CharField(max_length=60, blank=True)
    #: ``{"kv_lora_rank", "qk_rope_head_dim"}``.
    mla = models.JSONField(null=True, blank=True)
    #: ``{"experts", "top_k", "shared_experts", "moe_intermediate"}``.
    moe = models.JSONField(null=True, blank=True)
    #: Parts of a pipeline: encoders, denoiser blocks.
    components = models.JSONField(default=dict, blank=True)
    #: Positions of the published configuration.
    context_length = models.PositiveIntegerField(null=True, blank=True)
    #: Positions with RoPE scaling.
    context_extended = models.PositiveIntegerField(null=True, blank=True)
    dtype = models.CharField(max_length=60)
    #: Bytes a token takes in a 16-bit KV cache.
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
    #: The data no longer has it; the row stays for the versions that refer to it.
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("key",)

    def __str__(self) -> str:
        return self.title


class CatalogCell(models.Model):
    """What the evidence says of one task by one engine on one vendor's chips."""

    TASKS = [(task.value, task.value) for task in CatalogTask]
    STATUSES = [(status.value, status.value) for status in Support]
    CAVEATS = [(caveat.value, caveat.value) for caveat in Caveat]

    model = models.ForeignKey(CatalogModel, on_delete=models.CASCADE, related_name="cells")
    task = models.CharField(max_length=20, choices=TASKS)
    vendor = models.CharField(max_length=40)
    engine = models.CharField(max_length=40)
    status = models.CharField(max_length=20, choices=STATUSES)
    #: Versions of the engine that the evidence speaks of, as a PEP 440 specifier; empty where it does not say.
    versions = models.CharField(max_length=60, blank=True)
    #: Methods of training, or schemes of quantizing.
    methods = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: Keys of the sources.
    evidence = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: What limits the claim; empty where nothing does.
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
