"""Flux's own shapes: the artifact, what says where it came from, and later its resources."""
