"""What is wrong with a camera, in plain words, in Japanese and English.

A probe ends with one `Cause`. The words are made here from the cause and a few facts (host, port, codec, a
certificate's fingerprint); no fact ever holds a part of a login.
"""

from collections.abc import Mapping
from enum import StrEnum

from camserver.domain.makers import likely_paths
from camserver.domain.phrases import Phrase


class Cause(StrEnum):
    """Why a probe has no picture; NONE when it has one."""

    NONE = ""
    BAD_ADDRESS = "bad_address"
    NOT_ALLOWED = "not_allowed"  # an address no camera may be at (decision 45)
    UNKNOWN_HOST = "unknown_host"
    NO_ROUTE = "no_route"
    PORT_CLOSED = "port_closed"
    NO_ANSWER = "no_answer"  # nothing comes, neither yes nor no
    NOT_RTSP = "not_rtsp"
    NO_TLS = "no_tls"
    TLS_NOT_TRUSTED = "tls_not_trusted"
    TLS_PIN_DIFFERS = "tls_pin_differs"
    NEEDS_LOGIN = "needs_login"
    WRONG_PASSWORD = "wrong_password"
    NO_SUCH_PATH = "no_such_path"
    TOO_MANY_STREAMS = "too_many_streams"
    NO_VIDEO_BY_TRANSPORT = "no_video_by_transport"
    CODEC_NOT_SUPPORTED = "codec_not_supported"
    NO_VIDEO = "no_video"
    NO_KEYFRAME = "no_keyframe"
    BAD_PICTURE = "bad_picture"
    NO_FILE = "no_file"
    NO_ONVIF = "no_onvif"
    OTHER_DEVICE = "other_device"
    LOGIN_NOT_PROVEN = "login_not_proven"
    OTHER = "other"


