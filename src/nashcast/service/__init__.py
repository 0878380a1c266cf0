"""The live service: a federation behind HTTP, with a journal that survives anything but the loss of its disk."""
