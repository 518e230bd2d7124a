// A remote MCP server with the official SDK's authorization pieces in front (protected-resource metadata, bearer check by
// introspection at the provider in ISSUER). One tool, "whoami". Prints its address as one line of JSON.
import express from 'express';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { mcpAuthMetadataRouter, getOAuthProtectedResourceMetadataUrl } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';

const issuer = process.env.ISSUER;
const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const app = express();
const server = http.createServer(app);
await new Promise((done) => server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', done));
const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);

const verifier = {
  async verifyAccessToken(token) {
    const reply = await fetch(oauthMetadata.introspection_endpoint, { method: 'POST', body: new URLSearchParams({ token, client_id: 'skald' }) });
    const data = await reply.json();
    if (!data.active) throw new InvalidTokenError('not active');
    if (data.aud !== url.href) throw new InvalidTokenError(`for ${data.aud}`);
    return { token, clientId: data.client_id, scopes: (data.scope ?? '').split(' '), expiresAt: data.exp };
  },
};
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported: ['mcp:tools'], resourceName: 'Test' }));
app.use('/mcp', requireBearerAuth({ verifier, requiredScopes: ['mcp:tools'], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url) }));
app.use(express.json());
app.post('/mcp', async (req, res) => {
  const mcp = new McpServer({ name: 'protected', version: '1.0.0' });
  mcp.registerTool('whoami', { title: 'Who am I', description: 'Says who is signed in' }, async () => ({ content: [{ type: 'text', text: 'ada' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  res.on('close', () => { transport.close(); mcp.close(); });
  await mcp.connect(transport);
  await transport.handleRequest(req, res, req.body);
});
app.all('/mcp', (_req, res) => res.status(405).end());
console.log(JSON.stringify({ event: 'listening', url: url.href }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0)); // never outlives the test
