// An OAuth2 and OpenID Connect server for the tests, with an API and an MCP server
// that accept its tokens and controls that make it misbehave. It runs until stdin closes.
//
// Environment: OIDC_REDIRECT_URIS (comma-separated), OIDC_ACCESS_TTL and
// OIDC_REFRESH_TTL (seconds).

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Provider } from 'oidc-provider';

// oidc-provider prints its notices with console.info, and the test reads stdout.
console.info = console.error;

process.stdin.resume();
process.stdin.on('close', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));

function seconds(name, fallback) {
  const value = Number(process.env[name] || fallback);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} must be a whole number of seconds`);
  return value;
}

const accessTtl = seconds('OIDC_ACCESS_TTL', 60);
const refreshTtl = seconds('OIDC_REFRESH_TTL', 3600);
const day = 24 * 60 * 60;

const redirectUris = (process.env.OIDC_REDIRECT_URIS ?? '').split(',').map((uri) => uri.trim()).filter(Boolean);
if (redirectUris.length === 0) throw new Error('OIDC_REDIRECT_URIS is not set');

// Storage

const tables = new Map();

function table(model) {
  if (!tables.has(model)) tables.set(model, new Map());
  return tables.get(model);
}

function clear(...models) {
  let destroyed = 0;
  for (const model of models) {
    destroyed += table(model).size;
    table(model).clear();
  }
  return { destroyed };
}

// The adapter that comes with oidc-provider hides its store and drops the oldest
// rows when it is full. Expiry is left to the models, which check it themselves.
class Adapter {
  constructor(model) {
    this.rows = table(model);
  }

  async upsert(id, payload) {
    this.rows.set(id, payload);
  }

  async find(id) {
    return this.rows.get(id);
  }

  async findByUid(uid) {
    return [...this.rows.values()].find((row) => row.uid === uid);
  }

  async consume(id) {
    this.rows.get(id).consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    this.rows.delete(id);
  }

  async revokeByGrantId(grantId) {
    for (const [id, row] of this.rows) {
      if (row.grantId === grantId) this.rows.delete(id);
    }
  }
}

// Provider

// The issuer holds the port, so the port is bound first.
const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;

function client(id, authMethod) {
  return {
    client_id: id,
    client_secret: 'yard-secret',
    redirect_uris: redirectUris,
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_method: authMethod,
  };
}

function signingKey() {
  const made = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  return { ...made, kid: randomBytes(8).toString('hex'), alg: 'RS256', use: 'sig' };
}

function curveKey() {
  const made = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  return { ...made, kid: randomBytes(8).toString('hex'), alg: 'ES256', use: 'sig' };
}

// What the provider knows of people, besides what their names say.
const directory = new Map();

function claimsOf(sub) {
  return {
    sub,
    email: `${sub}@example.com`,
    email_verified: true,
    name: sub,
    preferred_username: sub,
    groups: [],
    ...directory.get(sub),
  };
}

const cookieKey = randomBytes(32).toString('hex');

const configuration = () => ({
  adapter: Adapter,
  clients: [
    client('yard', 'client_secret_post'),
    client('yard-basic', 'client_secret_basic'),
    { ...client('yard-curve', 'client_secret_basic'), id_token_signed_response_alg: 'ES256' },
  ],
  jwks: { keys: [signingKey(), curveKey()] },
  cookies: { keys: [cookieKey] },
  scopes: ['openid', 'email', 'profile', 'groups', 'offline_access', 'tools'],
  claims: {
    openid: ['sub'],
    email: ['email', 'email_verified'],
    profile: ['name', 'preferred_username'],
    groups: ['groups'],
  },
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => claimsOf(sub) }),
  pkce: { required: () => true },
  rotateRefreshToken: true,
  // The default of 15 seconds would keep short-lived tokens alive in the tests.
  clockTolerance: 0,
  ttl: {
    AccessToken: accessTtl,
    ClientCredentials: accessTtl,
    RefreshToken: refreshTtl,
    AuthorizationCode: 60,
    IdToken: 3600,
    Interaction: 3600,
    Session: day,
    Grant: Math.max(day, refreshTtl),
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    revocation: { enabled: true },
    userinfo: { enabled: true },
    registration: { enabled: true },
    // Without a resource access tokens are good for userinfo; with one for that resource alone.
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({ scope: 'tools', audience: resource, accessTokenFormat: 'opaque' }),
    },
  },
});

let provider;
let handle;

// A provider with keys of its own; one that was there before is replaced, as by a rotation that keeps no old key.
function start() {
  provider = new Provider(issuer, configuration());
  // oidc-provider takes the secret from the header or the body, whichever method is
  // registered. The tests need to see that the client uses the right one.
  const { compareClientSecret } = provider.Client.prototype;
  provider.Client.prototype.compareClientSecret = function compare(secret) {
    const used = Provider.ctx.headers.authorization ? 'client_secret_basic' : 'client_secret_post';
    return used === this.clientAuthMethod && compareClientSecret.call(this, secret);
  };
  provider.use(answer);
  handle = provider.callback();
}

// Login and consent

function page(ctx, title, content) {
  ctx.type = 'html';
  ctx.body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${title}</title></head>
<body>
<h1>${title}</h1>
<form method="post" action="${ctx.path}">
${content}
</form>
</body>
</html>
`;
}

