"""The process of `elmo serve`: a socket, a token, and a stop that finishes what it accepted."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from elmo_framework import console
from elmo_framework.api.pretrained import load_encoder
from elmo_framework.bilm.files.published import PACKAGED, PUBLISHED
from elmo_framework.data.tokenizer import build_tokenizer
from elmo_framework.errors import DataError, RunError, allowed, with_hint
from elmo_framework.experiment.load_run import bilm_of, load
from elmo_framework.io.extras import import_extra
from elmo_framework.io.files import path_hint
from elmo_framework.io.remote import RemotePath, as_path
from elmo_framework.layers.encoder_files import is_encoder, open_encoder
from elmo_framework.serve.app import Server
from elmo_framework.serve.job import TOKEN_VARIABLE, ServingJob
from elmo_framework.serve.neighbors import NeighborService, check_corpus
from elmo_framework.serve.served_encoder import ServedEncoder
from elmo_framework.serve.served_run import ServedRun, model_name, require_distinct

_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")
_BACKLOG = 2_048
_MAX_PORT = 65_535

_SECONDS_TO_END = 1.0
"""Time for the worker to end, when all requests are answered or given up."""


def serve(job: ServingJob, *, announce: Callable[[str], None]) -> None:
    """Load models and answer requests until SIGTERM or Ctrl-C; finish those that were accepted.

    Args:
        job: what is served.
        announce: is given the address once it answers.

    Raises:
        RunError: a run cannot be loaded or predicts nothing, two models have the same name, an
            encoder does not have the precision, the address cannot be taken or needs a token, or a
            library is missing.
        DataError: an encoder, the corpus or the token cannot be read.
    """
    for library in ("fastapi", "prometheus_client", "uvicorn"):  # before runs are loaded
        import_extra(library, "serve")
    token = read_token(job.token_file)
    require_distinct(job.models)
    with listening_socket(job.host, job.port) as listener:
        hosts = allowed_hosts(job.host, listener, token)
        console.info(f"loading {', '.join(job.models)}")
        of_encoders = [place for place in job.models if is_encoder(place)]
        encoders = [served_encoder(place, job) for place in of_encoders]
        runs = [served_run(place, job) for place in job.models if place not in of_encoders]
        neighbors = neighbor_services(runs, encoders, job)
        server = Server(runs, encoders, neighbors, job=job, token=token, hosts=hosts)
        listener.listen(_BACKLOG)
        names = ", ".join([*(run.name for run in runs), *(each.name for each in encoders)])
        announce(f"serving {names} at http://{_shown(listener)}")
        # uvicorn raises the signal again after the stop; for a server it is the regular end.
        with suppress(KeyboardInterrupt):
            http_server(server).run(sockets=[listener])
        server.worker.close(timeout=_SECONDS_TO_END)
    console.info("stopped")


def http_server(server: Server) -> Any:
    """Return uvicorn's server of an application."""
    uvicorn = import_extra("uvicorn", "serve")
    config = uvicorn.Config(
        server.application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        loop="asyncio",
        http=_protocol(server.job.timeout),
        ws="none",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=server.job.stop_timeout,
    )
    return uvicorn.Server(config)


def served_run(place: str, job: ServingJob) -> ServedRun:
    """Load a run.

    Raises:
        RunError: as of `load`; or it predicts nothing.
    """
    path = as_path(place)
    if not (isinstance(path, RemotePath) or path.exists()):
        names = f"{allowed(place, [*PACKAGED, *PUBLISHED])}{path_hint(path)}"
        raise RunError(f"{place}: neither a folder, an archive nor the name of an encoder; {names}")
    run = load(place, device=job.device, packages=job.packages, bilm=job.run_bilms)
    run.head()
    served = ServedRun(model_name(place), run, max_words=job.max_words, batch_size=job.batch_size)
    served.warm_up()
    return served


