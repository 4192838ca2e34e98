import type { Texts } from "../words";

export const ja = {
  kinds: {
    unreachable: "{{host}} に接続できません（{{cause}}）",
    noConnection: "{{host}} に {{seconds}} 秒以内に接続できませんでした",
    noAnalyzerAnswer: "解析サーバーから {{seconds}} 秒以内に応答がありませんでした",
    noAnswer: "{{host}} から {{seconds}} 秒以内に応答がありませんでした",
    untrusted: "{{host}} の証明書を信頼できません（{{cause}}）",
    redirect: "{{who}} が転送（{{status}}）を返しました。転送先のアドレスを設定してください",
    analyzerAnswered: "解析サーバーがエラー {{status}} を返しました: {{said}}",
    answeredBare: "{{who}} がエラー {{status}} を返しました",
    answered: "{{who}} がエラー {{status}} を返しました: {{said}}",
    slackRefused: "Slack（{{method}}）に拒否されました: {{said}}",
    recipientsRefused: "メールサーバー {{host}} がすべての宛先を拒否しました: {{said}}",
    brokerLogin: "MQTT ブローカー {{host}} がユーザー名またはパスワードを拒否しました。入力し直してください",
    brokerUntrusted:
      "MQTT ブローカー {{host}} の証明書を信頼できません（{{cause}}）。TLS、CA、ホスト名を確認してください",
    brokerAway: "MQTT ブローカー {{host}} に接続できないか、接続が切れました（{{cause}}）。自動で再試行します",
  },
  causes: {
    refused: "接続を拒否されました",
    reset: "接続が切られました",
    timedOut: "応答がありません",
    noRoute: "ネットワークが届きません",
    noName: "その名前のホストはありません",
    noNameNow: "ホスト名を今は調べられません",
    hungUp: "応答の前に接続が閉じられました",
  },
};

export const en: Texts<typeof ja> = {
  kinds: {
    unreachable: "{{host}} can't be reached ({{cause}})",
    noConnection: "No connection to {{host}} within {{seconds}} s",
    noAnalyzerAnswer: "The analyzer gave no answer within {{seconds}} s",
    noAnswer: "{{host}} gave no answer within {{seconds}} s",
    untrusted: "The certificate of {{host}} is not trusted ({{cause}})",
    redirect: "{{who}} answered with a redirect ({{status}}); enter the address it leads to",
    analyzerAnswered: "The analyzer answered with error {{status}}: {{said}}",
    answeredBare: "{{who}} answered with error {{status}}",
    answered: "{{who}} answered with error {{status}}: {{said}}",
    slackRefused: "Slack ({{method}}) refused: {{said}}",
    recipientsRefused: "The mail server {{host}} refuses every recipient: {{said}}",
    brokerLogin: "The MQTT broker {{host}} refuses user name or password; enter them again",
    brokerUntrusted:
      "The certificate of the MQTT broker {{host}} is not trusted ({{cause}}); check TLS, CA and the host's name",
    brokerAway: "The MQTT broker {{host}} can't be reached or went away ({{cause}}); it is tried again",
  },
  causes: {
    refused: "connection refused",
    reset: "connection reset",
    timedOut: "no answer",
    noRoute: "no route to it",
    noName: "there is no host of that name",
    noNameNow: "its name can't be looked up just now",
    hungUp: "it hung up before it answered",
  },
};

declare module "../page-word-names" {
  interface PageWords {
    troubles: typeof ja;
  }
}
