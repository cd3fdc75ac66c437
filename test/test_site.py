"""The site that ./dev docs makes of docs/ and README.md, in a browser: ./dev test --browser."""

import functools
import html
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.parse

import pytest
from waiting import WAITING

TOP = pathlib.Path(__file__).resolve().parent.parent
BROWSER = shutil.which("chromium")
if BROWSER is None or shutil.which("mkdocs") is None:
    pytest.skip("there is no chromium or mkdocs here: ./dev test --browser has them", allow_module_level=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder, and where it is served."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(["mkdocs", "build", "--config-file", TOP / "mkdocs.yml", "--site-dir", folder],
                          capture_output=True, text=True, timeout=WAITING)  # fmt: skip
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_every_page_is_there_and_every_link_leads_somewhere(site):
    folder, _ = site
    pages = {p.relative_to(folder).as_posix(): p.read_text() for p in folder.glob("*.html")}
    assert {p.stem for p in (TOP / "docs").glob("*.md")} | {"index"} <= {name[:-5] for name in pages}
    ids = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in pages.items()}
    for name, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            where = urllib.parse.urlsplit(html.unescape(link))
            if where.scheme in ("http", "https"):
                continue
            file = where.path.lstrip("/") or name
            assert (folder / file).exists(), (name, link)
            assert not where.fragment or where.fragment in ids[file], (name, link)


def test_nothing_is_asked_of_any_network(site):
    folder, _ = site
    for page in folder.glob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="((?:https?:)?//[^"]*)"', page.read_text())
        assert loaded == [], page


@pytest.mark.parametrize("page", ["index", *sorted(p.stem for p in (TOP / "docs").glob("*.md"))])
@pytest.mark.parametrize("dark", (False, True))
def test_each_page_in_a_browser(site, tmp_path, page, dark):
    _, address = site
    shot = os.path.join(os.environ.get("H5COW_SCREENSHOTS") or tmp_path, f"site-{page}{'-dark' if dark else ''}.png")
    done = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile",
         "--enable-logging=stderr", "--window-size=1200,1600", "--virtual-time-budget=3000", f"--screenshot={shot}",
         *(["--blink-settings=preferredColorScheme=0"] if dark else []), f"{address}/{page}.html"],
        capture_output=True, text=True, timeout=WAITING)  # fmt: skip
    assert done.returncode == 0 and not re.findall(r".*CONSOLE.*", done.stderr), done.stderr
    assert os.path.getsize(shot) > 10_000
