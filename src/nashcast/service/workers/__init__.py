"""Worker processes: the federations of streams, and foreign code in processes of its own."""
