"""What was rendered when somebody last looked: files that tests compare with, and how to write them anew."""
