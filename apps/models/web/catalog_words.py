"""The catalog's codes in the reader's words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from controlplane.domain.catalog import CatalogTask, Caveat, Modality, Support
from controlplane.domain.catalog.facets import Facet, Size

MODALITIES: Mapping[Modality, Promise] = {
    Modality.LLM: _("language"),
    Modality.VLM: _("vision and language"),
    Modality.EMBEDDING: _("embedding"),
    Modality.RERANK: _("reranking"),
    Modality.ASR: _("speech to text"),
    Modality.TTS: _("text to speech"),
    Modality.IMAGE: _("image making"),
    Modality.VIDEO: _("video making"),
    Modality.RECOMMENDER: _("recommending"),
}
TASKS: Mapping[CatalogTask, Promise] = {
    CatalogTask.TRAIN: _("Train"),
    CatalogTask.SERVE: _("Serve"),
    CatalogTask.QUANTIZE: _("Quantize"),
}
#: What people ask a model to do; others are shown by their code.
ABILITIES: Mapping[str, Promise] = {
    "chat": _("chat"),
    "completion": _("completion"),
    "vision": _("seeing images"),
    "video": _("seeing videos"),
    "audio": _("hearing"),
    "speech": _("speaking"),
    "reasoning": _("reasoning"),
    "text-to-image": _("text to image"),
    "image-to-image": _("image to image"),
    "text-to-video": _("text to video"),
    "transcription": _("transcription"),
    "embedding": _("embedding"),
    "multimodal-embedding": _("embedding of text and images"),
    "graph-embedding": _("embedding of graphs"),
    "rerank": _("reranking"),
    "ranking": _("ranking"),
    "retrieval": _("retrieval"),
    "ctr": _("click prediction"),
    "cvr": _("conversion prediction"),
    "generative-recommendation": _("recommending by generating"),
}
SIZES: Mapping[Size, Promise | str] = {
    Size.SMALL: _("under 1B"),
    Size.LIGHT: "1B – 4B",
    Size.MEDIUM: "4B – 10B",
    Size.LARGE: "10B – 40B",
    Size.HUGE: "40B – 100B",
    Size.GIANT: _("100B and more"),
    Size.UNKNOWN: _("unknown"),
}
FACETS: Mapping[Facet, Promise] = {
    Facet.MODALITY: _("Modality"),
    Facet.TRAIN: _("Trainable on"),
    Facet.SERVE: _("Deployable on"),
    Facet.QUANTIZE: _("Quantizable on"),
    Facet.SIZE: _("Parameters"),
    Facet.TASK: pgettext_lazy("of a model", "Task"),
    Facet.FAMILY: _("Family"),
    Facet.LICENCE: _("Licence"),
}
CAVEATS: Mapping[Caveat, Promise] = {
    Caveat.ARCHITECTURE: _("The list names its architecture, not this model."),
    Caveat.UNTRIED: _("Listed, without a mark that somebody tried it."),
    Caveat.NEWS: _("From the release news, not from the table."),
    Caveat.BACK_END: _("By its FSDP2 back end only."),
    Caveat.GENERIC: _("From the type of its layers; nobody published a result."),
    Caveat.LOADED: _("That release loads these schemes; which tool makes them is not said."),
    Caveat.HEARSAY: _("People say so; no source was read."),
}
#: How sure a fact is that no second source confirms.
DOUBTS: Mapping[str, Promise] = {
    "medium": _("not checked"),
    "low": _("a guess"),
}
#: Parts of a pipeline and the like, as the data names them.
COMPONENTS: Mapping[str, Promise] = {
    "denoiser_params_b": _("Parameters of the denoiser, in billions"),
    "text_encoder": _("Text encoder"),
    "native_px": _("Pixels of an edge"),
    "cross_attention_dim": _("Width of cross-attention"),
    "joint_blocks": _("Joint blocks"),
    "single_blocks": _("Single blocks"),
    "ffn_dim": _("Width inside of a denoiser block"),
    "source_repo": _("Source code"),
}
#: Fields that a configuration and the catalog may contradict each other in.
FIELDS: Mapping[str, Promise] = {
    "architecture": _("Architecture"),
    "layers": _("Layers"),
    "hidden_size": _("Width of a layer"),
    "attention_heads": _("Attention heads"),
    "kv_heads": _("Heads of keys and values"),
    "head_dim": _("Size of a head"),
    "intermediate_size": _("Width inside of the feed-forward part"),
    "context_length": _("Context"),
    "dtype": _("Precision of the weights"),
    "params_b": _("Parameters, in billions"),
    "mla.kv_lora_rank": _("Rank of compressed keys and values"),
    "mla.qk_rope_head_dim": _("Size of a compressed head's position"),
    "moe.experts": _("Experts"),
    "moe.top_k": _("Experts for a token"),
    "moe.shared_experts": _("Shared experts"),
    "moe.moe_intermediate_size": _("Width inside of an expert"),
}


def look(status: Support) -> str:
    """The key of the status among the product's states."""
    return "unsaid" if status is Support.UNKNOWN else status.value
