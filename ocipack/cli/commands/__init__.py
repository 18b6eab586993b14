"""One module a command; each is loaded only when it runs."""
