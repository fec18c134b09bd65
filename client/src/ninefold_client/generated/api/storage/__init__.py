"""Operations, one module each."""
