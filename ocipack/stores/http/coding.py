"""Content codings (RFC 9110, 8.4): we ask for none, and some servers and caches gzip all the same.

A digest is of the bytes without that coding, so it is taken off before anything is hashed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

_GZIP_ONLY = 16 + zlib.MAX_WBITS


class NotGzip(Exception):
    """The bytes are not what their coding says."""


def gunzip(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Take gzip off a stream, at most `most` bytes of the result at a time.

    NotGzip when it is none, and at its end when it was cut short: a stream that ends early must
    not look like a short one.
    """
    inner, ended = zlib.decompressobj(_GZIP_ONLY), False
    for piece in pieces:
        left = piece
        while left:
            if ended:  # several members are one stream (RFC 1952, 2.2)
                inner, ended = zlib.decompressobj(_GZIP_ONLY), False
            try:
                out = inner.decompress(left, most)
            except zlib.error as e:
                raise NotGzip(str(e)) from e
            if out:
                yield out
            ended = inner.eof
            left = inner.unused_data if ended else inner.unconsumed_tail
    if not ended:
        raise NotGzip("it ends in the middle")
