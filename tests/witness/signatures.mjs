// The official SDKs of npm on signatures; what goes in and comes out is that of signatures.py.
import { readFileSync } from "node:fs";
import { sign, verify } from "@octokit/webhooks-methods";
import { Paddle } from "@paddle/paddle-node-sdk";
import "@shopify/shopify-api/adapters/node";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import mercadopago from "mercadopago";

const RealDate = Date;
let now = 0;
globalThis.Date = class extends RealDate {
  constructor(...parts) {
    super(...(parts.length ? parts : [now]));
  }
  static now() {
    return now;
  }
};

const header = (ask, name) =>
  Object.entries(ask.headers).find(([key]) => key.toLowerCase() === name)?.[1];
const paddle = new Paddle("pdl_sdbx_apikey");

const shopify = (apiSecretKey) =>
  shopifyApi({
    apiKey: "key",
    apiSecretKey,
    apiVersion: Object.values(ApiVersion).at(-1),
    hostName: "shop.example",
    isEmbeddedApp: true,
    logger: { level: 0 },
  });

const VERIFY = {
  shopify: async (ask, rawBody) => {
    const headers = { "X-Shopify-API-Version": "2026-01", ...ask.headers };
    const rawRequest = { method: "POST", url: "/", headers };
    return (await shopify(ask.secret).webhooks.validate({ rawBody, rawRequest, rawResponse: {} })).valid;
  },
  github: (ask, body) => verify(ask.secret, body, header(ask, "x-hub-signature-256")),
  paddle: (ask, body) => paddle.webhooks.isSignatureValid(body, ask.secret, header(ask, "paddle-signature")),
  mercado_pago: (ask) => {
    mercadopago.WebhookSignatureValidator.validate({
      xSignature: header(ask, "x-signature"),
      xRequestId: header(ask, "x-request-id"),
      dataId: new URL(ask.url).searchParams.get("data.id"),
      secret: ask.secret,
    });
    return true;
  },
};

async function answer(ask) {
  now = ask.at_s * 1000;
  const body = Buffer.from(ask.body, "hex").toString();
  if (ask.do === "sign") return sign(ask.secret, body);
  try {
    return await VERIFY[ask.scheme](ask, body);
  } catch {
    return false; // every SDK refuses by an exception of its own
  }
}

const answers = [];
for (const ask of JSON.parse(readFileSync(0, "utf8"))) answers.push(await answer(ask));
process.stdout.write(JSON.stringify(answers));