function escape(value) {
  return String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function showInteraction(ctx, { prompt, params, session }) {
  if (prompt.name === 'login') {
    page(ctx, 'Sign in', `<label>Login <input name="login" required></label>
<button>Sign in</button>`);
  } else {
    page(ctx, 'Consent', `<p>${escape(params.client_id)} asks ${escape(session.accountId)} for: ${escape(params.scope ?? '')}</p>
<button name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>`);
  }
}

async function grantConsent({ grantId, session, params, prompt }) {
  const grant = (grantId && await provider.Grant.find(grantId))
    || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  if (prompt.details.missingOIDCClaims) grant.addOIDCClaims(prompt.details.missingOIDCClaims);
  return grant.save();
}

async function interactionResult(interaction, form) {
  if (interaction.prompt.name === 'login') {
    const accountId = form.get('login')?.trim();
    if (directory.get(accountId)?.disabled) return { error: 'access_denied', error_description: 'the account is disabled' };
    return accountId ? { login: { accountId } } : undefined;
  }
  switch (form.get('decision')) {
    case 'approve':
      return { consent: { grantId: await grantConsent(interaction) } };
    case 'deny':
      return { error: 'access_denied', error_description: 'the user said no' };
    default:
      return undefined;
  }
}

async function interact(ctx) {
  const interaction = await provider.interactionDetails(ctx.req, ctx.res);
  ctx.set('cache-control', 'no-store');
  if (ctx.method === 'GET') return showInteraction(ctx, interaction);

  const result = await interactionResult(interaction, new URLSearchParams(await text(ctx.req)));
  if (!result) {
    showInteraction(ctx, interaction);
    ctx.status = 400;
    return;
  }
  ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result));
  ctx.status = 303;
}

// Protected API

async function activeToken(ctx) {
  const value = /^Bearer +(\S+)$/i.exec(ctx.get('authorization'))?.[1];
  const token = await provider.AccessToken.find(value) ?? await provider.ClientCredentials.find(value);
  if (token) return token;
  ctx.status = 401;
  ctx.set('www-authenticate', value ? 'Bearer realm="api", error="invalid_token"' : 'Bearer realm="api"');
  ctx.body = { error: value ? 'invalid_token' : 'token_missing' };
  return undefined;
}

const api = {
  'GET /api/me': (ctx, token) => {
    const sub = token.accountId ?? token.clientId;
    ctx.body = { sub, login: sub };
  },
  'GET /api/items': (ctx) => {
    const length = number(ctx, 'limit', 10, 0, 1000);
    ctx.body = { items: Array.from({ length }, (_, i) => ({ id: i + 1, name: `item ${i + 1}` })) };
  },
  'POST /api/echo': async (ctx) => {
    const raw = await text(ctx.req);
    let body;
    try {
      body = raw === '' ? null : JSON.parse(raw);
    } catch {
      ctx.throw(400, 'the body is not JSON');
    }
    ctx.body = { body, headers: ctx.headers };
  },
};

// MCP server, for tokens that are meant for it alone

const mcpResource = `${issuer}/mcp`;

const mcpMethods = {
  initialize: () => ({
    protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'whoami', description: 'Tell whose account this is', inputSchema: { type: 'object' } }] }),
  'tools/call': (token) => ({ content: [{ type: 'text', text: token.accountId }] }),
};

