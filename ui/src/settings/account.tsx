import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSession } from "@/api/queries";
import {
  useAddToken,
  useChangePassword,
  useEndOtherSignIns,
  useRevokeToken,
  useSignIns,
  useTokens,
} from "@/api/settings";
import type { Token, TokenAsked } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopiedText } from "@/components/copied-text";
import { DialogForm } from "@/components/dialog-form";
import { sentValues } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { Loaded } from "@/components/loaded";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Dialog, DialogButtons } from "@/components/ui/dialog";
import { CheckField, Field } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import { Cell, Row } from "@/components/ui/table";
import { browserName } from "@/display/browser-name";
import { dateAndTime } from "@/display/times";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);
const SCOPES = [
  "read",
  "review",
  "investigate",
  "manage_cameras",
  "manage_workers",
  "manage_people",
  "manage_deliveries",
  "read_audit",
  "manage_system",
] as const;

/** The password, the browsers that are signed in, and tokens of whoever reads this. */
export function Account() {
  return (
    <div className="grid gap-5">
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <Password />
        <SignIns />
      </div>
      <Tokens />
    </div>
  );
}

function Password() {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const change = useChangePassword();
  return (
    <Card className="p-4">
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          const form = event.currentTarget;
          const { password = "", new_password = "" } = sentValues(event);
          change.mutate(
            { password, new_password },
            {
              onSuccess: () => {
                form.reset();
                tell({ text: t("passwordChanged") });
              },
            },
          );
        }}
      >
        <h2 className="font-semibold text-sm">{t("password")}</h2>
        <Field label={t("oldPassword")} name="password" type="password" autoComplete="current-password" required />
        <Field
          label={t("newPassword")}
          name="new_password"
          type="password"
          autoComplete="new-password"
          required
          hint={t("passwordHint")}
        />
        <SentProblem error={change.error} />
        <Button type="submit" variant="outline" className="justify-self-end" disabled={change.isPending}>
          {shared("action.change")}
        </Button>
      </form>
    </Card>
  );
}

function SignIns() {
  const { t } = useWords();
  const query = useSignIns();
  const failed = useTellFailure();
  const end = useEndOtherSignIns();
  return (
    <Card className="grid gap-3 p-4">
      <h2 className="font-semibold text-sm">{t("signIns")}</h2>
      <Loaded query={query} waiting={<Skeleton className="h-24 w-full" />}>
        {({ sign_ins }) => (
          <>
            <ul className="grid gap-2 text-sm">
              {sign_ins.map((one) => (
                <li key={one.id} className="grid">
                  <span className="flex flex-wrap items-center gap-2">
                    {browserName(one.user_agent) || t("unknownBrowser")}
                    {one.is_this && <Badge className="text-live">{t("thisOne")}</Badge>}
                  </span>
                  <span title={one.user_agent} className="truncate text-quiet text-xs">
                    <span className="font-mono">{one.address}</span> · <Age at={one.last_seen_at} />
                  </span>
                </li>
              ))}
            </ul>
            {sign_ins.length > 1 && (
              <Button
                variant="outline"
                size="small"
                className="justify-self-end"
                disabled={end.isPending}
                onClick={() =>
                  end.mutate(undefined, { onSuccess: () => tell({ text: t("endedOthers") }), onError: failed })
                }
              >
                {t("endOthers")}
              </Button>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Tokens() {
  const { t } = useWords();
  const query = useTokens();
  const tokens = query.data?.pages.flatMap((page) => page.tokens);
  const [adding, setAdding] = useState(false);
  const headings = [t("tokenName"), t("tokenScopes"), t("expires"), t("lastUsed"), ""];
  return (
    <section aria-labelledby="tokens-title">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <h2 id="tokens-title" className="font-semibold">
          {t("tokens")}
        </h2>
        <p className="text-quiet text-sm">{t("tokensLead")}</p>
        <Button variant="outline" size="small" className="ml-auto" onClick={() => setAdding(true)}>
          <Plus aria-hidden="true" />
          {t("addToken")}
        </Button>
      </div>
      <LoadedTable
        query={{ ...query, data: tokens }}
        label={t("tokens")}
        headings={headings}
        waitingRows={2}
        empty={
          <p className="rounded-xl border border-dashed px-4 py-8 text-center text-quiet text-sm">{t("noTokens")}</p>
        }
      >
        {(token) => <TokenRow key={token.token_uuid} token={token} />}
      </LoadedTable>
      <More query={query} />
      <Dialog open={adding} onClose={() => setAdding(false)} title={t("addToken")}>
        {adding && <NewToken onClose={() => setAdding(false)} />}
      </Dialog>
    </section>
  );
}

function TokenRow({ token }: { token: Token }) {
  const { t, i18n } = useWords();
  const revoke = useRevokeToken();
  const [asking, setAsking] = useState(false);
  const { name } = token;
  const known = SCOPES.filter((scope) => token.scopes.includes(scope));
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {name}
        <span className="block font-normal text-quiet text-xs">{token.login}</span>
      </Cell>
      <Cell column={1}>{known.map((scope) => t(`scope.${scope}`)).join(", ")}</Cell>
      <Cell column={2}>{dateAndTime(token.expires_at, i18n.language)}</Cell>
      <Cell column={3}>{token.last_used_at === null ? t("unused") : <Age at={token.last_used_at} />}</Cell>
      <Cell column={4}>
        <div className="flex sm:justify-end">
          <Button variant="ghost" size="small" aria-label={`${t("revoke")}: ${name}`} onClick={() => setAsking(true)}>
            {t("revoke")}
          </Button>
        </div>
        <ConfirmDialog
          open={asking}
          onClose={() => setAsking(false)}
          title={t("revokeTitle")}
          lead={t("revokeLead", { name })}
          action={t("revoke")}
          onConfirm={async () => {
            await revoke.mutateAsync(token.token_uuid);
            tell({ text: t("revoked", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const { data: session } = useSession();
  const add = useAddToken();
  if (add.data) {
    return (
      <div className="grid gap-4">
        <p className="text-sm">{t("tokenOnce")}</p>
        <CopiedText text={add.data.secret} label={t("tokens")} />
        <DialogButtons>
          <Button onClick={onClose}>{shared("action.close")}</Button>
        </DialogButtons>
      </div>
    );
  }
  return (
    <DialogForm
      sending={[add]}
      onClose={onClose}
      action={t("addToken")}
      onSend={(sent) => {
        const scopes = SCOPES.filter((scope) => sent[scope] === "on");
        const body: TokenAsked = { name: sent.name ?? "", days: Number(sent.days), scopes: [...scopes] };
        add.mutate(body);
      }}
    >
      <Field label={t("tokenName")} name="name" required maxLength={128} autoComplete="off" />
      <Field label={t("tokenDays")} name="days" type="number" min={1} max={1098} defaultValue={90} required />
      <fieldset className="grid gap-2 sm:grid-cols-2">
        <legend className="mb-1 font-medium text-sm">{t("tokenScopes")}</legend>
        {SCOPES.filter((scope) => session?.permissions.includes(scope)).map((scope) => (
          <CheckField key={scope} label={t(`scope.${scope}`)} name={scope} defaultChecked={scope === "read"} />
        ))}
      </fieldset>
    </DialogForm>
  );
}
