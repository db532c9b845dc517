"""A mail server that this project did not write: aiosmtpd, with STARTTLS and a login that it insists on.

`smtp.py FOLDER` writes its root certificate to FOLDER/ca.pem and each mail as one line of JSON to FOLDER/mail.jsonl,
and prints its port. Mails to `nobody@` are refused for good, to `busy@` for now.
"""

import asyncio
import email
import email.policy
import json
import pathlib
import ssl
import sys

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

FOLDER = pathlib.Path(sys.argv[1])


class Box:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("nobody@"):
            return f"550 5.1.1 <{address}> unknown"
        if address.startswith("busy@"):
            return f"451 4.3.0 <{address}> later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        line = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "subject": mail["subject"],
            "type": mail.get_content_type(),
            "date": mail["date"],
            "body": mail.get_content(),
            "tls": session.ssl is not None,
        }
        with (FOLDER / "mail.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")
        return "250 taken"


def login(server, session, envelope, mechanism, data):
    is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (b"recon", b"correct horse")
    # A refusal that is not `handled` is answered 535.
    return AuthResult(success=is_right, handled=False)


async def main():
    authority = trustme.CA()
    authority.cert_pem.write_to_path(FOLDER / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    options = dict(require_starttls=True, tls_context=context, authenticator=login, auth_required=True)
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Box(), **options), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
