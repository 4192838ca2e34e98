import { ask, find, onSend, translate } from "./words.js";

translate();
onSend(find("form"), async ({ login, password }) => {
  await ask("POST", "/api/session", { login, password });
  location.replace("/");
});
