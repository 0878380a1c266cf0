"""Worker processes: the federations of streams, and foreign code in separate processes."""
