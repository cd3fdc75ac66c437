"""XXH3-64 with seed 0 in Python and numpy, for reader.py; written from the specification of xxHash 0.8.

Short input is hashed with Python's integers, input of more than 240 bytes with numpy, some ten MB a second.
"""

import numpy as np

MASK = 2**64 - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P32 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def word(data, at, size=8):
    return int.from_bytes(data[at : at + size], "little")


def key(at):
    return word(SECRET, at)


def fold(a, b):
    return (a * b & MASK) ^ (a * b >> 64)


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def avalanche64(h):
    h = (h ^ h >> 33) * P64[1] & MASK
    h = (h ^ h >> 29) * P64[2] & MASK
    return h ^ h >> 32


def mix(data, at, secret):
    return fold(word(data, at) ^ key(secret), word(data, at + 8) ^ key(secret + 8))


def xxh3(data):
    n = len(data)
    if n == 0:
        return avalanche64(key(56) ^ key(64))
    if n <= 3:
        h = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche64(h ^ word(SECRET, 0, 4) ^ word(SECRET, 4, 4))
    if n <= 8:
        h = (word(data, n - 4, 4) + (word(data, 0, 4) << 32)) ^ key(8) ^ key(16)
        h ^= (h << 49 & MASK | h >> 15) ^ (h << 24 & MASK | h >> 40)
        h = h * 0x9FB21C651E98DF25 & MASK
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    if n <= 16:
        low, high = word(data, 0) ^ key(24) ^ key(32), word(data, n - 8) ^ key(40) ^ key(48)
        return avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high) & MASK)
    total = n * P64[0]
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            total += mix(data, 16 * i, 32 * i) + mix(data, n - 16 * i - 16, 32 * i + 16)
        return avalanche(total & MASK)
    if n <= 240:
        total = avalanche(total + sum(mix(data, 16 * i, 16 * i) for i in range(8)) & MASK)
        total += sum(mix(data, 16 * i, 16 * i - 125) for i in range(8, n // 16)) + mix(data, n - 16, 119)
        return avalanche(total & MASK)
    keys = np.array([[key(8 * (stripe + lane)) for lane in range(8)] for stripe in range(16)], "u8")
    lanes = np.frombuffer(data, "<u8", (n - 1) // 64 * 8).reshape(-1, 8)
    added = accumulate(lanes, keys[np.arange(len(lanes)) % 16])
    total = np.array([P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]], "u8")
    scramble, shift, blocks = np.array([key(128 + 8 * i) for i in range(8)], "u8"), np.uint64(47), (n - 1) // 1024
    for block in range(blocks):
        total += added[16 * block : 16 * block + 16].sum(0)
        total = (total ^ total >> shift ^ scramble) * np.uint64(P32[0])
    total += added[16 * blocks :].sum(0)
    last = np.frombuffer(data[n - 64 :], "<u8").reshape(1, 8)
    total += accumulate(last, np.array([[key(121 + 8 * i) for i in range(8)]], "u8"))[0]
    acc = [int(lane) for lane in total]
    merged = sum(fold(acc[2 * i] ^ key(11 + 16 * i), acc[2 * i + 1] ^ key(19 + 16 * i)) for i in range(4))
    return avalanche(n * P64[0] + merged & MASK)


def accumulate(lanes, keys):
    mixed = lanes ^ keys
    return (mixed & np.uint64(2**32 - 1)) * (mixed >> np.uint64(32)) + lanes[:, [1, 0, 3, 2, 5, 4, 7, 6]]
