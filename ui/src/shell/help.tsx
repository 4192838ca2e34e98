import { useTranslation } from "react-i18next";
import { Dialog } from "@/components/ui/dialog";
import { useActiveShortcuts } from "./keyboard";

const NAMES: Record<string, string> = {
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  " ": "Space",
};

const isApple = () => /Mac|iP(hone|ad|od)/.test(navigator.platform);
export const commandKeys = () => (isApple() ? "⌘K" : "Ctrl K");

const LINES = "grid grid-cols-[4rem_1fr] items-center gap-x-4 gap-y-2 text-sm";

/** The keys that work on the page behind it. */
export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const shortcuts = useActiveShortcuts();
  const linesOf = (everywhere: boolean) =>
    shortcuts
      .filter((one) => one.shown !== "" && (one.everywhere ?? false) === everywhere)
      .map(({ key, name, shown }) => (
        <Line key={`${key} ${name}`} keys={shown ?? NAMES[key] ?? key.toUpperCase()} name={name} />
      ));
  const ofPage = linesOf(false);
  return (
    <Dialog open={open} onClose={onClose} title={t("help.title")}>
      {ofPage.length > 0 && (
        <>
          <h3 className="font-medium text-quiet text-xs">{t("help.ofPage")}</h3>
          <dl className={LINES}>{ofPage}</dl>
          <h3 className="font-medium text-quiet text-xs">{t("help.everywhere")}</h3>
        </>
      )}
      <dl className={LINES}>
        <Line keys={commandKeys()} name={t("help.palette")} />
        {linesOf(true)}
        <Line keys="Esc" name={t("help.close")} />
      </dl>
      <p className="text-quiet text-xs">{t("help.writing")}</p>
    </Dialog>
  );
}

function Line({ keys, name }: { keys: string; name: string }) {
  return (
    <>
      <dt>
        <kbd className="inline-block min-w-8 rounded-md border bg-raised px-2 py-0.5 text-center font-mono text-xs">
          {keys}
        </kbd>
      </dt>
      <dd>{name}</dd>
    </>
  );
}
