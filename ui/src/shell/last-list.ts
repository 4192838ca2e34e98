// The list that somebody came from: the page of one thing leads on to the next one of it, and back to where they were.

export interface LastList {
  /** Where the list is, with its filters. */
  address: string;
  /** The pages of what is in it, in its order. */
  pages: readonly string[];
}

/** What a link of a list says to the page that it opens. */
export const FROM_LIST = { fromList: true };
/** What the way back says to the list. */
export const BACK_TO_LIST = { backToList: true };

let last: LastList | null = null;
let seen: string | null = null;

export function rememberList(list: LastList): void {
  last = list;
}

/** The list, for a page that was opened from it; it remembers that page as the place where somebody is. */
export function listAround(page: string, state: unknown): LastList | null {
  if (!isSaid(state, "fromList") || !last?.pages.includes(page)) return null;
  seen = page;
  return last;
}

/** The page that somebody comes back from, for the list. */
export const cameBackFrom = (state: unknown): string | null => (isSaid(state, "backToList") ? seen : null);

function isSaid(state: unknown, name: string): boolean {
  return typeof state === "object" && state !== null && name in state;
}
