"""Services for artifacts, datasets, models, the catalog and storage."""
