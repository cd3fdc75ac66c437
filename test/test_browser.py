"""The page of h5cow report in a browser: ./dev test --browser, which has one. A screenshot of each is kept in H5COW_SCREENSHOTS."""

import html
import os
import re
import shutil
import subprocess

import pytest
from conftest import h5cow
from report_pages import MAKE, given
from seeds import seed
from waiting import WAITING

BROWSER = shutil.which("chromium")
if BROWSER is None:
    pytest.skip("there is no chromium here: ./dev test --browser has it", allow_module_level=True)

MANY = """
for step in range(int(sys.argv[2])):
    with h5py.File(sys.argv[1], 'a') as f:
        for k in range(120 if step == 0 else 0):
            f[f'd{k}'] = np.arange(10.) + k
        f[f'd{step % 120}'][step % 10] = -step
"""
PICTURES = """
y, x = np.mgrid[:120, :200]
for step in range(3):
    with h5py.File(sys.argv[1], 'a') as f:
        if step == 0:
            f['image'], f['line'], f['none'] = np.hypot(x - 100., y - 60.), np.cumsum(x[0] % 7.), np.full((5, 5), np.nan)
        f['image'][20:40, 50 + step:90] = step
        f['line'][20] = -50 * step
"""


def browse(page, folder, script="", dark=False):
    """The page's elements as text when its script, and SCRIPT after it, have run. What a script says to the console fails."""
    if script:
        text = page.read_text().replace("</body>", f"<script>{script}</script></body>")
        page = page.with_name("driven.html")
        page.write_text(text)
    shot = os.path.join(os.environ.get("H5COW_SCREENSHOTS") or folder, f"{folder.name}{'-dark' if dark else ''}.png")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
               "--enable-logging=stderr", "--window-size=1100,3000", "--virtual-time-budget=5000", "--hide-scrollbars",
               *(["--blink-settings=preferredColorScheme=0"] if dark else [])]  # fmt: skip
    said = ""
    for more in (["--dump-dom"], [f"--screenshot={shot}"]):
        done = subprocess.run([*command, *more, page.as_uri()], capture_output=True, text=True, timeout=WAITING)
        assert done.returncode == 0, done.stderr
        said += done.stdout
        assert not re.findall(r".*CONSOLE.*", done.stderr), done.stderr
    assert os.path.getsize(shot) > 10_000
    return said


def words(dom, name):
    """What stands in the element of that id, without tags."""
    inside = re.search(rf'<(\w+)[^>]* id="{name}"[^>]*>(.*?)</\1>', dom, re.S)[2]
    return html.unescape(re.sub(r"<[^>]*>", " ", inside))


@pytest.fixture
def page(programs, tmp_path):
    def make(code, *arguments, options=""):
        done = programs.python(code, tmp_path / "a.h5", *arguments, options=options)
        assert done.returncode == 0, done.stderr
        h5cow("report", "-f", tmp_path / "a.h5")
        return tmp_path / "a.h5.html"

    return make


@pytest.mark.parametrize("dark", (False, True))
def test_everything_is_shown(page, tmp_path, dark):
    found = page(MAKE, seed(), 9, options="message=a<b>bold</b>")
    dom, told = browse(found, tmp_path, dark=dark), given(found)
    assert "<title>History of a.h5</title>" in dom and "<b>bold" not in dom
    assert words(dom, "shown") == f"{len(told['objects'])} of {len(told['objects'])} objects"
    rows = dom.count('<details class="object">')
    assert rows == len(told["objects"]) and len(re.findall(r'<tr id="v\d+">', dom)) == 9
    assert words(dom, "page") == "1 to 9 of 9" and "a&lt;b&gt;bold&lt;/b&gt;" in dom
    for o in told["objects"]:
        assert f'>{o["path"]}</span>' in dom


def test_many_versions_page_by_page(page, tmp_path):
    found = page(MANY, 350)
    dom = browse(found, tmp_path, "at('older').click(); at('older').click(); at('more').click();")
    assert words(dom, "page") == "201 to 300 of 350" and len(re.findall(r'<tr id="v\d+">', dom)) == 100
    assert words(dom, "shown") == "100 of 121 objects"
    dom = browse(found, tmp_path, "at('filter').value = 'd11'; at('filter').dispatchEvent(new Event('input'));"
                 "document.querySelector('details.object').open = true; location.hash = 'v7';")  # fmt: skip
    assert words(dom, "shown") == "11 of 11 objects"  # d11, d110 to d119
    assert words(dom, "page") == "301 to 350 of 350" and re.search(r'<tr id="v7" style="background', dom)
    assert re.search(r'<details class="object" open="">.*?<li><a href="#v\d+">\d+</a> changed', dom, re.S)


def test_many_datasets(page, tmp_path):
    make = """
with h5py.File(sys.argv[1], 'w') as f:
    for k in range(2100):
        f.create_dataset(f'd{k}', data=np.arange(600.) + k, chunks=(600,))
with h5py.File(sys.argv[1], 'a') as f:
    f['d7'][0] = -1
"""
    found = page(make)
    told, dom = given(found), browse(found, tmp_path)
    assert len(told["storage"]["datasets"]) == 200 and told["storage"]["all"] == 2101 * 4800 and told["more_objects"] == 101
    assert words(dom, "shown").startswith("50 of 2,000 objects; 101 more") and "9.6 MiB" in words(dom, "cards")


def test_pictures(page, tmp_path):
    dom = browse(page(PICTURES), tmp_path)
    assert re.search(r'aria-label="/image: the difference: [1-9][\d,]* of 12,000 points differ', dom) is not None
    assert re.search(r'aria-label="/line: values from -100 to', dom) and 'aria-label="/none in version 3' in dom


def test_no_version_at_all(programs, tmp_path):
    """A file whose first commit made no version yet: import, then nothing."""
    done = programs.python("f = h5py.File(sys.argv[1], 'w'); f.close()", tmp_path / "a.h5")
    assert done.returncode == 0, done.stderr
    h5cow("report", tmp_path / "a.h5")
    assert "History of a.h5" in browse(tmp_path / "a.h5.html", tmp_path)
