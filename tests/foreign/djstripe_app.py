"""A small application around dj-stripe: its migrations, and its own webhook view behind a server.

    djstripe_app.py migrate '{"database": {…}}'
    djstripe_app.py serve   '{"database": {…}, "api": "http://…", "key": "…", "secret": "…", "broken": "FILE"}'

`serve` prints its port. Objects come from the API at `api`, an emulator of Stripe that has no accounts, customers or payment
methods; a door before it answers for those, for payment methods as Stripe does where one was deleted. While FILE exists, the API is broken for the
object that stands in it.
"""

import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings

UUID = "11111111-2222-3333-4444-555555555555"
ACCOUNT = {"id": "acct_1Example00000000", "object": "account", "type": "standard", "email": "", "metadata": {}}
CUSTOMER = {"object": "customer", "livemode": True, "created": 1767225600, "email": "", "metadata": {}, "balance": 0}

mode, given = sys.argv[1], json.loads(sys.argv[2])
settings.configure(
    SECRET_KEY="not-a-secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="djstripe.urls",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "djstripe"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **given["database"]}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    LOGGING_CONFIG=None,
    SILENCED_SYSTEM_CHECKS=["djstripe.C001", "djstripe.I001", "djstripe.I002"],
    DJSTRIPE_FOREIGN_KEY_TO_FIELD="id",
    STRIPE_LIVE_MODE=True,
    STRIPE_LIVE_SECRET_KEY=given.get("key", ""),
)
django.setup()


class Door(BaseHTTPRequestHandler):
    """What the emulator does not have, and everything else from there."""

    def do_GET(self):
        path = self.path.split("?")[0]
        broken = Path(given["broken"])
        if broken.exists() and broken.read_text() in path:
            return self.answer(500, {"error": {"type": "api_error", "message": "broken on purpose"}})
        if path == "/v1/account":
            return self.answer(200, ACCOUNT)
        if path.startswith("/v1/customers/"):
            return self.answer(200, {**CUSTOMER, "id": path.split("/")[-1]})
        if path.startswith("/v1/payment_methods/"):
            missing = {"type": "invalid_request_error", "code": "resource_missing", "param": "id"}
            return self.answer(404, {"error": {**missing, "message": f"No such object: {path}"}})
        # The emulator can show balance transactions whole, and nothing else that dj-stripe asks for.
        asked = path + ("?expand[]=balance_transaction" if "balance_transaction" in self.path.partition("?")[2] else "")
        request = urllib.request.Request(given["api"] + asked)
        request.add_header("Authorization", self.headers["Authorization"])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as response:
                self.answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            self.answer(error.code, json.load(error))

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def migrate():
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps({"done": True}))


def serve():
    import stripe
    from django.core.wsgi import get_wsgi_application
    from djstripe.models import WebhookEndpoint

    door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    stripe.api_base = f"http://127.0.0.1:{door.server_address[1]}"
    stripe.max_network_retries = 0
    WebhookEndpoint.objects.create(
        id="we_1Example", livemode=True, api_version="", enabled_events=["*"], secret=given["secret"],
        status="enabled", url="https://shop.example.com/webhook/", application="", djstripe_uuid=UUID,
    )
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
    print(server.server_address[1], flush=True)
    server.serve_forever()


{"migrate": migrate, "serve": serve}[mode]()
