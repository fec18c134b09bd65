"""Controllers of faults, isolations, metric sources, maintenance rollouts and alerts."""
