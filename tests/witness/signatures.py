"""The official SDKs on signatures: makes them, or says whether they hold.

Reads a JSON list of {do, scheme, secret, url, headers, body (hex), at_s} on stdin and prints a JSON list: for "verify"
whether the SDK accepts, for "sign" the value of the signature's header (Adyen: of its field). Clocks stand at `at_s`.
"""

import datetime
import json
import sys
import time
from urllib.parse import parse_qsl

import standardwebhooks.webhooks
import stripe
from Adyen.util import generate_notification_sig, is_valid_hmac_notification
from slack_sdk.signature import SignatureVerifier
from square.utils.webhooks_helper import verify_signature
from standardwebhooks import Webhook
from twilio.request_validator import RequestValidator

NOW = [0]
time.time = lambda: float(NOW[0])


class StoppedDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW[0], tz=tz)


standardwebhooks.webhooks.datetime = StoppedDatetime


class Clock:
    def now(self):
        return float(NOW[0])


class Form(dict):
    """A form as Twilio's validator takes it from Django."""

    def __init__(self, body):
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        super().__init__(pairs)
        self.pairs = pairs

    def getlist(self, name):
        return [value for other, value in self.pairs if other == name]


def header(ask, name):
    return {key.lower(): value for key, value in ask["headers"].items()}.get(name)


def items(ask):
    return json.loads(ask["raw"])["notificationItems"]


def verify_stripe(ask):
    value = header(ask, "stripe-signature")
    return stripe.WebhookSignature.verify_header(ask["raw"], value, ask["secret"], tolerance=300)


def verify_slack(ask):
    return SignatureVerifier(ask["secret"], clock=Clock()).is_valid_request(ask["raw"], ask["headers"])


def verify_standard(ask):
    Webhook(ask["secret"]).verify(ask["raw"], ask["headers"], json_parse=False)
    return True


def verify_twilio(ask, params):
    value = header(ask, "x-twilio-signature")
    return value is not None and RequestValidator(ask["secret"]).validate(ask["url"], params, value)


def verify_square(ask):
    return verify_signature(
        request_body=ask["raw"].decode(),
        signature_header=header(ask, "x-square-hmacsha256-signature"),
        signature_key=ask["secret"],
        notification_url=ask["url"],
    )


VERIFY = {
    "stripe": verify_stripe,
    "slack": verify_slack,
    "standard": verify_standard,
    "twilio_form": lambda ask: verify_twilio(ask, Form(ask["raw"])),
    "twilio_json": lambda ask: verify_twilio(ask, ask["raw"].decode()),
    "adyen": lambda ask: is_valid_hmac_notification(json.loads(ask["raw"]), ask["secret"]),
    "square": verify_square,
}


def sign_standard(ask):
    when = datetime.datetime.fromtimestamp(ask["at_s"], tz=datetime.timezone.utc)
    return Webhook(ask["secret"]).sign(header(ask, "webhook-id"), when, ask["raw"].decode())


SIGN = {
    "stripe": lambda ask: stripe.WebhookSignature.generate_signature_header(
        ask["raw"].decode(), ask["secret"], ask["at_s"]
    ),
    "slack": lambda ask: SignatureVerifier(ask["secret"]).generate_signature(
        timestamp=str(ask["at_s"]), body=ask["raw"]
    ),
    "standard": sign_standard,
    "twilio_form": lambda ask: RequestValidator(ask["secret"]).compute_signature(ask["url"], Form(ask["raw"])),
    "twilio_json": lambda ask: RequestValidator(ask["secret"]).compute_signature(ask["url"], {}),
    "adyen": lambda ask: generate_notification_sig(
        items(ask)[0]["NotificationRequestItem"], ask["secret"]
    ).decode(),
}


def answer(ask):
    ask["raw"] = bytes.fromhex(ask["body"])
    NOW[0] = ask["at_s"]
    if ask["do"] == "sign":
        return SIGN[ask["scheme"]](ask)
    try:
        return bool(VERIFY[ask["scheme"]](ask))
    except Exception:  # every SDK refuses by an exception of its own
        return False


json.dump([answer(ask) for ask in json.load(sys.stdin)], sys.stdout)