def served_encoder(place: str, job: ServingJob) -> ServedEncoder:
    """Load an encoder.

    Raises:
        RunError: it does not have the precision, or there is no such tokenizer.
        DataError: its files are damaged.
    """
    tokenizer = build_tokenizer(job.tokenizer)
    try:
        encoder = load_encoder(place, device=job.device, precision=job.precision)
    except ValueError as error:
        raise RunError(f"{place}: {error}") from error
    name, limits = model_name(place), (job.max_words, job.max_numbers)
    served = ServedEncoder(name, encoder, tokenizer, *limits)
    served.warm_up()
    return served


def neighbor_services(
    runs: Sequence[ServedRun], encoders: Sequence[ServedEncoder], job: ServingJob
) -> dict[str, NeighborService]:
    """Return what finds neighbors in the corpus, for encoders and runs that read a frozen biLM.

    Raises:
        RunError: there is a corpus, but no encoder, and none of the runs reads such a biLM.
        DataError: the corpus cannot be read.
    """
    services: dict[str, NeighborService] = {}
    errors: list[RunError] = []
    if job.corpus is None:
        return services
    check_corpus(job.corpus)
    for encoder in encoders:
        source = encoder.encoder.source
        services[encoder.name] = NeighborService(source, job.corpus, job.device, job.max_words)
    for each in runs:
        assert each.run.run is not None  # it was loaded
        try:
            bilm = bilm_of(each.run.run, packages=job.packages, bilms=job.run_bilms)
        except RunError as error:
            errors.append(error)
        else:
            source = open_encoder(bilm)
            services[each.name] = NeighborService(source, job.corpus, job.device, job.max_words)
    if errors and not services:
        raise errors[0]
    return services


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not accept yet.

    Raises:
        RunError: the host is unknown, or the port is taken, not permitted or out of range.
    """
    # getaddrinfo takes a number that is too large modulo 65,536.
    if not 0 <= port <= _MAX_PORT:
        raise RunError(f"--port {port}: expected a number from 0 to {_MAX_PORT}")
    with ExitStack() as on_error:
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = on_error.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections inherit it. asyncio sets it only for sockets that name their
            # protocol; without it, a second request on a connection waits 40 ms.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.bind(address)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(f"--host {host} --port {port}: {reason}") from error
        on_error.pop_all()
    return listener


def read_token(path: Path | None) -> str | None:
    """Return the token of a file, or of the environment; None if neither is given.

    Raises:
        DataError: the file cannot be read.
        RunError: the token is empty, or has characters that a header does not.
    """
    if path is not None:
        try:
            token, source = path.read_text(encoding="utf-8").strip(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            message = f"the token cannot be read: {getattr(error, 'strerror', None) or error}"
            raise DataError(with_hint(message, path_hint(path)), path=path) from error
    elif TOKEN_VARIABLE in os.environ:
        token, source = os.environ[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE
    else:
        return None
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise RunError(f"{source}: a token is one or more visible ASCII characters, without spaces")
    return token


def allowed_hosts(host: str, listener: socket.socket, token: str | None) -> Collection[str] | None:
    """Return the names by which a server without a token may be called; None for any.

    Raises:
        RunError: other machines can reach the socket, and there is no token.
    """
    if token is not None:
        return None
    if not ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback:
        raise RunError(
            f"--host {host}: other machines can reach it; set a token with --token-file or the "
            f"variable {TOKEN_VARIABLE}"
        )
    return {*_LOOPBACK_HOSTS, host.lower()}


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _protocol(timeout: float) -> Any:
    """Return uvicorn's protocol with a time for the headers of each request."""
    base: Any = import_extra("uvicorn.protocols.http.h11_impl", "serve").H11Protocol
    idle = import_extra("h11", "serve").IDLE

    class Protocol(base):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._headers_due = self.loop.call_later(timeout, transport.close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # The first byte ends uvicorn's time between two requests.
            if self.conn.their_state is not idle:
                self._headers_due.cancel()
            elif self._headers_due.cancelled():
                self._headers_due = self.loop.call_later(timeout, self.transport.close)

        def connection_lost(self, error: Exception | None) -> None:
            self._headers_due.cancel()
            super().connection_lost(error)

    return Protocol
