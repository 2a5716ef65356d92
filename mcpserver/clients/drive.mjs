// Drives Placet's MCP server with one of the official TypeScript clients, and prints what
// it saw as one JSON object.
//
//   node drive.mjs CLIENT TRANSPORT ORDER
//
// CLIENT is 1 (@modelcontextprotocol/sdk, revision 2025-11-25) or 2
// (@modelcontextprotocol/client, revision 2026-07-28). TRANSPORT is stdio or http. ORDER
// is JSON: command, env, url, tokens {agent, reviewer}.
const [client, transport, words] = process.argv.slice(2);
const order = JSON.parse(words);
const lib = client === '1'
  ? { ...await import('@modelcontextprotocol/sdk/client/index.js'), ...await import('@modelcontextprotocol/sdk/client/stdio.js'),
      ...await import('@modelcontextprotocol/sdk/client/streamableHttp.js'), types: await import('@modelcontextprotocol/sdk/types.js') }
  : { ...await import('@modelcontextprotocol/client'), ...await import('@modelcontextprotocol/client/stdio') };

const saw = { forms: [], progress: 0, stderr: '' };

async function connect(token, answer) {
  const options = { capabilities: answer ? { elicitation: {} } : {} };
  if (client === '2') options.versionNegotiation = { mode: { pin: '2026-07-28' } };
  const c = new lib.Client({ name: 'drive', version: '1' }, options);
  if (answer) {
    const show = async request => {
      saw.forms.push(request.params);
      return answer(request.params);
    };
    c.setRequestHandler(client === '1' ? lib.types.ElicitRequestSchema : 'elicitation/create', show);
  }
  let over;
  if (transport === 'stdio') {
    const env = { ...order.env };
    if (token) env.PLACET_TOKEN = token;
    over = new lib.StdioClientTransport({ command: order.command, args: ['mcp'], env, stderr: 'pipe' });
    over.stderr.on('data', b => { saw.stderr += b; });
  } else {
    over = new lib.StreamableHTTPClientTransport(new URL(order.url + '/mcp'), { requestInit: { headers: { Authorization: 'Bearer ' + token } } });
  }
  await c.connect(over);
  return {
    client: c,
    call: async (name, args, options) => client === '1'
      ? await c.callTool({ name, arguments: args }, undefined, options)
      : await c.callTool({ name, arguments: args }, options),
    close: () => c.close(),
  };
}

const agent = await connect(transport === 'stdio' ? undefined : order.tokens.agent);
saw.server = agent.client.getServerVersion();
saw.tools = (await agent.client.listTools()).tools;
const health = await agent.call('doctor', {});
saw.doctor = health.structuredContent;
saw.text = health.content[0].text;
const job = (await agent.call('job_start', { command: ['cat'], name: 'driven' })).structuredContent.job_id;
saw.unknown = await agent.call('job_status', { job_id: job, approved: true });
saw.missing = await agent.call('job_status', { job_id: 'job_none' });
saw.resolve = await agent.call('job_resolve', { job_id: job, token: 'dec_1', choice: 'yes' }).catch(e => ({ thrown: String(e.message) }));
const ask = async () => (await agent.call('job_request_decision', {
  job_id: job, prompt: 'Go on?', options: ['yes', 'no'],
  form: { type: 'object', properties: { epochs: { type: 'integer', minimum: 1 } }, required: ['epochs'] },
})).structuredContent;

const declined = await ask();
let reviewer = await connect(order.tokens.reviewer, () => ({ action: 'decline' }));
saw.declined = (await reviewer.call('job_resolve', { job_id: job, token: declined.decision_id })).structuredContent;
await reviewer.close();

const question = await ask();
const wait = agent.call('job_wait', { job_id: job, decision_id: question.decision_id, after: question.cursor }, { onprogress: () => { saw.progress++; } });
reviewer = await connect(order.tokens.reviewer, () => ({ action: 'accept', content: { choice: 'yes', epochs: 3 } }));
saw.reviewerTools = (await reviewer.client.listTools()).tools.map(t => t.name);
saw.answered = (await reviewer.call('job_resolve', { job_id: job, token: question.decision_id })).structuredContent;
await reviewer.close();
saw.waited = (await wait).structuredContent;
saw.stopped = (await agent.call('job_stop', { job_id: job })).structuredContent;
await agent.close();
console.log(JSON.stringify(saw));
