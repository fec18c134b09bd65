"""A plausible company, made by the product's own services: sample data to look at, never a measurement."""
