import { ask, element, find, language, translate, word } from "./words.js";

const REFRESH_MS = 5000;
let csrfToken = "";
translate();

function age(now, then) {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 60) return word("ago_sec", { n: seconds });
  if (seconds < 3600) return word("ago_min", { n: Math.floor(seconds / 60) });
  if (seconds < 86400) return word("ago_hours", { n: Math.floor(seconds / 3600) });
  return word("ago_days", { n: Math.floor(seconds / 86400) });
}

function cameraTile(camera, now) {
  const tile = element("li", "tile");
  const { latest } = camera;
  if (latest?.has_picture) {
    const picture = element("img", "still");
    picture.alt = camera.name;
    // The frame in the address: the browser fetches a picture once and shows no older one.
    picture.src = `/api/cameras/${encodeURIComponent(camera.camera_id)}/latest.jpg?frame=${latest.frame_uuid}`;
    tile.append(picture);
  } else {
    tile.append(element("div", "still empty", word("no_picture")));
  }
  tile.append(element("strong", "", camera.name));
  const failed = latest && latest.status !== "ok" ? ` · ${word("look_failed")} (${latest.error_code ?? latest.status})` : "";
  tile.append(element("span", failed ? "note bad" : "note", (latest ? age(now, latest.captured_at) : word("never")) + failed));
  return tile;
}

function eventLine(event, now) {
  const line = element("li", `event severity${event.severity_max}`);
  line.append(element("strong", "", word(event.primary_event)), ` ${event.camera_name} `);
  const began = new Date(event.start_at).toLocaleString(language);
  line.append(element("span", "note", `${began} (${age(now, event.start_at)}) · ${word(event.state)}`));
  return line;
}

function fill(list, items, emptyWord) {
  list.replaceChildren(...(items.length ? items : [element("li", "note", word(emptyWord))]));
}

async function refresh() {
  try {
    const [status, { cameras }, { events }] = await Promise.all([
      ask("GET", "/api/system/status"), ask("GET", "/api/cameras?limit=100"), ask("GET", "/api/events?limit=20"),
    ]);
    const jobs = Object.values(status.unfinished_jobs).reduce((sum, n) => sum + n, 0);
    find("summary").textContent = word("summary", { cameras: status.cameras, jobs, open: status.open_events });
    fill(find("cameras"), cameras.map((camera) => cameraTile(camera, status.now)), "no_cameras");
    fill(find("events"), events.map((event) => eventLine(event, status.now)), "no_events");
    find("error").textContent = "";
  } catch (error) {
    if (error.status === 401) return location.replace("/sign-in");
    find("error").textContent = error.message;
  }
  setTimeout(refresh, REFRESH_MS);
}

find("sign-out").addEventListener("click", async () => {
  try {
    await ask("DELETE", "/api/session", undefined, csrfToken);
    location.replace("/sign-in");
  } catch (error) {
    find("error").textContent = error.message;
  }
});

async function begin() {
  try {
    const session = await ask("GET", "/api/session");
    csrfToken = session.csrf_token;
    translate(session.language);
    find("who").textContent = session.display_name;
    refresh();
  } catch (error) {
    if (error.status === 401) return location.replace("/sign-in");
    find("error").textContent = error.message;
    setTimeout(begin, REFRESH_MS);
  }
}
begin();
