"""Files that series are read from: found, fetched, checked, read."""
