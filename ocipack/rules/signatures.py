"""Rules about signatures: what verification found, and why each was refused."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, NOTE, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="verification, docs/verification.md")

SIGNATURES = table(
    Rule(
        "signature-good",
        NOTE,
        "a signature by a trusted key",
        "this is what was looked for",
        "nothing",
    ),
    Rule(
        "signature-missing",
        ERROR,
        "not enough signatures by trusted keys",
        "anyone who can write to the registry could have put this there",
        "sign it with `ocipack sign`, or trust the key that signed it",
    ),
    Rule(
        "signature-foreign",
        ERROR,
        "a signature that no trusted key made",
        "anyone can sign; only the keys of the policy count",
        "check that the right key is given; a re-signed artifact keeps the old signatures too",
    ),
    Rule(
        "signature-malformed",
        ERROR,
        "a signature that is not in the format it claims",
        "what cannot be read proves nothing",
        "sign again; a proxy or a converter may have changed it",
    ),
    Rule(
        "signature-digest",
        ERROR,
        "a signature of another digest",
        "a true signature of something else, copied here, would pass it off as this",
        "sign this digest",
    ),
    Rule(
        "signature-subject",
        ERROR,
        "a bundle that is attached to something else",
        "a registry listed it here although its manifest names another subject",
        "sign this digest",
    ),
    Rule(
        "signature-certificate",
        ERROR,
        "a bundle that was made with a certificate rather than a key",
        "a key proves nothing about an identity, nor the other way round",
        "sign with the key that the policy names",
    ),
    Rule(
        "signature-predicate",
        ERROR,
        "an attestation, which is no signature",
        "a statement about something is not its approval",
        "sign it with `ocipack sign`",
    ),
    Rule(
        "signature-place",
        NOTE,
        "something attached where signatures are, which is none that can be used",
        "it is named so that nobody wonders why it did not count",
        "nothing",
    ),
    Rule(
        "signature-unread",
        NOTE,
        "a place that could hold a signature and could not be read",
        "without a good signature elsewhere the answer is not known",
        "see the error it names, and try again",
    ),
    Rule(
        "signature-unfit",
        ERROR,
        "a signature by a trusted key that does not say what the policy asks for",
        "what was signed for another environment, name or time must not pass here",
        "sign it for this purpose with `ocipack sign --bind`, or mend the policy",
    ),
    Rule(
        "attestation-good",
        NOTE,
        "an attestation by a trusted key",
        "this is what was looked for",
        "nothing",
    ),
    Rule(
        "attestation-unfit",
        ERROR,
        "an attestation by a trusted key whose predicate does not meet the policy's conditions",
        "a statement that says something else is not the one asked for",
        "mend what it reports and attest again, or mend the policy",
    ),
    Rule(
        "policy-unmatched",
        ERROR,
        "a name that no policy covers",
        "silence means no: what nobody decided about is not let through",
        "name it in the images of a policy",
    ),
    Rule(
        "policy-static",
        ERROR,
        "a name that a policy refuses whatever was signed",
        "somebody decided so, and the message says why",
        "use another image, or mend the policy",
    ),
    Rule(
        "policy-expired",
        NOTE,
        "an exemption whose last day has passed",
        "an exemption that never ended would be a rule",
        "have it signed, or let its owner extend the exemption",
    ),
    Rule(
        "policy-waived",
        WARNING,
        "a policy that did not count: an exemption, a static pass, or one that only warns",
        "what was let through has not been proven",
        "have it signed, and remove what waives the policy",
    ),
    Rule(
        "policy-lax",
        WARNING,
        "a policy that lets through what it should refuse",
        "a policy that only warns, passes everything or trusts a published key protects nobody",
        "enforce it; give single images an exemption that ends",
    ),
    Rule(
        "policy-case",
        ERROR,
        "a case of a policy's test that ends otherwise than it should",
        "the policy does not say what was meant",
        "mend the policy, or what the case expects",
    ),
)
