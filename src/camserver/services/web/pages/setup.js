import { ask, find, language, onSend, translate, word } from "./words.js";

translate();
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (!token) {
  find("error").textContent = word("no_token");
  find("form").hidden = true;
}
onSend(find("form"), async ({ login, password, display_name }) => {
  await ask("POST", "/api/setup", { token, login, password, display_name, language });
  await ask("POST", "/api/session", { login, password });
  location.replace("/");
});
