"""The `nashcast` command: one file for each subcommand; a command parses, calls, prints."""
