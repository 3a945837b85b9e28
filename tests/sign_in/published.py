"""A small server on this machine that publishes documents, over http or over https with a certificate of its own."""

import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Published:
    """What is published by path: a body, or a status, headers and a body. `asked` are the paths that were asked for.

    A path in `held` is not answered before the server ends. What comes after a `?` does not matter.
    """

    base: str
    documents: dict[str, bytes | tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)


@contextmanager
def publishing(certificate: Path | None = None, host: str = "127.0.0.1") -> Iterator[Published]:
    """Publish until the block ends; over https with `certificate`, a file with its key."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            published.asked.append(self.path)
            if self.path in published.held:
                ended.wait()
                return
            found = published.documents.get(self.path.partition("?")[0], (404, {}, b"no"))
            status, headers, body = found if isinstance(found, tuple) else (200, {}, found)
            self.send_response(status)
            sent = {"content-type": "application/json", "content-length": str(len(body))} | headers
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the library
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        published = Published(f"{scheme}://{host}:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            yield published
        finally:
            ended.set()
            server.shutdown()
            serving.join()


def certificate_for(host: str, folder: Path) -> Path:
    """A file with a new certificate for a host, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{host}.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
