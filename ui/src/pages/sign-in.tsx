import { useTranslation } from "react-i18next";
import { Navigate, useSearchParams } from "react-router";
import { useSession, useSignIn } from "@/api/queries";
import { EntryPage, FormProblem, sentValues } from "@/components/entry-page";
import { useProblemText } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { Field } from "@/components/ui/field";
import { usePageTitle } from "@/hooks/use-page-title";

/** Where to go after signing in: only within this site, whatever the address says. */
export function safeTarget(next: string | null): string {
  return next && /^\/(?![/\\])/.test(next) ? next : "/";
}

export function SignInPage() {
  const { t } = useTranslation();
  const [address] = useSearchParams();
  const session = useSession();
  const signIn = useSignIn();
  const problemText = useProblemText();
  usePageTitle(t("signIn.title"));
  if (session.data) return <Navigate to={safeTarget(address.get("next"))} replace />;
  return (
    <EntryPage title={t("signIn.title")} lead={t("signIn.lead")} footer={t("signIn.firstTime")}>
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          const { login = "", password = "" } = sentValues(event);
          signIn.mutate({ login, password });
        }}
      >
        <Field
          label={t("signIn.login")}
          name="login"
          autoComplete="username"
          autoCapitalize="none"
          required
          autoFocus
        />
        <Field
          label={t("signIn.password")}
          name="password"
          type="password"
          autoComplete="current-password"
          required
        />
        {signIn.error && <FormProblem text={problemText(signIn.error)} />}
        <Button type="submit" disabled={signIn.isPending}>
          {t("signIn.submit")}
        </Button>
      </form>
    </EntryPage>
  );
}
