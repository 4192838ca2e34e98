import { useEffect, useRef } from "react";

/** Calls `seen` when the element comes near the screen; for lists that go on by themselves. */
export function useSeen<E extends Element>(seen: () => void, wanted: boolean) {
  const ref = useRef<E>(null);
  useEffect(() => {
    const element = ref.current;
    if (!element || !wanted) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) seen();
      },
      { rootMargin: "400px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [seen, wanted]);
  return ref;
}
