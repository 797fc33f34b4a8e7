"""The live view: the page, served to this machine alone, and a connection over which it drives on.

Only 127.0.0.1 is listened to. The address holds a token, without which neither the page nor the connection is given; a
page of another origin is refused, as is a name that another host gave this machine. A message is small and one of
`sentinel_rl.viewer.messages`; whatever else comes is answered with an error and does nothing. Every page has a session
of its own, which a connection that was lost finds again.
"""

import dataclasses
import json
import secrets
import socket
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from sentinel_rl._version import __version__
from sentinel_rl.errors import SentinelError, UsageError
from sentinel_rl.explanation import WORDS
from sentinel_rl.viewer.drive import MOST_LINES, Drive
from sentinel_rl.viewer.messages import (
    LARGEST_MESSAGE,
    Branch,
    Capture,
    Change,
    Go,
    Hello,
    Message,
    read_message,
)
from sentinel_rl.viewer.page import LIVE_SCRIPTS, document, packed
from sentinel_rl.viewer.scene import scene_text
from sentinel_rl.viewer.trial import capture

if TYPE_CHECKING:
    from starlette.applications import Starlette

INSTALL = 'pip install "sentinel-rl[watch]"'
HOST = "127.0.0.1"
MOST_SESSIONS = 8
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Session:
    """The lines of one page, and the answers to its messages.

    Args:
        drive: which it may change.
    """

    def __init__(self, drive: Drive):
        self.name, self._drive, self._busy = secrets.token_urlsafe(16), drive, threading.Lock()

    def answer(self, message: Message) -> list[dict[str, Any]]:
        """Do what a message asks for, and tell what the page is to show.

        Raises:
            UsageError: for what cannot be done.
        """
        with self._busy:
            return self._answer(message)

    def _answer(self, message: Message) -> list[dict[str, Any]]:
        drive = self._drive
        match message:
            case Hello():
                if not drive.lines[0].rides[0].steps:
                    drive.drive(0)
                return [
                    {"session": self.name},
                    *(part for line in range(len(drive.lines)) for part in self._whole(line)),
                ]
            case Go(line, count):
                new = drive.drive(line, count)
                return [self._update(line, driver, decisions) for driver, decisions in new.items()] or self._ends(line)
            case Branch(line, at, action):
                return self._whole(drive.branch(line, at, action))
            case Change(line, at, edit):
                return self._whole(drive.edit(line, at, edit))
            case Capture(line, at, name):
                words = f"Decision {at + 1}: {drive.line(line).words}."
                scene = capture(drive.state(line, at), drive.env, name, words)
                return [{"scene": scene_text(scene), "name": scene.name, "wanted": scene.wanted}]

    def _whole(self, line: int) -> list[dict[str, Any]]:
        rides = self._drive.line(line).rides
        return [self._update(line, driver, range(len(ride.steps))) for driver, ride in enumerate(rides)]

    def _ends(self, line: int) -> list[dict[str, Any]]:
        return [{"ended": line}]

    def _update(self, line: int, driver: int, decisions: range) -> dict[str, Any]:
        """Decisions of a driver, for the page."""
        drive, ride = self._drive, self._drive.line(line).rides[driver]
        arrays = drive.arrays(line, driver, decisions)
        told = {
            "line": line,
            "driver": driver,
            "fork": drive.line(line).fork,
            "forced": drive.line(line).forced,
            "words": drive.line(line).words,
            "first": decisions.start,
            "count": len(decisions),
            "over": ride.over or len(ride.steps) >= drive.capacity,
            "arrays": {name: packed(array) for name, array in arrays.items()},
            "sentences": [drive.sentence(line, driver, t) for t in decisions],
        }
        realised = drive.realised(line) if driver == 0 else None
        return told if realised is None else {**told, "realised": packed(realised)}


