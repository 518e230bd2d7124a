// A certified OpenID provider on loopback (npm oidc-provider): PKCE required, refresh tokens rotate and are good once,
// tokens live for seconds, device flow, revocation and registration are on. Prints its address as one line of JSON.
import Provider, { errors } from 'oidc-provider';
import http from 'node:http';

const seconds = Number(process.env.TOKEN_SECONDS ?? 3);
const server = http.createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const resource = process.env.RESOURCE_ORIGIN; // of a protected server, or unset

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'skald', application_type: 'native', token_endpoint_auth_method: 'none', response_types: ['code'],
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  }],
  scopes: ['openid', 'offline_access', 'mail.read', 'mail.send', 'mcp:tools'],
  rotateRefreshToken: true,
  ttl: { AccessToken: seconds, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600, DeviceCode: 300, AuthorizationCode: 60, IdToken: 60 },
  jwks: undefined,
  cookies: { keys: ['a test'] },
  features: {
    deviceFlow: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true, initialAccessToken: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo(_ctx, indicator) {
        if (!process.env.RESOURCE_PREFIX || !indicator.startsWith(process.env.RESOURCE_PREFIX)) throw new errors.InvalidTarget();
        return { scope: 'mcp:tools', audience: indicator, accessTokenTTL: seconds, accessTokenFormat: 'opaque' };
      },
    },
  },
});
const log = (event) => (...args) => console.log(JSON.stringify({ event, detail: String(args.find((a) => a instanceof Error)?.error_description ?? '') }));
provider.on('grant.revoked', log('grant.revoked'));
provider.on('grant.error', log('grant.error'));
provider.on('registration_create.success', log('registered'));
provider.on('refresh_token.consumed', log('refreshed'));
provider.on('revocation.error', log('revocation.error'));
provider.on('authorization.error', log('authorization.error'));
server.on('request', provider.callback());
console.log(JSON.stringify({ event: 'listening', issuer }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0)); // never outlives the test
