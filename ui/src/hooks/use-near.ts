import { type RefObject, useEffect, useRef, useState } from "react";

/** What is this far from the screen is drawn already, so that nobody sees it come. */
const MARGIN = "600px 0px";

/** One observer for all: a wall has hundreds of tiles. */
const told = new Map<Element, (isNear: boolean) => void>();
let observer: IntersectionObserver | null = null;

function watch(element: Element, tell: (isNear: boolean) => void): () => void {
  told.set(element, tell);
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) told.get(target)?.(isIntersecting);
    },
    { rootMargin: MARGIN },
  );
  observer.observe(element);
  return () => {
    told.delete(element);
    observer?.unobserve(element);
    if (told.size > 0) return;
    observer?.disconnect();
    observer = null;
  };
}

/** Whether an element is on the screen or close to it; `first` is what counts until the browser has said so. */
export function useNear<E extends Element>(first: boolean): [RefObject<E | null>, boolean] {
  const ref = useRef<E>(null);
  const [isNear, setNear] = useState(first);
  useEffect(() => {
    const element = ref.current;
    return element ? watch(element, setNear) : undefined;
  }, []);
  return [ref, isNear];
}
