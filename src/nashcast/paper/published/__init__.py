"""The published code's form: its draws, its game, its departures from the theorem."""
