"""Changes of metric sources and agent tokens; storage of metrics."""
