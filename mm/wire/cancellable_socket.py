"""A socket that one thread uses and another can shut at any moment, so that a wait for a server ends at once.

The turn's thread connects, sends and reads, and waits as long as each of these takes: by default there is no
time-out, because a model on a CPU reads a long prompt for minutes. The thread that delivers a cancel only
shuts the socket down; the waiting thread wakes within a millisecond, and the server sees the connection drop.
To make this hold in every state:

- The socket is published before it connects, and connecting is a poll, because some systems refuse to shut a
  socket that is not connected yet.
- It is shut by the base class's method: `SSLSocket.shutdown` takes the TLS layer away from under the reader.
  Closing the response or the socket instead wakes nobody, and blocks the thread that cancels as well.
- The descriptor is kept open until it is no longer published: http.client closes sockets by itself, and a
  number that is free is soon another connection's.
- What the reader gets after a shutdown depends on the state and the Python: an end of file, a reset, an
  incomplete read. So the Cancel is asked first, whatever came.
"""

from __future__ import annotations

import errno
import functools
import os
import select
import socket
import threading
import time

from mm.cancel import Cancel, Cancelled

# A host that does not answer is given up after this long, each of its addresses. It has nothing to do with
# the model.
CONNECT_SECONDS = 20

# How often a connect looks at the Cancel, in case shutting the socket does not wake it.
_POLL_SECONDS = 0.05

_CONNECTING = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY,
               getattr(errno, "WSAEWOULDBLOCK", errno.EINPROGRESS)}


class CancellableSocket:
    """The socket of one exchange, shared between the thread that uses it and the one that cancels.

    `seconds` without a byte end a wait with an OSError; 0: none does.
    """

    def __init__(self, cancel: Cancel, seconds: float):
        self._lock = threading.Lock()
        self._cancel = cancel
        self.seconds = seconds
        self._socket = None
        self._hold = None
        self._shut = False

    def shut(self) -> None:
        """Wakes whoever waits on the socket; does not block."""
        with self._lock:
            self._shut = True
            if self._socket is not None:
                try:
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    pass  # not connected yet, or not any more

    def close(self) -> None:
        """Gives the descriptor back, after nobody can shut it any more."""
        with self._lock:
            published, self._socket = self._socket, None
            hold, self._hold = self._hold, None
        if published is not None:
            hold.close()
            published.close()

    def set_timeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def connect(self, host: str, port: int) -> socket.socket:
        """Tries the host's addresses in turn: a `localhost` is often ::1 first, where no model server
        listens."""
        failure = OSError(errno.EADDRNOTAVAIL, "no address")
        for family, kind, protocol, _, address in look_up(host, port, self._cancel):
            try:
                sock = socket.socket(family, kind, protocol)
                self.publish(sock)
                self._connect(sock, address)
                sock.settimeout(self.seconds or None)
                return sock
            except OSError as error:
                failure = error
                self.close()
        raise failure

    def secure(self, connected: socket.socket, host: str):
        """The connected socket with TLS, once the host has shown that it is the one."""
        # Published before the handshake: wrapping moves the descriptor to the new socket, and a server that stalls
        # in the handshake is one more state to cancel in.
        secured = tls_context().wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        self.publish(secured)
        # What does not speak TLS may wait for a line that never comes.
        secured.settimeout(min(CONNECT_SECONDS, self.seconds or CONNECT_SECONDS))
        try:
            secured.do_handshake()
        except socket.timeout:
            if secured.gettimeout() < CONNECT_SECONDS:
                raise
            raise ConnectTimeout() from None
        secured.settimeout(self.seconds or None)
        return secured

    def send(self, data: bytes) -> None:
        """Sends all, or as much as the server takes before it answers.

        A server that refuses a long request answers without reading it; once its window is full nothing more
        can be sent, its answer lies there, and a plain `sendall` would wait for minutes.
        """
        sock = self._socket
        rest = memoryview(data)
        sock.setblocking(False)
        try:
            while rest:
                try:
                    rest = rest[sock.send(rest):]
                except BlockingIOError:
                    if not _can_send(sock, self.seconds or None):
                        return
        finally:
            sock.settimeout(self.seconds or None)

    def publish(self, sock: socket.socket) -> None:
        """From here on a cancel shuts this socket."""
        with self._lock:
            if self._shut:
                sock.close()
                raise Cancelled()
            # While this is open, no close() frees the descriptor.
            self._hold = sock.makefile("rb", buffering=0)
            self._socket = sock

    def _connect(self, sock: socket.socket, address) -> None:
        sock.setblocking(False)
        code = sock.connect_ex(address)
        end = time.monotonic() + CONNECT_SECONDS
        while code in _CONNECTING:
            if _has_settled(sock, _POLL_SECONDS):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            elif time.monotonic() > end:
                raise ConnectTimeout()
            else:
                self._cancel.check()
        self._cancel.check()  # one that came before the socket could be shut; from here on shutting it works
        if code:
            raise OSError(code, os.strerror(code))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # For a host that loses power during a long prompt.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)


@functools.lru_cache(maxsize=1)
def tls_context():
    import ssl  # megabytes that nobody needs who speaks to a server on this machine

    return ssl.create_default_context()  # reads the system's certificates, and SSL_CERT_FILE; takes up to 28 ms


def look_up(host: str, port: int, cancel: Cancel, resolve=socket.getaddrinfo) -> list:
    """The addresses of a host, as socket.getaddrinfo answers them. Raises OSError and Cancelled, whatever the
    resolver does."""
    # As bytes, because Python loads the tables of Unicode's domain names for any text.
    numeric = host.encode("ascii") if host.isascii() else host
    try:
        return socket.getaddrinfo(numeric, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        pass  # a name: asking for it cannot be interrupted, so another thread asks
    answers, done = [], threading.Event()

    def ask():
        try:
            answers.append(resolve(host, port, type=socket.SOCK_STREAM))
        except UnicodeError:
            answers.append(socket.gaierror(socket.EAI_NONAME, "no such name"))
        except OSError as error:
            answers.append(error)
        done.set()

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    cancel.wait(done)
    if isinstance(answers[0], OSError):
        raise answers[0]
    return answers[0]


class ConnectTimeout(OSError):
    """Nothing came back, not even a refusal."""


def _has_settled(sock: socket.socket, seconds: float) -> bool:
    """Waits until a connect has succeeded or failed."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))
    # Windows reports a refusal in the third.
    _, writable, failed = select.select((), (sock,), (sock,), seconds)
    return bool(writable or failed)


def _can_send(sock: socket.socket, seconds: float | None) -> bool:
    """Waits until more can be sent, or fails to be; False when instead there is something to be read."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN | select.POLLOUT)
        events = poll.poll(seconds and seconds * 1000)
        if events:
            return events[0][1] != select.POLLIN
    else:
        readable, writable, failed = select.select((sock,), (sock,), (sock,), seconds)
        if readable or writable or failed:
            return bool(writable or failed)
    raise socket.timeout("timed out")
