"""A shop's webhook endpoint, and the only writer of its books before recon comes.

Answers 500 to every third delivery and keeps nothing of it. Of the others it checks the signature with the
official SDK, keeps the bytes as received, and books the effect and the status in the same transaction, once per
effect key, whichever event brings it. Each delivery leaves one line in the journal, which is what the test
expects recon to know.

`endpoint.py STORE JOURNAL SECRET` prints its port.
"""

import hashlib
import json
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import stripe

STORE, JOURNAL, SECRET = sys.argv[1:]
SCOPE = ("stripe", "", "test")


def rows_of(event):
    """The charge that an event says was paid, and the payment's status, where it says any."""
    kind, thing = event["type"], event["data"]["object"]
    if kind == "payment_intent.succeeded":
        return thing["latest_charge"], thing["id"], "paid"
    if kind == "invoice.payment_succeeded":
        return thing["charge"], thing["payment_intent"], "paid"
    if kind == "payment_intent.payment_failed":
        return None, thing["id"], "failed"
    return None, None, None


def store(body, event):
    """Keeps the event and what it means; the effect key lets a second event of one charge pass by."""
    now_us, occurred_us = time.time_ns() // 1_000, event["created"] * 1_000_000
    charge, intent, status = rows_of(event)
    books = sqlite3.connect(STORE, timeout=30, isolation_level=None)
    books.execute("begin immediate")
    books.execute(
        "insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256,"
        " received_at_us, last_delivery_at_us, status) values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'applied')",
        (*SCOPE, event["id"], event["type"], body, hashlib.sha256(body).hexdigest(), now_us, now_us),
    )
    if charge:
        books.execute(
            "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind,"
            " amount_minor, currency, occurred_at_us, applied_at_us, event_id)"
            " values (?, ?, ?, ?, ?, ?, 'credit', ?, ?, ?, ?, ?) on conflict do nothing",
            ("le_" + charge["id"], *SCOPE, "credit:" + charge["id"], charge["id"], charge["amount"],
             charge["currency"], occurred_us, now_us, event["id"]),
        )
    if status:
        books.execute(
            "insert into object_state (provider, account, mode, object_id, status, provider_time_us,"
            " updated_at_us) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
            (*SCOPE, intent, status, occurred_us, now_us),
        )
    books.execute("commit")
    books.close()


class Endpoint(BaseHTTPRequestHandler):
    deliveries = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Raises, and so answers nothing good, when the signature is not right.
        stripe.Webhook.construct_event(body, self.headers["Stripe-Signature"], SECRET)
        event = json.loads(body)
        Endpoint.deliveries += 1
        is_kept = Endpoint.deliveries % 3 != 0
        if is_kept:
            store(body, event)
        charge = rows_of(event)[0] or {"id": "", "amount": 0, "currency": ""}
        line = {"event": event["id"], "type": event["type"], "kept": is_kept}
        line.update(charge=charge["id"], amount=charge["amount"], currency=charge["currency"])
        with open(JOURNAL, "a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")
        self.send_response(200 if is_kept else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(HTTPServer):
    # The provider opens a connection for each delivery, all at once.
    request_queue_size = 512


server = Server(("127.0.0.1", 0), Endpoint)
print(server.server_port, flush=True)
server.serve_forever()
