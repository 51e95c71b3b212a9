// An MCP server over stdio whose tools are in a file, which it watches: their names, or themselves.
//
//   node changing.mjs FILE
//
// It speaks 2026-07-28 and 2025-11-25 by hand. Tools answer with their own names; `huge` with
// more than a client should read, `many` with more values than that, `die` not at all.

import { readFileSync, watchFile } from 'node:fs';
import { createInterface } from 'node:readline';

const file = process.argv[2];
const versions = (process.env.VERSIONS ?? '2025-11-25').split(',');
const tools = () => JSON.parse(readFileSync(file, 'utf8')).map((tool) => (typeof tool === 'string' ? { name: tool } : tool));
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

watchFile(file, { interval: 50 }, () => send({ method: 'notifications/tools/list_changed' }));

const about = { capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'changing', version: '1' } };

const methods = {
  'server/discover': () => ({ supportedVersions: versions, ...about, resultType: 'complete' }),
  initialize: () => ({ protocolVersion: '2025-11-25', ...about }),
  'tools/list': () => ({ tools: tools().map((tool) => ({ ...tool, inputSchema: { type: 'object' } })) }),
  'tools/call': ({ name }) => {
    if (name === 'die') process.exit(7);
    if (!tools().some((tool) => tool.name === name)) throw { code: -32602, message: `Unknown tool: ${name}` };
    if (name === 'many') return { content: [], structuredContent: { list: new Array(2_000_000).fill(0) } };
    return { content: [{ type: 'text', text: name === 'huge' ? 'x'.repeat(9 << 20) : name }] };
  },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const isModern = params?._meta?.['io.modelcontextprotocol/protocolVersion'] === '2026-07-28';
  const isKnown = method === 'server/discover' ? versions.includes('2026-07-28') : isModern === versions.includes('2026-07-28');
  if (!methods[method] || !isKnown) return send({ id, error: { code: -32601, message: `no ${method} here` } });
  try {
    send({ id, result: methods[method](params) });
  } catch (error) {
    send({ id, error });
  }
}).on('close', () => process.exit(0));
