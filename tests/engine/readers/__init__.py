"""Programs that hand rendered arguments to an engine's own published parser; run by the engine's Python."""
