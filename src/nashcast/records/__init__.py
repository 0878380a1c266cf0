"""Records on disk: one folder for each run or study."""
