import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { useSetUp } from "@/api/queries";
import { Command } from "@/components/empty-state";
import { EntryPage, FormProblem, sentValues } from "@/components/entry-page";
import { useProblemText } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { Field } from "@/components/ui/field";
import { usePageTitle } from "@/hooks/use-page-title";
import { currentLanguage } from "@/i18n";

/** The one-time token is in the fragment, which browsers keep to themselves. */
export function tokenOf(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token");
}

export function SetUpPage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const setUp = useSetUp();
  const problemText = useProblemText();
  // Read once: the address is cleaned when it has served.
  const [token] = useState(() => tokenOf(location.hash));
  usePageTitle(t("setup.title"));
  const toSignIn = (
    <Link to="/sign-in" className="text-accent underline underline-offset-4">
      {t("setup.toSignIn")}
    </Link>
  );
  if (!token) {
    return (
      <EntryPage title={t("setup.title")} lead={t("setup.noToken")} footer={toSignIn}>
        <Command>camserver setup-link</Command>
      </EntryPage>
    );
  }
  return (
    <EntryPage title={t("setup.title")} lead={t("setup.lead")} footer={toSignIn}>
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          const { login = "", password = "", display_name = "" } = sentValues(event);
          setUp.mutate(
            { token, login, password, display_name, language: currentLanguage() },
            { onSuccess: () => navigate("/", { replace: true }) },
          );
        }}
      >
        <Field
          label={t("setup.login")}
          hint={t("setup.loginHint")}
          name="login"
          autoComplete="username"
          autoCapitalize="none"
          maxLength={128}
          required
          autoFocus
        />
        <Field label={t("setup.displayName")} name="display_name" autoComplete="name" maxLength={128} />
        <Field
          label={t("setup.password")}
          hint={t("setup.passwordHint")}
          name="password"
          type="password"
          autoComplete="new-password"
          maxLength={1024}
          required
        />
        {setUp.error && <FormProblem text={problemText(setUp.error)} />}
        <Button type="submit" disabled={setUp.isPending}>
          {t("setup.submit")}
        </Button>
      </form>
    </EntryPage>
  );
}
