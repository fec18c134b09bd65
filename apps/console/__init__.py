"""Pages that read across the apps: home, search, the state of the system, and the fleet."""
