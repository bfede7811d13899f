"""Look inside the wheel, install it into an empty environment and use it there.

Run by `make wheel`: `python check_wheel.py DIST`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

PACKAGES = {"harness_noise", "harness_noise_adapters"}
MUST_HOLD = {
    "harness_noise/py.typed",
    "harness_noise_adapters/py.typed",
    "harness_noise_adapters/extra/demo/runs/inspect/sim-a.eval",
    "harness_noise_adapters/extra/formats/every_eval_ever/samples.toml",
    "harness_noise_adapters/extra/formats/harbor_causes.toml",
    "harness_noise_adapters/tables/formats.toml",
    "harness_noise/schema.json",
    "harness_noise/extra/arena/noise/gpqa_diamond.json",
    "harness_noise/extra/arena/page/picker.js",
    "harness_noise/report/assets/style.css",
    "harness_noise/extra/arena/page/board.html",
}


def check_contents(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    if tops != PACKAGES:
        raise SystemExit(f"{wheel.name} holds {sorted(tops)}, not exactly {sorted(PACKAGES)}")
    if missing := MUST_HOLD - names:
        raise SystemExit(f"{wheel.name} lacks {sorted(missing)}")


def check_install(wheel: Path) -> None:
    """The core works with no harness, no test tools and no checkout."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / "bin" / "python"
        run = [str(python), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run(run, check=True)
        table = home / "scores.csv"
        rows = [f"q{i},m{m},{int((i * 7 + m) % 3 > 0)},{i // 4}" for i in range(40) for m in (1, 2)]
        table.write_text("question,model,score,cluster\n" + "\n".join(rows) + "\n")
        bare = ["compare", "0.71", "0.68", "--profile", "gpqa_diamond"]
        pages = ["arena", str(table), "--html", str(home / "pages"), "--figures", str(home / "figures")]
        for arguments in (
            ["--version"],
            ["list"],
            ["demo"],
            ["analyze", str(table)],
            ["compare", str(table)],
            bare,
            pages,
        ):
            command = [str(home / "venv" / "bin" / "harness-noise"), *arguments]
            done = subprocess.run(command, cwd=home, capture_output=True, text=True)
            if done.returncode or "Traceback" in done.stderr:
                raise SystemExit(f"harness-noise {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        listed = [str(python), "-m", "pip", "list", "--format=freeze"]
        packages = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.lower()
        if "lm-eval" in packages or "lm_eval" in packages or "inspect" in packages:
            raise SystemExit("the core installed a harness")


def main() -> None:
    wheels = list(Path(sys.argv[1]).glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"expected one wheel, found {len(wheels)}")
    check_contents(wheels[0])
    check_install(wheels[0].resolve())
    print(f"{wheels[0].name}: contents and clean install are right")


if __name__ == "__main__":
    main()
