"""Hubs that publish models, by the interface that they speak."""

from controlplane.adapters.hubs.huggingface import HuggingFaceHub
from controlplane.adapters.hubs.modelscope import ModelScopeHub

__all__ = ["HuggingFaceHub", "ModelScopeHub"]
