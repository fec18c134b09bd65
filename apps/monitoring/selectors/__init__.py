"""Questions about what looks across the apps."""
