"""What a federation tells of itself: bounds, trust, health."""
