"""What a federation saves, and the files that hold it."""
