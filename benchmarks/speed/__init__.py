"""The work of `nashcast bench`: time of a game, of a replay, and of steps with agents in other processes."""
