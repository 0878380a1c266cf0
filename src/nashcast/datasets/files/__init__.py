"""Files of series: locating, downloading, checking and reading them."""
