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

_READ, _WRITE = 1, 4  # as poll() has them
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
        """Tries the host's addresses in turn: a `localhost` is often ::1 first, where no server listens."""
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
                    events = _wait(sock, self.seconds or None, _READ | _WRITE)
                    if not events:
                        raise socket.timeout("timed out") from None
                    if events == _READ:
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
            if _wait(sock, _POLL_SECONDS):
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


def _wait(sock: socket.socket, seconds: float | None, events: int = _WRITE) -> int:
    """Waits until the socket can be written or read, or has failed; 0 if nothing came in so many seconds."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, events)
        found = poll.poll(seconds and seconds * 1000)
        return found[0][1] if found else 0
    # Windows reports a refusal in the third.
    readable, writable, failed = select.select((sock,) if events & _READ else (), (sock,), (sock,), seconds)
    return (_READ if readable else 0) | (_WRITE if writable or failed else 0)
