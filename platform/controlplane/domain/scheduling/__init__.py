"""Which claims get which cards: a pure function over a snapshot.

``plan(snapshot, policy, at) -> Plan`` serves the cycle, the dry run, the forecast and the benchmark
alike. Everything is an argument: the clock, the policy, the fleet.
"""
