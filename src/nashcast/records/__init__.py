"""What happened, on disk: one folder for each run or study."""
