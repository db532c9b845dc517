// A small application around @supabase/stripe-sync-engine: its migrations, and its processWebhook behind a server.
//
//   sync_engine_app.mjs '{"database": "postgres://…", "api": "http://…", "key": "…", "secret": "…"}'
//
// It prints its port. Refunds and disputes are fetched from the API at `api`, an emulator of Stripe.

import http from 'node:http'
import { createRequire } from 'node:module'
import Stripe from 'stripe'

// Its ES module looks for its migrations beside a name that only the other form has.
const { StripeSync, runMigrations } = createRequire(import.meta.url)('@supabase/stripe-sync-engine')

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
// The emulator has no items of a checkout session; a door before it answers that there are none.
const door = http.createServer(async (request, response) => {
  response.setHeader('content-type', 'application/json')
  if (request.url.includes('/line_items')) {
    return response.end(JSON.stringify({ object: 'list', data: [], has_more: false, url: '/v1/line_items' }))
  }
  const answer = await fetch(given.api + request.url, { headers: { authorization: request.headers.authorization } })
  response.writeHead(answer.status).end(await answer.text())
})
await new Promise((resolve) => door.listen(0, '127.0.0.1', resolve))
const api = door.address()
sync.stripe = new Stripe(given.key, { host: '127.0.0.1', port: api.port, protocol: 'http', maxNetworkRetries: 0 })

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