_WORDS: Mapping[Cause, Phrase] = {
    Cause.NONE: Phrase("問題は見つかりませんでした。", "Nothing is wrong."),
    Cause.BAD_ADDRESS: Phrase(
        "アドレスの形式が正しくありません。rtsp://ホスト:554/パス のように指定してください。",
        "The address is malformed. It must look like rtsp://host:554/path.",
    ),
    Cause.NOT_ALLOWED: Phrase(
        "{host} はカメラに使えないアドレスです（リンクローカルなど）。カメラのLAN側アドレスを指定してください。",
        "{host} is an address that no camera may be at (link-local or the like). Give its address in the LAN.",
    ),
    Cause.UNKNOWN_HOST: Phrase(
        "ホスト名 {host} が見つかりません。つづりを確かめるか、IPアドレスで指定してください。",
        "The host name {host} is unknown. Check its spelling, or give the IP address.",
    ),
    Cause.NO_ROUTE: Phrase(
        "{host} に到達できません。カメラの電源とLANケーブル、ワーカーと同じネットワークにあるかを確かめてください。",
        "There is no route to {host}. Check the camera's power and cable, and whether the worker is in its network.",
    ),
    Cause.PORT_CLOSED: Phrase(
        "{host} は応答しますが、ポート {port} は閉じています。"
        "カメラの設定でRTSPを有効にし、ポート番号を確かめてください。",
        "{host} is there, but its port {port} is closed. Switch RTSP on in the camera's settings and check the port.",
    ),
    Cause.NO_ANSWER: Phrase(
        "{host} のポート {port} から応答がありません。"
        "カメラの電源、アドレス、間にあるファイアウォールを確かめてください。",
        "Nothing answers at {host}, port {port}. Check the camera's power, its address, and any firewall in between.",
    ),
    Cause.NOT_RTSP: Phrase(
        "{host} のポート {port} はRTSPではありません。ポート番号を確かめてください（RTSPは通常554）。",
        "What answers at {host}, port {port} is not RTSP. Check the port (RTSP usually has 554).",
    ),
    Cause.NO_TLS: Phrase(
        "{host} のポート {port} では暗号化（TLS）で接続できません。rtsp や http を試してください。",
        "{host}, port {port} does not speak TLS. Try rtsp or http instead of rtsps or https.",
    ),
    Cause.TLS_NOT_TRUSTED: Phrase(
        "{host} の証明書は信頼できる認証局のものではありません（多くのカメラは自己署名です）。"
        "カメラの画面で指紋が一致することを確かめてから、tls_pin に次の値を指定してください: {fingerprint}",
        "The certificate of {host} is not of an authority that is trusted (most cameras sign their own). Compare its "
        "fingerprint with the one the camera shows, then set tls_pin to: {fingerprint}",
    ),
    Cause.TLS_PIN_DIFFERS: Phrase(
        "{host} の証明書が tls_pin と一致しません。カメラを交換または初期化した場合は、新しい指紋を確かめてから"
        "指定し直してください: {fingerprint}",
        "The certificate of {host} is not the one in tls_pin. If the camera was replaced or reset, check the new "
        "fingerprint and set it: {fingerprint}",
    ),
    Cause.NEEDS_LOGIN: Phrase(
        "カメラがユーザー名とパスワードを求めています。カメラの閲覧用アカウントを指定してください。",
        "The camera asks for a user name and a password. Give those of an account that may view.",
    ),
    Cause.WRONG_PASSWORD: Phrase(
        "ユーザー名またはパスワードが違います。何度も間違えるとカメラがロックされることがあります。",
        "The camera refused user name or password. Many cameras lock the account after a few wrong tries.",
    ),
    Cause.NO_SUCH_PATH: Phrase(
        "カメラにそのパスはありません。よく使われるパス: {paths}",
        "The camera has no such path. Paths that are usual: {paths}",
    ),
    Cause.TOO_MANY_STREAMS: Phrase(
        "カメラがこれ以上の接続を受け付けません。ほかの視聴者を減らすか、streams_max を小さくしてください。",
        "The camera takes no further connection. Close other viewers, or lower streams_max.",
    ),
    Cause.NO_VIDEO_BY_TRANSPORT: Phrase(
        "{transport} では映像が届きません（カメラが断ったか、間にファイアウォールがあります）。"
        "transport をもう一方（tcp / udp）に変えてください。",
        "No video comes over {transport}: the camera refuses, or a firewall is in between. Set transport to the "
        "other one (tcp or udp).",
    ),
    Cause.CODEC_NOT_SUPPORTED: Phrase(
        "映像の形式 {codec} には対応していません。カメラの設定で H.264 か H.265 にしてください。",
        "Video of the kind {codec} is not supported. Set the camera to H.264 or H.265.",
    ),
    Cause.NO_VIDEO: Phrase(
        "接続はできますが、映像が届きません。カメラを再起動するか、別のストリームを試してください。",
        "The camera can be opened, but no video comes. Restart it, or try its other stream.",
    ),
    Cause.NO_KEYFRAME: Phrase(
        "映像は届きますが、{waited_sec}秒待ってもキーフレームが来ません。"
        "カメラの設定でキーフレーム間隔（GOP、Iフレーム）を短くしてください。",
        "Video comes, but no keyframe within {waited_sec} s. Set a shorter keyframe interval (GOP) in the camera.",
    ),
    Cause.BAD_PICTURE: Phrase(
        "映像は届きますが、画像にできません（{codec}）。別のストリームかコーデックを試してください。",
        "Video comes, but there is no picture in it ({codec}). Try the other stream or another codec.",
    ),
    Cause.NO_FILE: Phrase(
        "ワーカーのマシンにそのファイルまたはデバイスがないか、読めません。",
        "There is no such file or device on the worker's machine, or it can't be read.",
    ),
    Cause.NO_ONVIF: Phrase(
        "{host} のONVIFサービスが応答しません。カメラの設定でONVIFを有効にし、アドレスとポートを確かめてください。",
        "The ONVIF service at {host} does not answer. Switch ONVIF on in the camera and check address and port.",
    ),
    Cause.OTHER_DEVICE: Phrase(
        "{host} の機器は、このカメラのONVIF識別子を返しません。別の機器とみなし、ログイン情報は送りません。",
        "The device at {host} does not give this camera's ONVIF reference: it is another one and gets no login.",
    ),
    Cause.LOGIN_NOT_PROVEN: Phrase(
        "{host} の機器がこのカメラのログインを知っていることを、ONVIFで確認できません。アドレスは変更しません。",
        "The device at {host} does not prove by ONVIF that it knows this camera's login, so it is not trusted.",
    ),
    Cause.OTHER: Phrase("カメラを開けません（{detail}）。", "The camera can't be opened ({detail})."),
}


def explain(cause: Cause, facts: Mapping[str, str]) -> Phrase:
    """The words for a cause. `facts`: host, port, paths, fingerprint, codec, … as far as they are known."""
    words = _WORDS[cause]
    known = _Known(facts)
    if cause is Cause.NO_SUCH_PATH and "paths" not in facts:
        known["paths"] = ", ".join(likely_paths(facts.get("said", "")))
    return Phrase(words.ja.format_map(known), words.en.format_map(known))


class _Known(dict[str, str]):
    """A fact that is not known is a question mark: the sentence is still better than none."""

    def __missing__(self, _: str) -> str:
        return "?"
