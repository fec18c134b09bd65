"""Changes of faults, isolations, rules, rollouts and alerts; ingestion of metrics."""
