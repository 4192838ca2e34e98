import { useTranslation } from "react-i18next";
import { Navigate, useSearchParams } from "react-router";
import { useOidcOffer, useSession, useSignIn } from "@/api/queries";
import { EntryPage, FormProblem, sentValues } from "@/components/entry-page";
import { useProblemText } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { Field } from "@/components/ui/field";
import { isOidcProblem, oidcStart } from "@/display/oidc";
import { usePageTitle } from "@/hooks/use-page-title";

/** As the server's `safe_target` has them (domain/oidc.py): browsers drop tabs and line ends out of an address, so that
 * `/`, a tab and `/evil.example` would lead to another site, and take `\` for `/`. */
const TARGET_MAX_CHARS = 1024;
const WITHIN_SITE = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** Where to go after signing in: only within this site, whatever the address says. */
export function safeTarget(next: string | null): string {
  return next && next.length <= TARGET_MAX_CHARS && WITHIN_SITE.test(next) ? next : "/";
}

export function SignInPage() {
  const { t, i18n } = useTranslation();
  const [address] = useSearchParams();
  const session = useSession();
  const offer = useOidcOffer();
  usePageTitle(t("signIn.title"));
  const target = safeTarget(address.get("next"));
  if (session.data) return <Navigate to={target} replace />;
  const problem = address.get("problem");
  const label = i18n.language === "ja" ? offer.data?.label_ja : offer.data?.label_en;
  return (
    <EntryPage title={t("signIn.title")} lead={t("signIn.lead")} footer={t("signIn.firstTime")}>
      {problem && <FormProblem text={t(`signIn.problem.${isOidcProblem(problem) ? problem : "other"}`)} />}
      {offer.data?.enabled && (
        <Button asChild variant={offer.data.passwords ? "outline" : "primary"}>
          <a href={oidcStart(offer.data.start_url, target)}>{label}</a>
        </Button>
      )}
      {!offer.isPending && offer.data?.passwords !== false && <PasswordForm />}
    </EntryPage>
  );
}

function PasswordForm() {
  const { t } = useTranslation();
  const signIn = useSignIn();
  const problemText = useProblemText();
  return (
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
      <Field label={t("signIn.password")} name="password" type="password" autoComplete="current-password" required />
      {signIn.error && <FormProblem text={problemText(signIn.error)} />}
      <Button type="submit" disabled={signIn.isPending}>
        {t("signIn.submit")}
      </Button>
    </form>
  );
}
