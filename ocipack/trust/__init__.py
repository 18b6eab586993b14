"""Keys, signatures, statements and what they claim. No I/O; proof or an exception."""
