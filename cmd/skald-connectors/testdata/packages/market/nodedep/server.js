const name = require('dep');

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const msg = JSON.parse(line);
  if (msg.id === undefined) return;
  const result = msg.method === 'initialize'
    ? { protocolVersion: msg.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } }
    : { tools: [{ name, description: 'Named by its dependency.', inputSchema: { type: 'object' } }] };
  console.log(JSON.stringify({ jsonrpc: '2.0', id: msg.id, result }));
});
