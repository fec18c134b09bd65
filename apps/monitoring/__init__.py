"""The health of the fleet: faults, isolations, burn-ins, maintenance rollouts and alerts."""
