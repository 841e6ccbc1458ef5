"""A headless Chromium for tests of pages, driven through the DevTools protocol over a pipe."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
TIMEOUT = 60.0


class Page:
    """One page: what it logged, what it asked for, and what is in it."""

    def __init__(self, to_browser, from_browser):
        self._to, self._from = to_browser, from_browser
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._buffer:
            block = os.read(self._from, 1 << 20)
            assert block, "the browser has gone"
            self._buffer += block
        whole, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(whole)

    def start(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, address, *, width=1200, height=900, dark=False):
        """Load a page and wait until it is there."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=address)
        began = time.monotonic()
        while self.evaluate("document.readyState + location.href") != "complete" + address:
            assert time.monotonic() - began < TIMEOUT, "the page does not load"
            time.sleep(0.05)

    def evaluate(self, expression):
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    @property
    def complaints(self):
        """Errors and warnings of the console, exceptions, and entries of the browser's log."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in kinds]

    @property
    def requests(self):
        """Addresses that were asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def screenshot(self, path, whole=True):
        """A picture of the page for a person to look at."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1} if whole else None
        extra = {"clip": clip, "captureBeyondViewport": True} if whole else {}
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **extra)["data"]))

    def pdf(self):
        """The page as printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])


@contextmanager
def chromium():
    """A browser with a page; skips where there is none, except in CI, where there must be one."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("There is no Chromium; in CI there must be one: apt-get install chromium.")
        pytest.skip("Chromium is not installed: apt-get install chromium.")
    profile = tempfile.mkdtemp(prefix="noisewise-browser-")
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()
    process = subprocess.Popen(
        [
            "bash",  # of a shell it needs numbers of files above 9
            "-c",
            f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}',
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
        ],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        page = Page(ours_out, ours_in)
        page.start()
        yield page
        page.call("Page.close")
    finally:
        os.close(ours_out)
        os.close(ours_in)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        shutil.rmtree(profile, ignore_errors=True)
