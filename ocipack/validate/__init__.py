"""Checks of what will be delivered: a rule looks at one object, or at all of one root.

- `check`: which rules there are, and running them
- `objects`, `confidential`, `images`: the rules
"""
