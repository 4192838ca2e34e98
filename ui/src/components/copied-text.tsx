import { Copy } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./ui/button";

/** Something that is shown once, to be taken elsewhere. */
export function CopiedText({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);
  return (
    <div className="flex items-start gap-2 rounded-md border bg-raised p-2">
      <input
        readOnly
        value={text}
        aria-label={label}
        onFocus={(event) => event.target.select()}
        className="h-8 min-w-0 flex-1 bg-transparent px-1 font-mono text-sm"
      />
      <Button
        variant="outline"
        size="small"
        onClick={() =>
          // Browsers give the clipboard only to pages over https; the text can be selected all the same.
          void navigator.clipboard?.writeText(text).then(() => setCopied(true))
        }
      >
        <Copy aria-hidden="true" />
        {t(copied ? "action.copied" : "action.copy")}
      </Button>
    </div>
  );
}
