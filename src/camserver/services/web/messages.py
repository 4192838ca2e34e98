"""What people read when something is refused, in Japanese and English.

Errors are raised in English where they arise and may carry a `reason`; here a reason, or else the error's code, has
its Japanese. English readers get the error's own message. `{name}` is filled from the error's details.
"""

from collections.abc import Mapping
from typing import Literal

from camserver.base.errors import CamError

Language = Literal["ja", "en"]

_JA_BY_REASON: Mapping[str, str] = {
    "password_short": "パスワードが短すぎます。{chars_min}文字以上にしてください。",
    "password_long": "パスワードが長すぎます。{chars_max}文字以下にしてください。",
    "password_is_login": "パスワードがログイン名と同じです。別のものにしてください。",
    "password_repeats": "パスワードの文字の種類が少なすぎます。4種類以上の文字を使ってください。",
    "login_form": "ログイン名に使えるのは、半角の英数字と . _ @ + - です。",
    "wrong_login": "ログイン名またはパスワードが違います。",
    "passwords_off": "パスワードでのサインインは無効です。もう一方のボタンからサインインしてください。",
    "oidc_off": "外部アカウントでのサインインが設定されていません（設定 [oidc]）。",
    "oidc_subject": "外部アカウントの識別子（sub）は、半角の印字可能な文字で255文字以下にしてください。",
    "subject_taken": "この外部アカウントは、ほかのユーザーに結び付けられています。先に解除してください。",
    "too_many_tries": "サインインの試行が多すぎます。{retry_after_sec}秒待ってからもう一度お試しください。",
    "sign_in_busy": "サインインが混み合っています。数秒待ってからもう一度お試しください。",
    "wrong_password": "現在のパスワードが違います。もう一度お試しください。",
    "password_link": "リンクが正しくないか、使用済みか、期限切れです。管理者に新しいリンクを依頼してください。",
    "needs_session": "この操作は、ブラウザーでサインインした人だけが行えます。",
    "bad_token": "トークンが正しくないか、無効か、期限切れです。`camserver token add` で新しく作ってください。",
    "role_above": "この役割（{role}）の人については、同じ役割以上の人だけが変更できます。",
    "role_reaches_all": "役割 {role} はすべてを担当します。担当を限れるのは site_manager と viewer だけです。",
    "no_scope": "トークンでできることを、少なくとも一つ指定してください。",
    "scope_beyond": "トークンの持ち主またはあなたに許されていないこと（{scope}）が含まれています。",
    "no_user": "ユーザー「{user}」はいません。",
    "login_taken": "このログイン名は使われています。別の名前にしてください。",
    "users_full": "ユーザー数が上限（{most}人）に達しています。",
    "user_is_self": "自分の権限は自分では減らせません。ほかの管理者に依頼してください。",
    "last_admin": "最後のシステム管理者です。先に別のシステム管理者を作ってください。",
    "granted_to_all": "担当を限らない人に、サイトやカメラを個別に割り当てることはできません。",
    "grants_full": "個別に割り当てられるのは {most} 件までです。サイト単位で割り当ててください。",
    "no_token": "このトークンはないか、すでに無効です。",
    "api_tokens_full": "トークンの数が上限（{most}件）に達しています。使っていないものを無効にしてください。",
    "no_owner": "どのユーザーのトークンかを指定してください。",
    "site_taken": "サイト「{site}」はすでにあるか、以前ありました。別の名前にしてください。",
    "role_not_here": "役割 {role} は、最初のテナントの人だけが持てます。tenant_admin を使ってください。",
    "quota": "テナントの上限（{quota}）に達しています：{most} のうち {used}。不要なものを削除するか、"
    "サーバーの管理者に相談してください。",
    "not_home": "テナントを管理できるのは、最初のテナントの人だけです。",
    "no_tenant": "テナント「{tenant}」はありません。",
    "tenant_taken": "テナント「{tenant}」はすでにあります。別の名前にしてください。",
    "tenant_name": "テナントの名前が空か、長すぎるか、使えない文字を含んでいます。",
    "tenants_full": "テナントの数が上限（{most}件）に達しています。",
    "tenant_is_home": "最初のテナントは、停止も消去もできません。",
    "tenant_off": "テナント「{tenant}」は停止中のため、リンクは使えません。先に有効にしてください。",
    "not_tenant_admin": "{login} はこのテナントの管理者ではありません（役割 {role}）。"
    "管理者か、まだ使われていないログイン名を指定してください。",
    "admin_off": "{login} は無効になっているため、リンクは使えません。"
    "別の管理者か、まだ使われていないログイン名を指定してください。",
    "tenant_erasing": "このテナントは消去中です。変更できません。",
    "not_confirmed": "消去は取り消せません。確認のため、テナントの名前をそのまま入力してください。",
    "cases_held": "保全中の事案が {cases} 件あります。保全を解くか、それらも消去すると指定してください。",
    "sites_full": "サイトの数が上限（{most}件）に達しています。",
    "site_in_use": "サイト「{site}」にはカメラ {cameras} 台、ワーカー {workers} 台があります。"
    "先に移すか削除してください。",
    "last_site": "最後のサイトは削除できません。名前を変えてください。",
    "site_name": "サイトの名前が空か、表示できない文字を含んでいます。",
    "no_zone": "タイムゾーン「{zone}」はありません。Asia/Tokyo のような名前を使ってください。",
    "setup_unknown": "セットアップ用リンクが正しくありません。リンク全体をコピーして開き直してください。",
    "setup_used": "このセットアップ用リンクは使用済みです。`camserver setup-link` で新しいリンクを作ってください。",
    "setup_expired": "セットアップ用リンクの期限（1時間）が切れています。"
    "`camserver setup-link` で新しいリンクを作ってください。",
    "setup_admin_exists": "セットアップは完了しています。サインインしてください。",
    "csrf": "ページの有効期限が切れています。再読み込みしてからもう一度お試しください。",
    "foreign_origin": "別のサイトからの要求は受け付けません。このサーバーのページを直接開いてください。",
    "wrong_host": "このホスト名では利用できません。設定 web.allowed_hosts に追加してください。",
    "too_large": "送信データが大きすぎます（上限 {bytes_max} バイト）。",
    "too_slow": "送信に時間がかかりすぎました。もう一度お試しください。",
    "no_worker": "ワーカー「{worker_id}」はありません。",
    "worker_other_site": "ワーカー「{worker_id}」はカメラと別のサイトにあります。同じサイトのものを選んでください。",
    "worker_draining": "ワーカー「{worker_id}」は退避中のため、カメラを受け持てません。",
    "worker_full": "ワーカー「{worker_id}」は満杯です（{slots} 台中 {used} 台）。",
    "camera_pinned": "カメラ「{camera_id}」は別のワーカーに固定されています。先に固定を解除してください。",
    "tls_off": "ほかのマシンからの接続が無効です。[control] の tls_port と tls_names を設定し、"
    "サーバーを再起動してください。",
    "tokens_full": "未使用のトークンが上限（{most}件）に達しています。期限が切れるまでお待ちください。",
    "which_site": "どのサイトのワーカーか、名前またはIDで指定してください。",
    "worker_elsewhere": "ワーカー「{worker_id}」は別のサイトにあります。サイトは変えられないため、"
    "別の名前にしてください。",
    "role_beyond_scopes": "{role} にできること（{scope} など）がトークンの権限に含まれていません。"
    "その役割の権限をすべて含むトークンを使ってください。",
    "token_by_token": "トークンでほかのトークンを作成・失効できるのは manage_people を含む場合だけです。"
    "サインインして行ってください。",
    "password_moved": "同時にパスワードが変更されたか、サインインが終了しました。もう一度サインインしてください。",
    "suggestion_taken": "権限のない別のカメラが手動で選ばれています。終わるまで待つか、選んだ人に確認してください。",
    "no_certificate": "ワーカー「{worker_id}」には失効させる証明書がありません。",
    "key_not_ours": "鍵は設定で指定されています。新しい鍵と、古い鍵（server.credential_key_previous）を設定して"
    "サーバーを再起動してから、もう一度実行してください。",
    "no_camera": "カメラ「{camera_id}」はありません。",
    "no_picture": "カメラ「{camera_id}」の画像はまだありません。",
    "no_site": "サイト「{site}」はありません。",
    "no_event": "このイベントはありません。保存期間を過ぎた可能性があります。",
    "no_incident": "このインシデントはありません。保存期間を過ぎた可能性があります。",
    "no_frame": "この画像はありません。保存期間を過ぎた可能性があります。",
    "no_frame_picture": "この種類の画像（{kind}）はありません。",
    "no_job": "この画像の解析ジョブはありません。保存期間を過ぎた可能性があります。",
    "job_not_given_up": "キューに戻せるのは、失敗または見送りになったジョブだけです。",
    "no_receiver": "この送り先はありません。一覧を開き直してください。",
    "receiver_exists": "同じ名前の送り先があります。別の名前にしてください。",
    "receivers_full": "送り先の数が上限に達しています。使っていないものを削除してください。",
    "receiver_needs_admin": "この種類の送り先を管理できるのはシステム管理者だけです。",
    "receiver_kind": "この種類の送り先は、このバージョンでは使えません。",
    "receiver_name": "送り先の名前が空か、表示できない文字を含んでいます。",
    "receiver_fields": "送り先の設定に誤りがあります: {named}",
    "no_delivery": "この配信はありません。保存期間を過ぎた可能性があります。",
    "delivery_not_dead": "キューに戻せるのは、失敗した配信だけです。",
    "delivery_without_receiver": "この配信の送り先は削除されています。",
    "no_clip": "このイベントの動画クリップはありません。",
    "bad_range": "動画クリップは {bytes} バイトです。その範囲は読み出せません。",
    "picture_gone": "この画像または動画のファイルが失われています。管理者にお問い合わせください。",
    "converting_busy": "動画の変換が混み合っています。少し待つか、そのままダウンロードしてください。",
    "drawing_busy": "画像の描画が混み合っています。数秒待ってからもう一度お試しください。",
    "picture_unreadable": "この画像は読み取れないため、枠を描けません。",
    "no_clip_boxes": "動画クリップに枠は描けません。",
    "no_case": "この案件はありません。",
    "no_case_item": "この案件に、その証拠はありません。",
    "case_title": "案件の名前を入力してください。",
    "case_title_long": "案件の名前が長すぎます。{chars_max}文字以下にしてください。",
    "case_note": "メモを入力してください。",
    "case_note_long": "メモが長すぎます。{chars_max}文字以下にしてください。",
    "case_notes_full": "この案件のメモは上限（{notes_max}件）に達しています。",
    "case_closed": "この案件は終了しています。再開してからもう一度お試しください。",
    "case_on_hold": "この案件は保全中のため、何も取り出せません。先に保全を終えてください。",
    "case_full": "この案件の証拠は上限（{items_max}件）に達しています。別の案件を作ってください。",
    "case_out_of_reach": "この案件には閲覧できないサイトの証拠があります。すべて見られる人に依頼してください。",
    "exports_full": "同時に書き出せる数を超えています。しばらくしてからもう一度お試しください。",
    "scoring_off": "言語モデルが設定されていません（設定 [llm]）。",
    "scoring_sheets_full": "保存できるシートの上限に達しています。不要なシートを削除してください。",
    "scoring_not_coming": "このシートはすでにすべて届いています。",
    "scoring_part": "シートの断片の順番または大きさが正しくありません。",
    "scoring_not_looked": "シートの確認がまだか、このままでは採点できません。",
    "scoring_unpriced": "このモデルの価格が不明なため、予算は指定できません。"
    "設定 [llm] の price_in と price_out を指定してください。",
    "scoring_not_over": "このシートの採点（{run_uuid}）がまだ終わっていません。続けるか、中止してください。",
    "scoring_no_google": "Googleスプレッドシートのリンクではないか、鍵が設定されていません"
    "（drive.credentials_file）。",
    "scoring_file_kind": "シートのファイル名の末尾は {endings} のいずれかにしてください。",
    "scoring_google_home": "Googleスプレッドシートはこのサーバーの鍵で開くため、最初のテナントだけが使えます。"
    "ファイルをアップロードしてください。",
    "scoring_folder": "サーバーのフォルダーは、設定されている場合に最初のテナントだけが使えます。",
    "scoring_no_file": "サーバーのフォルダーにそのファイルはありません。",
    "scoring_size": "シートの大きさは1～{bytes_max}バイトにしてください。",
    "no_scoring_sheet": "このシートはありません。",
    "no_scored_sheet": "記入済みのシートはまだありません。採点が止まるか終わると作られます。",
    "score_category": "カテゴリーの名前が正しくありません。200文字以内の異なる名前を1～50個指定してください。",
    "score_filter": "スコアの条件は「カテゴリー>=0.8」または「カテゴリー<=0.2」の形で指定してください（0～1）。",
    "scoring_over": "この採点はすでに終わっています。新しく始めてください。",
    "case_unchanged": "変更する内容がありません。",
    "case_media": "この画像または動画は案件の証拠です。閲覧には調査の権限が必要です。",
    "case_link": "案件の証拠にはリンクを作れません。サインインしてご覧ください。",
    "link_bad": "リンクが正しくありません。リンクをもう一度受け取ってください。",
    "link_too_long": "共有の権限がない人が作るリンクの有効期間は {seconds_max} 秒までです（ttl_sec）。短くするか、"
    "共有できる人に依頼してください。",
    "link_expired": "リンクの期限が切れています。新しいリンクを受け取ってください。",
    "feed_full": "接続数が上限に達しています。使っていないタブを閉じてください。",
    "camera_exists": "カメラID「{camera_id}」はすでに使われています。別のIDにしてください。",
    "bad_cursor": "ページの位置が正しくありません。最初から開き直してください。",
    "span_too_long": "一度に集計できるのは{days}日分までです。期間を短くしてください。",
    "hours_too_long": "一度に表示できるのは{hours}時間分までです。期間を短くするか、目盛りを粗くしてください。",
    "times_order": "開始（from）は終了（to）より前にしてください。",
    "day_or_times": "日付（day）と期間（from・to）は、どちらか一方を指定してください。",
    "no_day": "その日付（day）はありません。",
    "bad_text": "検索する言葉（text）に文字または数字を含めてください。",
    "text_words": "検索する言葉（text）が多すぎます。{words_max}語以内にしてください。",
    "search_investigates": "「{field}」で検索できるのは、調査の権限がある人だけです。",
    "not_json": "本文がJSONとして送られていません。Content-Type を application/json にしてください。",
    "bad_body": "リクエストの本文を読めません。JSONで送ってください。",
    "bad_fields": "入力内容に誤りがあります: {named}",
    "unknown_parameter": "「{named}」という項目はありません。「?」の後に使えるのは {known} です。",
    "parameter_twice": "「{named}」には値を1つだけ指定してください。",
    "no_parameters": "「{named}」という項目はありません。このアドレスの「?」の後には何も指定できません。",
    "url_form": "カメラのURLが正しくありません。",
    "url_never": "リンクローカルやマルチキャストのアドレスには接続できません。別のアドレスにしてください。",
    "url_scheme": "この形式のURLは使えません。使えるのは {schemes} です。",
    "url_type": "カメラの種類とURLの形式が合っていません。",
    "url_two_credentials": "認証情報がURLと入力欄の両方にあります。どちらか一方にしてください。",
    "sub_other_host": "ログインのあるカメラでは、メインとサブのアドレスは同じホストにしてください。",
    "sub_other_login": "メインとサブのストリームのユーザー名とパスワードは同じにしてください。",
    "polygon_points": "{place}: 多角形の点は3個から64個までです。",
    "polygon_outside": "{place}: 点は画像内の位置を0から1の [x, y] で指定してください。",
    "polygon_line": "{place}: 点が一直線上にあるため、領域になりません。",
    "polygon_total": "マスクとゾーンの点が多すぎます。合計2048個以下にしてください。",
    "zone_names": "同じ名前のゾーンがあります。別の名前にしてください。",
    "errands_full": "実行中の依頼が多すぎます。終わるまで待ってからもう一度お試しください。",
    "no_errand": "この依頼はありません。結果は1時間で消えます。もう一度実行してください。",
    "no_errand_picture": "この依頼には画像がありません。",
    "no_sub": "カメラ「{camera_id}」にサブストリームはありません。",
    "no_reference": "カメラ「{camera_id}」のONVIF識別子が不明です。つながるときに一度プローブするか、"
    "アドレスを手で変更してください。",
    "no_ip_address": "IPアドレスを指定してください。",
    "move_not_proven": "別のアドレスでこのカメラを確認した、10分以内のプローブがありません。もう一度探してください。",
    "source_needs_admin": "この種類のカメラを追加できるのはシステム管理者だけです。",
    "push_needs_person": "ブラウザ通知を使えるのは、サインインした人だけです。",
    "push_endpoint": "ブラウザから受け取った通知先のアドレスが正しくありません。",
    "push_keys": "ブラウザから受け取った鍵が正しくありません。通知を一度オフにしてから、もう一度オンにしてください。",
    "no_push_subscription": "このブラウザの登録はありません。",
    "mqtt_prefix": "MQTTのトピックの接頭辞に使えるのは、英数字と _ . ~ - を / で区切ったものです。",
    "no_rule": "この通知ルールはありません。一覧を読み直してください。",
    "rule_names": "ルールが指定している「{named}」はありません。",
    "rules_full": "通知ルールは{most}件までです。不要なものを削除してください。",
    "rules_moved": "通知ルールがほかの人に変更されました。一覧を読み直してからもう一度並べ替えてください。",
    "review_needs_person": "確認の記録は利用者本人のものです。サインインしてから操作してください。",
    "no_snooze": "この一時停止はありません。一覧を読み直してください。",
    "snooze_over": "一時停止の終わりには、これからの時刻を指定してください。",
    "snoozes_full": "一時停止は{most}件までです。不要なものを終了してください。",
    "all_sites": "担当外の拠点まで止まります。担当の拠点またはカメラを指定してください。",
    "no_archive_file": "この画像のコピーは保管先にありません。",
    "archive_away": "コピーの保管先に接続できません。少し待ってからもう一度お試しください。",
    "whole_tenant": "すべての拠点に影響する変更です。全拠点の管理者に依頼してください。",
    "rule_event": "「{named}」というイベントの種類はありません。使えるのは {known} です。",
    "bad_character": "使えない文字（U+0000）が含まれています。取り除いてからもう一度お試しください。",
    "too_many_links": "リンクの操作が多すぎます。{retry_after_sec}秒待ってからもう一度お試しください。",
    "no_thumb_boxes": "小さい画像には枠を描けません。`boxes` を外してください。",
    "shares_off": "共有は無効になっています（media.shares）。管理者にお問い合わせください。",
    "shares_of_managers": "共有できるのはカメラを管理する人だけです。",
    "case_share": "ケースに属するものは共有できません。",
    "shares_full": "共有の数が上限（{most}件）に達しています。不要なものを終了してください。",
    "no_share": "この共有はないか、すでに終了しています。",
    "share_over": "このアドレスは正しくないか、共有が終わりました。送った人に確認してください。",
    "share_no_picture": "この共有に画像{number}はありません。共有のページを開き直してください。",
    "share_no_clip": "この共有に動画はありません。共有のページを開き直してください。",
    "bad_request_key": "Idempotency-Key は128文字以内の半角英数字・記号にしてください。",
    "request_key_refused": "この操作に Idempotency-Key は使えません。再送の前に状態を確認してください。",
    "request_key_reused": "この Idempotency-Key は別のリクエストに使われています。新しいキーを使ってください。",
    "request_keys_full": "Idempotency-Key 付きのリクエストが多すぎます。必要なときだけ付けてください。",
    "repeat_secret": "この操作は完了しています。秘密の値は保存されないため、再表示できません。",
    "repeat_no_answer": "この操作は完了しているか処理中です。結果は一覧で確認してください。",
    "address_too_long": "アドレスが長すぎます。一度に指定する項目を減らしてください。",
    "SYSTEM_OVERLOAD": "サーバーが高負荷のためしばらく経ってからお試しください",
    "USER_ALREADY_HAS_MODAL": "既に別のカメラを表示中です",
    "OVER_CAPACITY": "現在多数のアクセスがありストリーム数が上限に達しています。"
    "しばらく経ってからアクセスしてください",
    "NO_STREAMER": "ライブ表示の機能が動いていません。しばらく経ってからお試しください。",
    "CAMERA_OFF": "このカメラはオフのため、ライブ表示できません。",
    "NOT_SUGGESTED": "このカメラは、いまのおすすめではありません。",
    "viewing_over": "このライブ表示は終了しています。もう一度開いてください。",
    "suggest_duration": "カメラを選べる時間は1秒から3600秒までです。",
    "vocabulary_version": "語彙の schema_version に使えるのは、英数字と . _ - で、32文字までです。",
    "vocabulary_tags": "語彙の tags は、1件以上のタグのリストにしてください。",
    "vocabulary_tags_full": "語彙のタグは{most}件までです。減らしてください。",
    "vocabulary_groups": "語彙の tag_groups は notify_safe と investigation_only の2つにしてください。",
    "vocabulary_events": "語彙の primary_events は、1件から{most}件の名前のリストにしてください。",
    "vocabulary_event_name": "語彙の primary_events の名前は、英小文字・数字・_ で32文字までです。",
    "vocabulary_event_missing": "語彙の primary_events に「{needed}」がありません。追加してください。",
    "vocabulary_tag_form": "語彙の tags[{position}] はオブジェクト（{{…}}）にしてください。",
    "vocabulary_tag_id": "語彙の tags[{position}] の id は「family.name」の形（英小文字、64文字まで）です。",
    "vocabulary_tag_group": "タグ「{tag}」の group は、tag_groups にあるものにしてください。",
    "vocabulary_severity": "タグ「{tag}」の severity_default は 0 から 3 の整数にしてください。",
    "vocabulary_notify": "タグ「{tag}」の notify_allowed は true か false にしてください。",
    "vocabulary_never_notified": "タグ「{tag}」は investigation_only なので通知できません。一方にしてください。",
    "vocabulary_retention": "タグ「{tag}」の retention_hint は normal か quarantine にしてください。",
    "vocabulary_text": "語彙の {key}（{where}）は、1文字から{chars_max}文字の文字列にしてください。",
    "vocabulary_twice": "語彙の {what} に「{named}」が2回あります。一方を消してください。",
    "vocabulary_unstorable": "語彙が長すぎるか、入れ子が深すぎるか、保存できない文字を含んでいます。",
    "vocabulary_pinned": "語彙は設定 vocabulary.schema_version で {version} に固定されています。"
    "ここで選ぶには、設定から外してください。",
    "no_vocabulary": "語彙「{version}」はありません。",
    "vocabulary_exists": "語彙「{version}」は別の内容ですでにあります。schema_version を変えてください。",
    "vocabularies_full": "語彙の数が上限（{most}件）に達しています。",
    "quiet_days": "静かな時間帯の days は、0（月曜）から 6 のリストにしてください。省けば毎日です。",
    "quiet_through": "静かな時間帯の through_severity は 0 から 3、または null にしてください。",
    "quiet_time": "静かな時間帯の {field} は 22:00 のような時刻にしてください。",
    "no_scoring_run": "この採点はありません。一覧を開き直してください。",
    "archive_path": "保存先のフォルダーは /mnt/archive のような絶対パスにしてください。",
    "archive_folder": "「{path}」は設定 [archive] folders で許可されていません（許可: {allowed}）。",
    "account_off": "このアカウントは無効になりました。管理者にお問い合わせください。",
    "lacks_scope": "このトークンの範囲（scopes）に権限 {permission} がありません。別のトークンを使ってください。",
    "lacks_permission": "この操作の権限（{permission}）がありません。管理者にお問い合わせください。",
    "no_table": "このテナントに、その表はありません。",
    "no_object": "このテナントに、その画像または動画はありません。",
    "no_object_key": "画像または動画のキーの形が正しくありません。",
    "metrics": "計測値を読めるのは、サーバー自身の上のプログラムか、metrics.token を持つプログラムだけです。",
    "no_route": "このページはありません。",
    "wrong_method": "この操作はできません。",
    "internal": "内部エラーが発生しました。問い合わせ番号: {request_id}",
}
_JA_BY_CODE: Mapping[str, str] = {
    "store_busy": "サーバーが混み合っています。少し待ってからもう一度お試しください。",
    "store_unavailable": "データベースに接続できません。少し待ってからもう一度お試しください。",
    "unavailable": "ただいま利用できません。少し待ってからもう一度お試しください。",
    "unauthenticated": "サインインしてください。",
    "forbidden": "この操作の権限がありません。管理者にお問い合わせください。",
    "not_found": "見つかりません。",
    "conflict": "他の操作と重なりました。もう一度お試しください。",
    "bad_input": "入力内容に誤りがあります。",
}
# What an errand's message says, where it is one of these; what cameras and drivers say is told as it came.
_JA_OF_ERRANDS: Mapping[str, str] = {
    "the worker did not answer in time": "ワーカーから時間内に応答がありませんでした。",
    "no worker holds this camera now": "このカメラを担当しているワーカーがありません。",
    "no worker of this site is connected now": "このサイトに接続中のワーカーがありません。",
    "the worker is busy with other errands; try again later": "ワーカーが混み合っています。後でお試しください。",
    "this worker does not know how to do that; install a newer version": "このワーカーは対応していません。"
    "新しいバージョンをインストールしてください。",
    "the worker failed at it; its log says why": "ワーカーで処理に失敗しました。原因はワーカーのログにあります。",
    "the answer is too large to be sent": "結果が大きすぎて送信できませんでした。",
    "this worker does not hold the camera any more; try again": "カメラの担当が変わりました。再度お試しください。",
    "the camera is not to be processed, so it is not looked at": "「処理しない」設定のため、撮影しません。",
    "the camera refused user or password; it is not tried again so soon, lest it lock them out": "カメラがユーザー名"
    "またはパスワードを拒否しました。ロックを避けるため、しばらく再試行しません。",
}
_JA_OTHERWISE = "処理できませんでした。もう一度お試しください。"


