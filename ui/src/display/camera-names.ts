/** As the server takes it. Forms read it too, where a plain `-` in a class is an error. */
export const CAMERA_ID_PATTERN = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}";

/** An id for a camera by its name, or by its host where the name has no letters that may be in one. */
export function suggestedId(name: string, url: string, taken: readonly string[]): string {
  const plain = name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  const host = /^[a-z]+:\/\/(?:[^@/]*@)?([^/:?#]+)/i.exec(url)?.[1]?.replaceAll(/[^A-Za-z0-9]+/g, "-") ?? "";
  const stem = (plain || (host ? `camera-${host}` : "camera")).slice(0, 60).replaceAll(/-+$/g, "");
  let id = stem;
  for (let number = 2; taken.includes(id); number += 1) id = `${stem}-${number}`;
  return id;
}
