import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE = 5 * 60; // seconds

// Whether these bytes come from who has the secret, and are not old. secret is the text
// whsec_…, headers as node has them (in lower case), and body the Buffer that came,
// before anything was parsed.
export function verify(secret, headers, body, now = Date.now() / 1000) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (id === "" || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE) return false;
  const mac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const want = Buffer.from(`v1,${mac}`);
  // While a secret is rotated there are two signatures; one that fits is enough.
  return (headers["webhook-signature"] ?? "").split(" ").some((text) => {
    const given = Buffer.from(text);
    return given.length === want.length && timingSafeEqual(given, want);
  });
}