async function mcp(ctx) {
  const token = await activeToken(ctx);
  if (!token || token.aud !== mcpResource) {
    const metadata = `${issuer}/.well-known/oauth-protected-resource/mcp`;
    ctx.status = 401;
    ctx.set('www-authenticate', `Bearer resource_metadata="${metadata}", scope="tools"`);
    ctx.body = '';
    return;
  }
  const { id, method } = JSON.parse(await text(ctx.req));
  if (id === undefined) {
    ctx.status = 202;
    ctx.body = '';
  } else if (mcpMethods[method]) {
    ctx.body = { jsonrpc: '2.0', id, result: mcpMethods[method](token) };
  } else {
    ctx.body = { jsonrpc: '2.0', id, error: { code: -32601, message: `no ${method} here` } };
  }
}

// Test controls

// token_requests counts what arrived, the others what succeeded; refreshed_at is where the last refresh went.
const counters = { token_requests: 0, refreshes: 0, code_exchanges: 0, revocations: 0, refreshed_at: null };
let tokenDelay = 0;
let tokenFailure = { status: 503, times: 0 };

function number(ctx, name, fallback, min, max) {
  const value = Number(ctx.query[name] ?? fallback);
  if (!Number.isInteger(value) || value < min || value > max) {
    ctx.throw(400, `${name} must be a whole number from ${min} to ${max}`);
  }
  return value;
}

const controls = {
  'GET /__test/counters': () => counters,
  'POST /__test/expire-access-tokens': () => clear('AccessToken', 'ClientCredentials'),
  'POST /__test/revoke-grants': () => clear('Grant', 'RefreshToken'),
  // Says something else of a person: `?sub=ada&claims={"groups":["eng"]}`, `{"disabled":true}`.
  'POST /__test/person': (ctx) => {
    directory.set(ctx.query.sub, { ...directory.get(ctx.query.sub), ...JSON.parse(ctx.query.claims) });
    return directory.get(ctx.query.sub);
  },
  'POST /__test/rotate-keys': () => {
    start();
    return {};
  },
  'POST /__test/delay-token': (ctx) => {
    tokenDelay = number(ctx, 'ms', undefined, 0, 600_000);
    return { ms: tokenDelay };
  },
  'POST /__test/fail-token': (ctx) => {
    tokenFailure = {
      status: number(ctx, 'status', 503, 400, 599),
      times: number(ctx, 'times', 1, 0, 1000),
    };
    return tokenFailure;
  },
};

async function tokenEndpoint(ctx, next) {
  counters.token_requests += 1;
  if (tokenFailure.times > 0) {
    tokenFailure.times -= 1;
    ctx.status = tokenFailure.status;
    ctx.type = 'html';
    ctx.body = '<!doctype html><title>Error</title><h1>The token endpoint is out of order</h1>\n';
  } else {
    await next();
    if (ctx.status === 200) {
      const { grant_type: grantType } = ctx.oidc.params;
      if (grantType === 'refresh_token') {
        counters.refreshes += 1;
        counters.refreshed_at = ctx.url;
      }
      if (grantType === 'authorization_code') counters.code_exchanges += 1;
    }
  }
  // The delay comes last, so a client that gives up may have spent its refresh token.
  if (tokenDelay > 0) await sleep(tokenDelay);
}

async function answer(ctx, next) {
  const route = `${ctx.method} ${ctx.path}`;
  if (controls[route]) {
    ctx.body = controls[route](ctx);
  } else if (api[route]) {
    const token = await activeToken(ctx);
    if (token) await api[route](ctx, token);
  } else if (ctx.path === '/mcp' && ctx.method === 'POST') {
    await mcp(ctx);
  } else if (route === 'GET /.well-known/oauth-protected-resource/mcp') {
    ctx.body = { resource: mcpResource, authorization_servers: [issuer], scopes_supported: ['tools'] };
  } else if (/^(GET|POST) \/interaction\/[^/]+$/.test(route)) {
    await interact(ctx);
  } else if (route === 'POST /token') {
    await tokenEndpoint(ctx, next);
  } else {
    await next();
    if (route === 'POST /token/revocation' && ctx.status === 200) counters.revocations += 1;
  }
}

start();
server.on('request', (request, response) => handle(request, response));
console.log(JSON.stringify({ issuer, admin: issuer }));
