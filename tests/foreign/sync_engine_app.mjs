// A small application around @supabase/stripe-sync-engine: its migrations, and its processWebhook behind a server.
//
//   sync_engine_app.mjs '{"database": "postgres://…", "api": "http://…", "key": "…", "secret": "…"}'
//
// It prints its port. Refunds and disputes are fetched from the API at `api`, an emulator of Stripe.

import http from 'node:http'
import { StripeSync, runMigrations } from '@supabase/stripe-sync-engine'
import Stripe from 'stripe'

const given = JSON.parse(process.argv[2])
const logger = { info() {}, debug() {}, warn() {}, error: (...said) => console.error(...said) }
await runMigrations({ databaseUrl: given.database, schema: 'stripe', logger })

const sync = new StripeSync({
  poolConfig: { connectionString: given.database },
  schema: 'stripe',
  stripeSecretKey: given.key,
  stripeWebhookSecret: given.secret,
  revalidateObjectsViaStripeApi: ['refund', 'dispute'],
  logger,
})
const api = new URL(given.api)
sync.stripe = new Stripe(given.key, { host: api.hostname, port: api.port, protocol: 'http', maxNetworkRetries: 0 })

const server = http.createServer(async (request, response) => {
  const parts = []
  for await (const part of request) parts.push(part)
  try {
    await sync.processWebhook(Buffer.concat(parts), request.headers['stripe-signature'])
    response.writeHead(200).end()
  } catch (error) {
    console.error(error)
    response.writeHead(error.type === 'StripeSignatureVerificationError' ? 400 : 500).end()
  }
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
