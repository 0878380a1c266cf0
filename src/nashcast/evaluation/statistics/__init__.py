"""Statistics over streams: significance, ratios with intervals, ranks."""
