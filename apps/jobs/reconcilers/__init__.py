"""Controllers of jobs and their attempts."""
