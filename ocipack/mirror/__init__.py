"""Mirroring: many sources, one file that says what is wanted, and nothing lost on the way.

- `model`: what a mirror file says
- `reader`: the file itself, read strictly
- `versions`: version ranges as Helm and Flux read them
- `pattern`: regular expressions that take linear time
- `select`: which of the tags there are
- `relocate`: what a source is called at the target
- `plan`: every item of a run, in flat memory; collisions and shards
- `run`: each item resolved, compared, verified, copied, tagged
- `report`: what became of each
- `maps`: what a mirror is to those who pull from it
"""
