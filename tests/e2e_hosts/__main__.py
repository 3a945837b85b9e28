"""`python -m tests.e2e_hosts --programs FOLDER [HOST...]`: the real programs of the hosts, with kalito installed.

Each talks to a stand-in for its model on loopback, in an empty home. Exit code 1 if a claim does not hold. A host whose
program is not there is named, with the reason; that is no failure unless it was asked for.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e_hosts.day import REPLIES, spend
from tests.e2e_hosts.home import Home
from tests.e2e_hosts.model_api import model_api, scripted
from tests.e2e_hosts.obedient import Obedient
from tests.e2e_hosts.programs import PROGRAMS, Program
from tests.e2e_hosts.scenes import SCRIPT, Report, play
from tests.e2e_hosts.signing_in import sign_in


def main() -> int:
    """Run the hosts that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_hosts", description=__doc__)
    parser.add_argument("hosts", nargs="*", metavar="HOST", help=", ".join(one.key for one in PROGRAMS))
    parser.add_argument("--programs", type=Path, required=True, help="the folder with the programs of the hosts")
    parser.add_argument("--keep", action="store_true", help="keep the homes, to look into them")
    options = parser.parse_args()
    chosen = [one for one in PROGRAMS if not options.hosts or one.key in options.hosts]
    if len(chosen) < len(set(options.hosts)):
        parser.error(f"choose among {', '.join(one.key for one in PROGRAMS)}")
    faults = 0
    not_run: list[str] = []
    for program in chosen:
        version, why = _version(program, options.programs.absolute())
        if why:
            not_run.append(f"{program.key}: {why}")
            continue
        _say(f"{program.key}: {program.command} {version}")
        faults += _faults(program, options.programs.absolute(), keep=options.keep)
    for line in not_run:
        _say(f"NOT RUN {line}")
    _say(f"{len(chosen) - len(not_run)} hosts run, {len(not_run)} not run, {faults} faults")
    return 1 if faults or (options.hosts and not_run) else 0


def _version(program: Program, programs: Path) -> tuple[str, str]:
    """What the program says of its version, or why it cannot be run."""
    found = shutil.which(program.command, path=programs)
    if found is None:
        return "", f"there is no program {program.command} in {programs}"
    try:
        done = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{program.command} does not start: {error}"
    said = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode:
        return "", f"{program.command} --version ends with {done.returncode}: {said[-1] if said else 'nothing said'}"
    return said[0] if said else "", ""


def _faults(program: Program, programs: Path, *, keep: bool) -> int:
    """How many claims do not hold of a host."""
    folder = Path(tempfile.mkdtemp(prefix=f"kalito-{program.key}-"))
    report = Report(_say)
    try:
        with model_api(scripted(SCRIPT)) as api:
            home = Home(folder / "home", (Path(sys.executable).parent, programs), program.environment(api.url))
            play(program, home, api, report)
            if program.key == "claude-code":
                other = Home(folder / "served", (Path(sys.executable).parent, programs), program.environment(api.url))
                sign_in(other, folder / "served.db", report)
        if program.allowed is not None:
            model = Obedient(REPLIES)
            with model_api(model) as api:
                home = Home(folder / "day", (Path(sys.executable).parent, programs), program.environment(api.url))
                spend(program, home, api, model, report)
        else:
            report.note("a day with a model that calls tools was not tried")
    except AssertionError as error:
        report.claim("every scene can be played", holds=False, seen=error)
    if keep:
        _say(f"  --    its home is {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return report.faults


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
