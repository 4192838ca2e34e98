import { Camera, Languages, LogOut, type LucideIcon, Moon, Search as SearchIcon } from "lucide-react";
import { type KeyboardEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { useCameras, useSignOut } from "@/api/queries";
import type { Session } from "@/api/types";
import { cn } from "@/components/ui/class-names";
import { Dialog } from "@/components/ui/dialog";
import { applyTheme, currentTheme } from "@/display/theme";
import { chooseLanguage, LANGUAGES } from "@/i18n";
import { isComposing } from "./keyboard";
import { matches } from "./matching";
import { mayOpen, NAV } from "./page-table";

interface Choice {
  id: string;
  text: string;
  group: string;
  Icon: LucideIcon;
  /** Also found by these. */
  words?: string;
  run: () => void;
}

/** More than anybody reads; hundreds of cameras are found by a letter or two. */
const SHOWN_MAX = 40;

/** Goes to a page or a camera, or does something, by a few letters of its name. */
export function Palette({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation();
  const id = useId();
  const choices = useChoices(session);
  const [wanted, setWanted] = useState("");
  const [place, setPlace] = useState(0);
  const found = choices.filter((one) => matches(`${one.text} ${one.words ?? ""}`, wanted)).slice(0, SHOWN_MAX);
  const current = Math.min(place, found.length - 1);

  function choose(choice: Choice | undefined): void {
    if (!choice) return;
    onClose();
    choice.run();
  }

  function step(event: KeyboardEvent): void {
    // Enter ends a word that is being composed; it does not choose.
    if (isComposing(event.nativeEvent)) return;
    if (event.key === "ArrowDown") setPlace((current + 1) % Math.max(1, found.length));
    else if (event.key === "ArrowUp") setPlace((current - 1 + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") choose(found[current]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog open onClose={onClose} title={t("palette.title")} bare className="mt-[12vh]">
      <div className="flex items-center gap-2 border-b px-4">
        <SearchIcon aria-hidden="true" className="size-4 shrink-0 text-quiet" />
        <input
          autoFocus
          type="text"
          role="combobox"
          aria-label={t("palette.title")}
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={found[current] ? `${id}-${found[current].id}` : undefined}
          placeholder={t("palette.placeholder")}
          value={wanted}
          onChange={(event) => {
            setWanted(event.target.value);
            setPlace(0);
          }}
          onKeyDown={step}
          className="h-12 w-full bg-transparent text-base outline-none placeholder:text-quiet"
        />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label={t("palette.title")}
        className="max-h-[50vh] overflow-y-auto p-2"
      >
        {found.map((choice, number) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are the input's, which keeps the focus
          <div
            key={choice.id}
            id={`${id}-${choice.id}`}
            role="option"
            tabIndex={-1}
            aria-selected={number === current}
            onClick={() => choose(choice)}
            ref={number === current ? scrollTo : undefined}
            onMouseMove={() => setPlace(number)}
            className={cn(
              "flex cursor-pointer items-center gap-3 rounded-md px-3 py-2 text-sm [&_svg]:size-4",
              number === current && "bg-accent-soft",
            )}
          >
            <choice.Icon aria-hidden="true" className="shrink-0 text-quiet" />
            <span className="min-w-0 flex-1 truncate">{choice.text}</span>
            <span className={cn("text-xs", number === current ? "text-text" : "text-quiet")}>{choice.group}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-4 pb-6 text-center text-quiet text-sm">{t("palette.nothing")}</p>}
    </Dialog>
  );
}

/** Keys may go beyond what is in sight. */
const scrollTo = (element: HTMLElement | null) => element?.scrollIntoView?.({ block: "nearest" });

function useChoices(session: Session): Choice[] {
  const { t, i18n } = useTranslation();
  const navigate = useNavigate();
  const signOut = useSignOut();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const isDark = currentTheme() === "dark";
  return [
    ...NAV.filter((entry) => mayOpen(session, entry)).map(({ name, to, Icon }) => ({
      id: `page-${name}`,
      text: t(`nav.${name}`),
      // Found in either language, whichever one writes.
      words: [name, ...LANGUAGES.map((language) => i18n.getFixedT(language)(`nav.${name}`))].join(" "),
      group: t("palette.pages"),
      Icon,
      run: () => void navigate(to),
    })),
    ...cameras.map(({ camera_id, name }) => ({
      id: `camera-${camera_id.replaceAll(/[^\w-]/g, "_")}`,
      text: name,
      words: camera_id,
      group: t("palette.cameras"),
      Icon: Camera,
      run: () => void navigate(`/cameras/${encodeURIComponent(camera_id)}`),
    })),
    {
      id: "theme",
      text: t(isDark ? "theme.toLight" : "theme.toDark"),
      words: "theme",
      group: t("palette.actions"),
      Icon: Moon,
      run: () => applyTheme(isDark ? "light" : "dark"),
    },
    {
      id: "language",
      text: i18n.language === "ja" ? "English" : "日本語",
      words: "language 言語",
      group: t("palette.actions"),
      Icon: Languages,
      run: () => chooseLanguage(i18n.language === "ja" ? "en" : "ja"),
    },
    {
      id: "sign-out",
      text: t("account.signOut"),
      words: "sign out",
      group: t("palette.actions"),
      Icon: LogOut,
      run: () => signOut.mutate(),
    },
  ];
}