def message_for(error: CamError, language: Language) -> str:
    if language == "en":
        return error.message
    text = _JA_BY_REASON.get(str(error.details.get("reason", ""))) or _JA_BY_CODE.get(error.code, _JA_OTHERWISE)
    try:
        return text.format(**error.details)
    except (KeyError, IndexError):
        # A detail that the text names is missing; the sentence is still better than none.
        return text


def errand_message(message: str, result: object, language: Language) -> str:
    """What came of an errand, in the reader's language as far as it is known in it."""
    if isinstance(result, dict) and isinstance(said := result.get(f"said_{language}"), str) and said:
        return said
    return _JA_OF_ERRANDS.get(message, message) if language == "ja" else message


def choose_language(accept_language: str, otherwise: Language = "en") -> Language:
    """The reader's language from the browser's header: the one of ours that is named with the highest weight."""
    best: tuple[float, Language] = (0.0, otherwise)
    for part in accept_language[:200].split(","):
        name, _, weight = part.strip().partition(";q=")
        language: Language | None = "ja" if name[:2].lower() == "ja" else "en" if name[:2].lower() == "en" else None
        try:
            value = float(weight) if weight else 1.0
        except ValueError:
            continue
        if language is not None and value > best[0]:
            best = (value, language)
    return best[1]
