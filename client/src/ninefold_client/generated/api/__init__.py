"""Operations of the REST API, one package for each tag."""
