// Live view has an address of its own on every page: ?live=camera beside whatever the page itself has there.

const NAME = "live";

export const liveCameraOf = (params: URLSearchParams): string | null => params.get(NAME) || null;

/** A link's target that opens a camera's live view over the page that is shown. */
export function liveTarget(search: string, cameraId: string): { search: string } {
  const params = new URLSearchParams(search);
  params.set(NAME, cameraId);
  return { search: `?${params}` };
}

/** The page without it. */
export function withoutLive(params: URLSearchParams): URLSearchParams {
  const rest = new URLSearchParams(params);
  rest.delete(NAME);
  return rest;
}
