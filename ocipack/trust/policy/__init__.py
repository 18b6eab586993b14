"""What must be true before anything is trusted. Silence means no.

- `model`: policies, authorities, attestations, exemptions, and the short form for keys
- `names`: which names a policy covers
- `contents`, `places`: what it says of images and sources that are named inside
- `conditions`, `age`: what it may ask of what was signed
- `decision`: from evidence to a decision, without a store
- `reader`, `clusterimagepolicy`: files, read strictly; they load the YAML reader, nothing else does
"""

from ocipack.trust.policy.model import Policy, VerificationPolicy

__all__ = ["Policy", "VerificationPolicy"]
