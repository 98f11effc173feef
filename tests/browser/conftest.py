"""A headless Chromium, driven over a pipe by the DevTools protocol: nothing else is needed."""

import base64
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 20.0  # seconds for any one answer
OPTIONS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run
--disable-background-networking --disable-component-update --disable-extensions
--remote-debugging-pipe"""

# --remote-debugging-pipe reads commands from descriptor 3 and answers on 4
LAUNCH = """
import fcntl, os, sys
answers = fcntl.fcntl(int(sys.argv[2]), fcntl.F_DUPFD, 10)
os.dup2(int(sys.argv[1]), 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One process of Chromium; pages are opened in it one after the other."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCH, str(ours[0]), str(theirs[1])),
                *(program, *OPTIONS.split(), f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(ours[0], theirs[1]),
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._commands = os.fdopen(ours[1], "wb", buffering=0)
        self._answers = os.fdopen(theirs[0], "rb")
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        rest = b""
        while chunk := self._answers.read1(1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in messages:
                self._inbox.put(json.loads(message))
        self._inbox.put(None)

    def _next(self) -> dict[str, Any]:
        try:
            message = self._inbox.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"chromium did not answer within {PATIENCE} s") from None
        if message is None:
            raise ConnectionError("chromium ended")
        return message

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if "id" not in answer:
                self.events.append(answer)
            elif answer["id"] == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def close(self) -> None:
        """End the process; it is ours alone."""
        try:
            self.ask("Browser.close")
        except (OSError, TimeoutError):
            self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._commands.close()
        self._answers.close()


class PageInBrowser:
    """A loaded page: run expressions in it, press keys, and see what it asked for and said."""

    def __init__(self, browser, path, width=1280, height=900, dark=False) -> None:
        self.browser = browser
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        # a narrow window is a phone
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=path.as_uri())
        loaded = "new Promise((go) => addEventListener('load', go))"
        self.run(f"document.readyState === 'complete' || {loaded}")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **params)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", expression=script, **how)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def until(self, script: str) -> bool:
        """Whether an expression becomes true: what follows an event may come a moment later."""
        return bool(
            self.run(
                "new Promise((go) => { const start = performance.now(); const look = () => {"
                f"if ({script}) go(true); else if (performance.now() - start > 10000) go(false);"
                "else setTimeout(look, 20); }; look(); })"
            )
        )

    def press(self, key: str, code: int) -> None:
        """Press and release a key, as a person would."""
        text = {"text": "\r"} if key == "Enter" else {}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, selector: str) -> None:
        """A real click with the mouse in the middle of an element."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];"
            "})()"
        )
        where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        self.ask("Input.dispatchMouseEvent", type="mousePressed", **where)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", **where)

    def _events(self) -> list[dict[str, Any]]:
        self.run("0")  # what came before this answer has been read
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def requests(self) -> list[str]:
        """Every address that the page asked for, its own first."""
        sent = [each for each in self._events() if each["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """Errors and warnings in the console, and exceptions."""
        found = []
        for event in self._events():
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] != "info":
                found.append(params["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] != "log":
                found.append(str(params["args"]))
        return found

    def pdf(self) -> bytes:
        """The page as printed, in the size that its style asks for."""
        printed = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(printed["data"])


@pytest.fixture(scope="session")
def open_page(tmp_path_factory) -> Iterator[Callable[..., PageInBrowser]]:
    """Opens a file in headless Chromium; skips where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs Chromium: make browser, or apt-get install chromium")
    browser = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield partial(PageInBrowser, browser)
    browser.close()
