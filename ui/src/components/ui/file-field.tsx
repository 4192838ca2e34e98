import { FileUp } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { buttonVariants } from "./button";
import { cn } from "./class-names";

interface Props {
  label: string;
  hint?: string;
  accept: string;
  disabled?: boolean;
  onFile: (file: File) => void;
}

/**
 * A file to be chosen, or to be dropped here. The browser's own input lies above, unseen: its words are in the
 * browser's language, which need not be the reader's.
 */
export function FileField({ label, hint, accept, disabled = false, onFile }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const [name, setName] = useState("");
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      <div
        className={cn(
          "relative flex min-w-0 items-center gap-3 rounded-md text-sm has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-focus has-[:focus-visible]:outline-offset-2",
          disabled && "opacity-60",
        )}
      >
        <span aria-hidden="true" className={buttonVariants({ variant: "outline" })}>
          <FileUp />
          {t("action.chooseFile")}
        </span>
        <span aria-hidden="true" className={cn("min-w-0 truncate", !name && "text-quiet")}>
          {name || t("action.noFile")}
        </span>
        <input
          id={id}
          type="file"
          accept={accept}
          disabled={disabled}
          title={name || t("action.noFile")}
          aria-describedby={hint ? `${id}-hint` : undefined}
          onChange={(event) => {
            const [file] = event.target.files ?? [];
            // The same file may be chosen again after it was mended.
            event.target.value = "";
            if (!file) return;
            setName(file.name);
            onFile(file);
          }}
          className="absolute inset-0 size-full cursor-pointer opacity-0 file:cursor-pointer"
        />
      </div>
      {hint && (
        <p id={`${id}-hint`} className="text-quiet text-xs">
          {hint}
        </p>
      )}
    </div>
  );
}
