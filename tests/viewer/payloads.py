"""Texts that would set a variable of the page if anything of them ran, and recordings that are full of them."""

from sentinel_rl.viewer import Recording
from tests.viewer.made import made

MARK = "window.hacked=1"
PAYLOADS = (
    f"</script><script>{MARK}</script>",
    f"<img src=x onerror={MARK}>",
    f'"><svg onload="{MARK}">',
    f"<!--<script>{MARK}//-->",
    f"javascript:{MARK}",
    f"${{{MARK}}}",
    f"$data$scripts<script>{MARK}</script>",
    f"{{best}}<iframe srcdoc='<script>parent.{MARK}</script>'>",
    f"</style><style>*{{background:url(javascript:{MARK})}}</style>",
    f"]]></svg><script>{MARK}</script>",
    f"&lt;/script&gt;&#60;script&#62;{MARK}",
    f"\\u003cscript\\u003e{MARK}\\u003c/script\\u003e",
    f"'-({MARK})-'",
)


def forged(payload: str) -> Recording:
    """A recording with a payload in every text it has."""
    short = payload[:90]
    return made(
        env=payload,
        agent=payload,
        objective=payload,
        note=payload,
        aleatory=short,
        epistemic=short,
        actions=(short, *(f"{short}{number}" for number in range(4))),
    )
