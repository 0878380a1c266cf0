"""What comes in: inputs, labels, texts and pictures, and what is doubtful among them."""
