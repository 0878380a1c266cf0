"""Incoming data: inputs, labels, texts and pictures, and the screening of doubtful labels."""
