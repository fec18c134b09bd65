"""Jobs and their attempts: submit, launch, observe, finish."""
