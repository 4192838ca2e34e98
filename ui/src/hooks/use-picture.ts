import { useEffect, useState } from "react";

export interface ShownPicture {
  src: string | null; // the newest one that was loaded
  failed: boolean; // the one that is wanted could not be loaded
}

/** A server that was busy or away has it later; one that is gone for good is not asked for for ever. */
const ATTEMPTS_MAX = 4;
const PAUSE_MS = 700;

/** A picture that is replaced only by one that is ready: no flicker, and the last good one stays. */
export function usePicture(wanted: string | null): ShownPicture {
  const [shown, setShown] = useState<ShownPicture>({ src: null, failed: false });
  useEffect(() => {
    if (!wanted) {
      setShown({ src: null, failed: false });
      return;
    }
    let left = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = (attempt: number) => {
      const image = new Image();
      image.onload = () => !left && setShown({ src: wanted, failed: false });
      image.onerror = () => {
        if (left) return;
        setShown((before) => ({ ...before, failed: true }));
        if (attempt < ATTEMPTS_MAX) timer = setTimeout(() => load(attempt + 1), PAUSE_MS * 3 ** attempt);
      };
      image.src = wanted;
    };
    load(1);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [wanted]);
  return shown;
}
