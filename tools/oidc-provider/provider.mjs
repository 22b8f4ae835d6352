// A real OpenID provider (npm oidc-provider) for tests and demonstrations: no browser, no TLS, loopback only.
//
//   node tools/oidc-provider/provider.mjs DIRECTORY      DIRECTORY: .tools/oidc-provider, as `tools/install` made it
//
// OP_PORT   the port; any free one if it is not given
// OP_CLIENTS   the clients' metadata, as a JSON array
//
// Says {"issuer": …} in one line when it is ready. Nobody has a password: whoever answers an interaction says who signed in,
// and how well. A test signs in by following redirects by hand:
//
//   GET  <authorization address>                → 303 to /interaction/<uid>, with cookies
//   POST /interaction/<uid> {"login": {"accountId", "acr", "amr", "ts"}}, or {"abort": true}
//                                               → 303 back, then 303 to the client with a code
//
// POST /__control changes it while it runs, and answers with the ids of its keys:
//   {"rotate": "add" | "replace"}   new keys; the old ones stay published, or do not
//   {"skew": seconds}               its clock, against the machine's
//   {"user": {"sub", "groups"}}     what it says about somebody
//   {"fail": {"/token": 503}}       paths that fail, and how
import http from 'node:http';
import path from 'node:path';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [directory] = process.argv.slice(2);
const library = path.resolve(directory, 'node_modules/oidc-provider/lib/index.js');
const { Provider } = await import(pathToFileURL(library));

const state = { keys: [], users: {}, fail: {}, skewSeconds: 0 };
const machineNow = Date.now;
Date.now = () => machineNow() + state.skewSeconds * 1000;

function makeKey(alg) {
  const kinds = { EdDSA: ['ed25519'], ES256: ['ec', { namedCurve: 'P-256' }], ES384: ['ec', { namedCurve: 'P-384' }] };
  const [kind, options] = kinds[alg] ?? ['rsa', { modulusLength: 2048 }];
  const { privateKey } = generateKeyPairSync(kind, options);
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg };
}
const makeKeys = () => ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'].map(makeKey);

const user = (sub) => (state.users[sub] ??= { groups: [], email: `${sub}@example.test` });

function configuration(clients) {
  return {
    clients,
    jwks: { keys: state.keys },
    pkce: { required: () => true },
    acrValues: ['urn:gpuaas:basic', 'urn:gpuaas:strong'],
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] },
    scopes: ['openid', 'email', 'groups'],
    // Claims under `openid` come without being asked for.
    claims: { openid: ['sub', 'sid', 'acr', 'amr', 'auth_time'], email: ['email', 'email_verified'], groups: ['groups'] },
    conformIdTokenClaims: false, // groups in the id token, as most providers do
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ email_verified: true, ...user(sub), sub }) }),
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true, logoutSource: (ctx, form) => { ctx.body = form; } },
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    cookies: { keys: ['test'], short: { sameSite: 'lax' }, long: { sameSite: 'lax' } },
    ttl: { AccessToken: 300, IdToken: 300, Session: 3600, Interaction: 600, Grant: 3600, AuthorizationCode: 60 },
    loadExistingGrant: consent,
    fetch: (url, { dispatcher, ...options }) => fetch(url, options), // its own refuses to call loopback
    renderError: (ctx, out) => { ctx.type = 'json'; ctx.body = out; },
  };
}

/** Consent is given as soon as it is asked for. */
async function consent(ctx) {
  const { oidc } = ctx;
  const { Grant } = oidc.provider;
  const id = oidc.result?.consent?.grantId ?? oidc.session.grantIdFor(oidc.client.clientId);
  const fresh = () => new Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
  const grant = (id && (await Grant.find(id))) || fresh();
  grant.addOIDCScope([...oidc.requestParamScopes].join(' '));
  grant.addOIDCClaims([...oidc.requestParamClaims]);
  await grant.save();
  return grant;
}

const clients = JSON.parse(process.env.OP_CLIENTS ?? '[]');
let provider;
function build(issuer) {
  provider = new Provider(issuer, configuration(clients));
  provider.on('server_error', (_, error) => console.error('server_error', error));
  provider.on('backchannel.error', (_, error) => console.error('backchannel.error', error));
}

async function read(request) {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body ? JSON.parse(body) : {};
}

function reply(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

async function control(request, response) {
  const { rotate, skew, user: changed, fail } = await read(request);
  if (skew !== undefined) state.skewSeconds = skew;
  if (changed) Object.assign(user(changed.sub), changed);
  if (fail) state.fail = fail;
  if (rotate) {
    state.keys = rotate === 'add' ? [...makeKeys(), ...state.keys] : makeKeys();
    build(provider.issuer);
  }
  reply(response, 200, { kids: state.keys.map((key) => key.kid) });
}

async function interaction(request, response) {
  const details = await provider.interactionDetails(request, response);
  if (request.method === 'GET') return reply(response, 200, { prompt: details.prompt, params: details.params });
  const { login, abort } = await read(request);
  const result = abort ? { error: 'access_denied', error_description: 'the person said no' } : { login };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

const server = http.createServer(async (request, response) => {
  try {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/__control') return await control(request, response);
    if (state.fail[pathname]) return reply(response, state.fail[pathname], { error: 'server_error' });
    if (pathname.startsWith('/interaction/')) return await interaction(request, response);
    return await provider.callback()(request, response);
  } catch (error) {
    return reply(response, 500, { error: String(error) });
  }
});

state.keys = makeKeys();
server.listen(Number(process.env.OP_PORT ?? 0), '127.0.0.1', () => {
  build(`http://127.0.0.1:${server.address().port}`);
  console.log(JSON.stringify({ issuer: provider.issuer }));
});
