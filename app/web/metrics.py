"""Counters for Prometheus, one registry for each application."""

import time

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.lm.runner import Runner

METRICS_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """What has been asked and answered, and what waits."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "headwater_requests",
            "Answers by route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "headwater_request_seconds",
            "Time to the first byte.",
            ["route"],
            registry=self.registry,
        )
        self.waiting = Gauge(
            "headwater_queue_length",
            "Jobs that wait.",
            ["model"],
            registry=self.registry,
        )
        self.traces = Gauge("headwater_trace_bytes", "Memory of recorded runs.", registry=self.registry)

    def render(self, runner: Runner) -> bytes:
        """The text that Prometheus reads."""
        for model, waiting in runner.waiting().items():
            self.waiting.labels(model).set(waiting)
        self.traces.set(runner.traces.size_bytes)
        return generate_latest(self.registry)


class CountRequests:
    """Middleware that counts answers. Addresses count by route, so that made-up ones take no memory."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the application and counts its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requests.labels(method, route, message["status"]).inc()
                self._metrics.seconds.labels(route).observe(time.perf_counter() - start)
            await send(message)

        await self._app(scope, receive, watch)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
