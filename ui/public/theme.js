// Sets the theme before anything is painted; src/display/theme.ts changes it later under the same name.
try {
  document.documentElement.classList.toggle("dark", localStorage.getItem("camserver.theme") !== "light");
} catch {
  // A browser that keeps nothing gets the dark theme of index.html.
}
