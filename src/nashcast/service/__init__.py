"""The live service: a federation behind HTTP, with a durable journal on disk."""
