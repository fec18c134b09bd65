"""Changes to artifacts, datasets and models."""
