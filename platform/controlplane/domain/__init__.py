"""Pure decisions: standard library only, no I/O, no clock. Time is always an argument."""
