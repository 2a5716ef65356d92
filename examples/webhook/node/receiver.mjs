// Receives webhooks of Placet and prints what they tell, each once.
//
//   WEBHOOK_SECRET=whsec_… node examples/webhook/node/receiver.mjs 127.0.0.1 9000
import { createServer } from "node:http";

import { verify } from "./verify.mjs";

const MAX_BODY = 1 << 20;
const secret = process.env.WEBHOOK_SECRET;
if (!secret) throw new Error("WEBHOOK_SECRET is not set");

// The ids of what was done. Keep them in your database, written in the transaction that
// does the work: then a repeat does nothing, also after a restart.
const seen = new Set();

// Does the work of a delivery that was not seen yet.
function once(id, body) {
  if (seen.has(id)) return;
  const event = JSON.parse(body);
  console.log(event.type, event.subject ?? "");
  seen.add(id);
}

async function read(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY) throw new Error("the body is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request, response) {
  let status = 204;
  try {
    const body = await read(request);
    if (!verify(secret, request.headers, body)) status = 401;
    else once(request.headers["webhook-id"], body);
  } catch {
    status = 500; // and is sent again
  }
  response.writeHead(status).end();
}

const [host, port] = process.argv.slice(2);
const server = createServer(receive).listen(Number(port), host, () => {
  console.log(`listening on http://${host}:${server.address().port}`);
});
