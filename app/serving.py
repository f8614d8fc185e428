"""Running the server until it is told to stop: its address on the terminal, a clear word when the port is taken."""

import logging
import socket

import uvicorn

from app.errors import InvalidInput
from app.main import create_app
from app.settings import Settings

log = logging.getLogger("headwater")


class _Server(uvicorn.Server):
    """uvicorn's server, which prints the address once it listens."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"\n  Headwater is at {self._address}   (Ctrl+C stops it)\n", flush=True)


def run_server(settings: Settings) -> None:
    """Serves until a signal ends the process.

    Raises:
        InvalidInput: the port is taken or the address cannot be listened on.
        ModelUnavailable: the catalogue of the settings cannot be read.
    """
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    listening = _listen(settings.host, settings.port)
    with listening:
        config = uvicorn.Config(
            create_app(settings),
            log_level="warning" if settings.log_level == "info" else settings.log_level,
            proxy_headers=settings.trust_proxy,
            server_header=False,
            # Event streams of open pages end with the server, not before it.
            timeout_graceful_shutdown=5,
        )
        _Server(config, address(settings.host, settings.port)).run(sockets=[listening])


def address(host: str, port: int) -> str:
    """What to type into a browser on this machine. An address that means every interface is shown as what it is."""
    if host in ("0.0.0.0", "::"):
        return f"http://localhost:{port}, and on every network of this machine"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise InvalidInput(
            f"Cannot listen on {host}, port {port}: {reason}. "
            "Choose another one with HEADWATER_PORT, or: headwater serve --port NUMBER",
            port=port,
        ) from error
    return listening
