"""Content-addressed artifact store in a bucket of any S3-compatible service."""

from controlplane.adapters.artifacts.s3.store import S3Artifacts

__all__ = ["S3Artifacts"]
