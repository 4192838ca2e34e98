// A real OpenID Connect provider for tests. Arguments: the folder of node_modules, port, client secret, redirect address.
// Any login and password will do; the login is the subject and the preferred_username. It says "ready" when it listens.

import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, port, secret, redirect] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`).href);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "camserver", client_secret: secret, redirect_uris: [redirect], post_logout_redirect_uris: [new URL("/sign-in", redirect).href] }],
  claims: { openid: ["sub"], profile: ["preferred_username", "name"] },
  // As most providers do by default or by a switch: the claims are in the ID token, not only at the userinfo endpoint.
  conformIdTokenClaims: false,
  cookies: { keys: ["only for tests"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, name: `Person ${id}` }),
  }),
});
createServer(provider.callback()).listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
