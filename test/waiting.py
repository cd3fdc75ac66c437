"""How long a test waits for a program. The machine may have much else to do, so only what takes longer than any busy
machine needs has stopped working. waiting.h is the same for C."""

WAITING = 1500  # seconds
