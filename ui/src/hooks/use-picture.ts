import { useEffect, useState } from "react";

export interface ShownPicture {
  src: string | null; // the newest one that was loaded
  failed: boolean; // the one that is wanted could not be loaded
}

/** A picture that is replaced only by one that is ready: no flicker, and the last good one stays. */
export function usePicture(wanted: string | null): ShownPicture {
  const [shown, setShown] = useState<ShownPicture>({ src: null, failed: false });
  useEffect(() => {
    if (!wanted) {
      setShown({ src: null, failed: false });
      return;
    }
    let left = false;
    const image = new Image();
    image.onload = () => !left && setShown({ src: wanted, failed: false });
    image.onerror = () => !left && setShown((before) => ({ ...before, failed: true }));
    image.src = wanted;
    return () => {
      left = true;
    };
  }, [wanted]);
  return shown;
}
