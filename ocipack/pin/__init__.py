"""Giving every image a digest, in place: find, resolve, rewrite; and asking again later.

- `scan`: what files name, and what can be said of each place
- `resolve`: each reference asked for once, many at a time
- `mirrors`: where to ask instead
- `rewrite`: the changed text of a file, proven by reading it again
- `locked`: from answers to a lock, and from a lock to answers
- `standing`: whether what a lock says still holds
"""
