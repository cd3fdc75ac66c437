"""What test_report.py and test_browser.py share: files with history, and what a page of h5cow report is given."""

import json
import re

MAKE = """
import random
name, seed, count = sys.argv[1], *map(int, sys.argv[2:])
rnd = random.Random(seed)
for step in range(count):
    with h5py.File(name, 'a') as f:
        for _ in range(rnd.randrange(1, 4)):
            group, path = rnd.choice(['', 'g/', 'g/h/']), rnd.choice('abcd')
            here = group + path
            match rnd.randrange(6):
                case 0 | 1 if here not in f:
                    f.create_dataset(here, data=[rnd.randrange(4) for _ in range(4000)], chunks=(1000,), dtype='i8')
                case 2 | 3 | 4 if here in f:
                    at = rnd.randrange(4) * 1000
                    f[here][at:at + 1000] = rnd.randrange(5)
                case 5 if here in f and rnd.random() < .5:
                    del f[here]
        f.attrs['step'] = step
"""


def given(page):
    """The JSON that a page brings along."""
    return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', page.read_text(), re.S)[1])
