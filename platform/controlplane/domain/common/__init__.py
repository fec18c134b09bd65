"""Values and rules that the whole domain uses: chips, cards, resources, topology, spec fields, names, roles."""
