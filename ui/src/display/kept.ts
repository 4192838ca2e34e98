// What a browser remembers between visits. Where it may not keep anything, choices last as long as the page.

export function readKept(name: string): string | null {
  try {
    return localStorage.getItem(`camserver.${name}`);
  } catch {
    return null;
  }
}

export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`camserver.${name}`, value);
  } catch {
    // A browser that keeps nothing is not an error.
  }
}
