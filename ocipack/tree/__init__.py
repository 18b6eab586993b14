"""Files on their way into an artifact and out of it: names, contents, executable or not. No I/O."""
