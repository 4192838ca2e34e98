import { X } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./button";
import { cn } from "./class-names";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  /** The title is read but not shown. */
  bare?: boolean;
  className?: string;
  children: ReactNode;
}

/**
 * The browser's own modal: it keeps the focus inside, closes by Esc, and needs no styles written into the page, which
 * the server's content policy would refuse. The focus goes back to where it was.
 */
export function Dialog({ open, onClose, title, bare = false, className, children }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog || !open) return;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    return () => {
      dialog.close();
      // It has left the page by now, and a browser gives the focus back from one that is still there.
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus();
    };
  }, [open]);
  if (!open) return null;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does for the keyboard what a click beside it does
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
      className={cn(
        "m-auto w-[min(32rem,calc(100vw-1.5rem))] rounded-xl border bg-surface p-0 text-text shadow-2xl backdrop:bg-black/60",
        className,
      )}
    >
      <div className={cn(!bare && "grid gap-4 p-5")}>
        <div className={cn("flex items-start justify-between gap-4", bare && "sr-only")}>
          <h2 id={id} className="font-semibold text-lg">
            {title}
          </h2>
          {!bare && (
            <Button
              variant="ghost"
              size="icon"
              className="-mt-1.5 -mr-2"
              aria-label={t("action.close")}
              onClick={onClose}
            >
              <X aria-hidden="true" />
            </Button>
          )}
        </div>
        {children}
      </div>
    </dialog>
  );
}

export function DialogButtons({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap justify-end gap-2">{children}</div>;
}
