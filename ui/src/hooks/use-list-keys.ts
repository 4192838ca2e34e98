import { type RefObject, useEffect, useRef, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { afterDone, stepped } from "@/display/list-place";
import { useShortcuts } from "@/shell/keyboard";
import { cameBackFrom, FROM_LIST, rememberList } from "@/shell/last-list";

interface ListKeys<T> {
  items: readonly T[];
  idOf: (item: T) => string;
  /** The page of an item; null: it has none. */
  pageOf: (item: T) => string | null;
  /** What R does to the item that somebody is at; null: they may not. */
  mark: ((item: T) => void) | null;
  /** Whether a marked item goes out of this list. */
  leaves: boolean;
  /** What the keys do, in the reader's language. */
  names: { next: string; previous: string; open: string; mark: string };
}

/**
 * J and K go through a list, O opens, R marks and goes on. Gives the item that somebody is at, which is the one they
 * came back from at first.
 */
export function useListKeys<T>({ items, idOf, pageOf, mark, leaves, names }: ListKeys<T>): T | undefined {
  const navigate = useNavigate();
  const { pathname, search, state } = useLocation();
  const [at, setAt] = useState<string | null>(() => {
    const page = cameBackFrom(state);
    const item = page === null ? undefined : items.find((one) => pageOf(one) === page);
    return item === undefined ? null : idOf(item);
  });
  useEffect(() => {
    rememberList({ address: pathname + search, pages: items.map(pageOf).filter((page) => page !== null) });
  }, [pathname, search, items, pageOf]);
  const current = items.find((one) => idOf(one) === at);
  const ids = () => items.map(idOf);
  const open = () => {
    const page = current && pageOf(current);
    if (page) void navigate(page, { state: FROM_LIST });
  };
  const done = () => {
    if (!current) return;
    setAt(afterDone(ids(), idOf(current), leaves));
    mark?.(current);
  };
  const isAt = () => current !== undefined;
  useShortcuts([
    { key: "j", name: names.next, run: () => setAt(stepped(ids(), at, 1)) },
    { key: "k", name: names.previous, run: () => setAt(stepped(ids(), at, -1)) },
    { key: "o", name: names.open, when: isAt, run: open },
    ...(mark ? [{ key: "r", name: names.mark, when: isAt, run: done }] : []),
  ]);
  return current;
}

/** Keeps what keys came to clear of the page's head, and of the tabs below it on a telephone. */
export const CAME_TO = "scroll-mt-17 scroll-mb-20 sm:scroll-mb-4";

/** Brings what keys came to into sight, and the focus to its link. */
export function useCameTo<E extends HTMLElement>(chosen: boolean): RefObject<E | null> {
  const ref = useRef<E>(null);
  useEffect(() => {
    if (!chosen) return;
    ref.current?.scrollIntoView?.({ block: "nearest" });
    ref.current?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  }, [chosen]);
  return ref;
}
