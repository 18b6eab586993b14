"""One HTTP exchange: pooled, bounded, checked for where it goes, in our own errors.

Nothing above this package has heard of urllib3, ssl or sockets.
"""
