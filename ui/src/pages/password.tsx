import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { useChoosePassword, usePasswordLink } from "@/api/queries";
import { EntryPage, FormProblem, sentValues } from "@/components/entry-page";
import { useProblemText } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { Field } from "@/components/ui/field";
import { usePageTitle } from "@/hooks/use-page-title";
import { tokenOf } from "./setup";

/** Where a one-time link of an administrator leads: somebody chooses a password and is signed in with it. */
export function PasswordPage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const problemText = useProblemText();
  // Read once: the address is cleaned when it has served.
  const [token] = useState(() => tokenOf(location.hash) ?? "");
  const link = usePasswordLink(token);
  const choose = useChoosePassword();
  usePageTitle(t("password.title"));
  const toSignIn = (
    <Link to="/sign-in" className="text-accent underline underline-offset-4">
      {t("setup.toSignIn")}
    </Link>
  );
  if (!token) return <EntryPage title={t("password.title")} lead={t("password.noToken")} footer={toSignIn} />;
  if (link.error) {
    return (
      <EntryPage title={t("password.title")} lead={t("password.noToken")} footer={toSignIn}>
        <FormProblem text={problemText(link.error)} />
      </EntryPage>
    );
  }
  const login = link.data?.login ?? "";
  return (
    <EntryPage title={t("password.title")} lead={t("password.lead", { login })} footer={toSignIn}>
      <form
        className="grid gap-4"
        aria-busy={link.isPending}
        onSubmit={(event) => {
          const { password = "" } = sentValues(event);
          choose.mutate({ token, login, password }, { onSuccess: () => navigate("/", { replace: true }) });
        }}
      >
        {/* Password managers keep the password under this name. */}
        <input type="hidden" name="login" autoComplete="username" value={login} />
        <Field
          label={t("setup.password")}
          hint={t("setup.passwordHint")}
          name="password"
          type="password"
          autoComplete="new-password"
          maxLength={1024}
          required
          autoFocus
        />
        {choose.error && <FormProblem text={problemText(choose.error)} />}
        <Button type="submit" disabled={choose.isPending || link.isPending}>
          {t("password.submit")}
        </Button>
      </form>
    </EntryPage>
  );
}