class Live:
    """What is served: a page per tab, each with a session of its own.

    Args:
        make: makes the drive of a session.
        port: that is listened to.
        token: of the address; a fresh one when None.
    """

    def __init__(self, make: Callable[[], Drive], port: int, token: str | None = None):
        self.token, self.port, self._make = token or secrets.token_urlsafe(24), port, make
        self._opening = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._first: Drive | None = make()
        self._about = self._described(self._first)

    @property
    def address(self) -> str:
        """Where to look."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of pages that may connect."""
        return f"http://{HOST}:{self.port}", f"http://localhost:{self.port}"

    def page(self) -> str:
        """The page."""
        title = f"Watch it decide: {', '.join(about['agent'] for about in self._about['drivers'])}"
        places = " ".join(f"ws{origin.removeprefix('http')}" for origin in self.origins)
        return document(title, self._about, LIVE_SCRIPTS, f"'self' {places}")

    def session(self, name: str | None) -> Session:
        """The session of a name, or a new one; the one that was used longest ago makes room for it."""
        with self._opening:
            if name is not None and name in self._sessions:
                self._sessions.move_to_end(name)
                return self._sessions[name]
            drive, self._first = self._first or self._make(), None
            made = Session(drive)
            self._sessions[made.name] = made
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
            return made

    def allows(self, token: str | None) -> bool:
        """Whether a token is ours; how much of it is right cannot be told from the time this takes."""
        return secrets.compare_digest((token or "").encode("utf-8", "replace"), self.token.encode())

    def is_here(self, headers: Mapping[str, str]) -> bool:
        """Whether a request names this machine, and not a host that points to it."""
        return headers.get("host", "") in (f"{HOST}:{self.port}", f"localhost:{self.port}")

    def _described(self, drive: Drive) -> dict[str, Any]:
        """What the page knows before it connects."""
        drive.drive(0)
        shapes = [
            {
                name: [kind, list(array.shape[1:])]
                for name, array in drive.arrays(0, driver, range(1)).items()
                for kind in ["uint8" if array.dtype == np.bool_ else array.dtype.name]
            }
            for driver in range(len(drive.drivers))
        ]
        return {
            "live": {
                "lines": MOST_LINES,
                "capacity": drive.capacity,
                "shapes": shapes,
                "atoms": None if drive.atoms is None else packed(drive.atoms),
            },
            "drivers": [dataclasses.asdict(about) for about in drive.abouts],
            "words": dict(WORDS),
            "made": f"Driven live by sentinel-rl {__version__}.",
        }


def make_app(live: Live) -> "Starlette":
    """The application of a live view, for any ASGI server."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

    async def page(request: Request) -> Response:
        if not live.is_here(request.headers):
            return PlainTextResponse("This page is for this machine alone.\n", 421, _HEADERS)
        if not live.allows(request.query_params.get("token")):
            return PlainTextResponse("Give the address as it was printed, with its token.\n", 403, _HEADERS)
        return HTMLResponse(live.page(), headers=_HEADERS)

    async def talk(socket: WebSocket) -> None:
        here = live.is_here(socket.headers) and socket.headers.get("origin") in live.origins
        if not here or not live.allows(socket.query_params.get("token")):
            await socket.close(1008)
            return
        await socket.accept()
        session: Session | None = None
        try:
            while True:
                received = await socket.receive()
                if received["type"] == "websocket.disconnect":
                    return
                content = received.get("text") or received.get("bytes") or ""
                try:
                    message = read_message(content)
                    if isinstance(message, Hello):
                        session = await run_in_threadpool(live.session, message.session)
                    if session is None:
                        raise UsageError("say hello first")
                    answers = await run_in_threadpool(session.answer, message)
                except (ValueError, SentinelError) as error:
                    answers = [{"error": str(error)[:300]}]
                for answer in answers:
                    await socket.send_text(json.dumps(answer, allow_nan=False))
        except WebSocketDisconnect:
            return

    return Starlette(routes=[Route("/", page), WebSocketRoute("/live", talk)])


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A socket of this machine alone; any free port for 0.

    Raises:
        UsageError: when the port is taken.
    """
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}. Choose another one, or 0") from None
        yield made


def require_server() -> None:
    """Raise `UsageError` unless the extra is installed."""
    try:
        import starlette
        import uvicorn
        import websockets
    except ImportError:
        raise UsageError(f"the live view needs the extra watch: {INSTALL}. Or write a page: --html FILE") from None
    del starlette, uvicorn, websockets


def serve(
    make: Callable[[], Drive], port: int = 0, open_browser: bool = True, tell: Callable[[str], None] = print
) -> None:
    """Serve the live view until it is interrupted.

    Args:
        make: makes the drive of a session.
        port: to listen to; any free one for 0.
        open_browser: open the page in the browser.
        tell: is given the address once it can be opened.

    Raises:
        UsageError: when the extra is not installed, or the port is taken.
    """
    require_server()
    with listening(port) as place:
        live = Live(make, place.getsockname()[1])
        server = make_server(live)
        place.listen()  # who is told the address may come before the server does: the connection waits
        tell(live.address)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [live.address]).start()
        with suppress(KeyboardInterrupt):
            server.run([place])


def make_server(live: Live) -> Any:
    """The server of a live view, to be run with a socket: large messages are refused before they are read."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            make_app(live),
            host=HOST,
            port=live.port,
            log_level="critical",
            ws="websockets-sansio",
            ws_max_size=4 * LARGEST_MESSAGE,
            ws_max_queue=16,
            limit_concurrency=32,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )
