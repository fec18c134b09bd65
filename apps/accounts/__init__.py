"""Users, teams, roles, tokens, audit."""
