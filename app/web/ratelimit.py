"""How much one client may ask for."""

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.requests import Request

from app.errors import TooManyRequests
from app.settings import Settings


class RateLimit:
    """Counts requests that compute something, by client address, in memory."""

    def __init__(self, settings: Settings) -> None:
        self._limit = parse(settings.rate_limit) if settings.rate_limit else None
        self._trust_proxy = settings.trust_proxy
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def check(self, request: Request) -> None:
        """Counts this request.

        Raises:
            TooManyRequests: the client has used up its share.
        """
        if self._limit is not None and not self._limiter.hit(self._limit, self._address(request)):
            raise TooManyRequests(
                f"This address has sent more than {self._limit}. Wait a moment and try again.",
                limit=str(self._limit),
            )

    def _address(self, request: Request) -> str:
        # The last entry is the one that the operator's own proxy has added; earlier ones can be made up by the client.
        forwarded = request.headers.get("x-forwarded-for", "").split(",")[-1].strip() if self._trust_proxy else ""
        return forwarded or (request.client.host if request.client else "unknown")
