// Sets the theme before anything is painted (src/display/theme.ts changes it later under the same name), and watches over the first load.
try {
  document.documentElement.classList.toggle("dark", localStorage.getItem("camserver.theme") !== "light");
} catch {
  // A browser that keeps nothing gets the dark theme of index.html.
}

// A file that did not come, since the network changed on the way, would leave an empty page: it is loaded anew, soon and
// then every ten seconds.
addEventListener(
  "error",
  ({ target }) => {
    if (!(target instanceof HTMLScriptElement)) return;
    let isFirst = true;
    try {
      isFirst = Date.now() - Number(sessionStorage.getItem("camserver.begun-anew") ?? 0) > 30_000;
      sessionStorage.setItem("camserver.begun-anew", String(Date.now()));
    } catch {
      isFirst = false;
    }
    setTimeout(() => location.reload(), isFirst ? 500 : 10_000);
  },
  true,
);
