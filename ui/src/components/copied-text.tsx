import { Copy } from "lucide-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./ui/button";

/** Something that is shown once, to be taken elsewhere. */
export function CopiedText({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);
  const field = useRef<HTMLInputElement>(null);

  async function copy(): Promise<void> {
    // Selected, it can be copied by keys, too, where the browser refuses.
    field.current?.select();
    setCopied(await putOnClipboard(text));
  }

  return (
    <div className="flex items-start gap-2 rounded-md border bg-raised p-2">
      <input
        ref={field}
        readOnly
        value={text}
        aria-label={label}
        onFocus={(event) => event.target.select()}
        className="h-8 min-w-0 flex-1 bg-transparent px-1 font-mono text-sm"
      />
      <Button variant="outline" size="small" onClick={() => void copy()}>
        <Copy aria-hidden="true" />
        {t(copied ? "action.copied" : "action.copy")}
      </Button>
    </div>
  );
}

async function putOnClipboard(text: string): Promise<boolean> {
  // Browsers give the clipboard only to pages over https. On others what is selected is copied.
  if (!navigator.clipboard) return document.execCommand("copy");
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}
