import type { ReactNode } from "react";
import { Field } from "@/components/ui/field";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import type { StepProps } from "./draft";

const useWords = addWords("cameras", words);

export function StepButtons({ children }: { children: ReactNode }) {
  return <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>;
}

export function LoginFields({ draft, onChange }: Pick<StepProps, "draft" | "onChange">) {
  const { t } = useWords();
  return (
    <fieldset className="grid gap-3">
      <legend className="mb-1 font-medium text-sm">{t("login")}</legend>
      <p className="text-quiet text-xs">{t("loginHint")}</p>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field
          label={t("user")}
          value={draft.user}
          onChange={(event) => onChange({ user: event.target.value })}
          autoComplete="off"
          autoCapitalize="none"
        />
        <Field
          label={t("password")}
          type="password"
          value={draft.password}
          onChange={(event) => onChange({ password: event.target.value })}
          autoComplete="new-password"
        />
      </div>
    </fieldset>
  );
}
