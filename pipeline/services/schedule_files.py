"""``excise schedule --for``: files with which GitHub Actions or Kubernetes runs ``excise refresh`` regularly.

They hold no password and no path of this machine: what is secret is a reference to the other side's store of secrets,
and paths are relative to the repository of the configuration, or to a volume.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import excise
from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.services.refresh_schedule import RefreshTime, parse_when
from excise.system.files import replace_file, store_errors

ACTIONS = {
    "checkout": ("actions/checkout", "3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "python": ("actions/setup-python", "5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "restore": ("actions/cache/restore", "27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "save": ("actions/cache/save", "27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "upload": ("actions/upload-artifact", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
}
"""Name in this module to action, commit and the version that the commit has."""
MARK = "# Written by `excise schedule`"
"""Beginning of every file; files that begin otherwise are never replaced."""
JOB_MINUTES, REFRESH_MINUTES = 355, 320
"""Time limits of the job and of the refresh in it. GitHub's own limit is 6 hours; what is between is for the caches."""
REFRESH_SECONDS = 8 * 3600
"""Time limit of a refresh in Kubernetes."""
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION")
"""Variables of the AWS tools that a set in an object store needs."""
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|\$\{\{")
"""Characters that no file of a schedule may quote, and the beginning of an expression of GitHub Actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableRefresh:
    """A regular refresh that another machine can run."""

    name: str
    """Name of the schedule: small letters, digits and hyphens."""
    config: str
    """Path of the configuration file relative to ``root``, with slashes."""
    when: RefreshTime
    """When it runs, UTC."""
    out: str
    """The task set: an ``s3://`` URL, or a path relative to ``root``."""
    secrets: tuple[str, ...]
    """Names of the environment variables that hold passwords."""
    package: str
    """What pip installs."""
    image: str
    """Name of the container image."""

    @property
    def is_remote(self) -> bool:
        """Whether the set is in an object store."""
        return self.out.startswith("s3://")


def portable_refresh(
    config: Path, settings: Settings, when: str, *, package: str = "", image: str = "", has_checkout: bool = True
) -> PortableRefresh:
    """Describe the refresh of a configuration file without paths of this machine; empty names get their defaults.

    ``has_checkout``: whether it runs in a checkout of the file's repository. Raises :class:`ConfigError` if the file
    names places that the other machine does not have, or something that cannot be quoted.
    """
    root = repository_of(config)
    out = _portable_out(settings, root) if has_checkout or _is_url(settings.out) else "set"
    for source in settings.sources:
        place = source.spec.removeprefix("git+").removeprefix("file://").removeprefix("dir:").removeprefix("archive:")
        if place.startswith("/"):
            _inside(Path(place), root if has_checkout else None, "a source")
    key = settings.model.api_key_env
    extras = [*(["agents"] if settings.model.is_configured else []), *(["s3"] if _is_url(settings.out) else [])]
    requirement = f"excise{'[' + ','.join(extras) + ']' if extras else ''}=={excise.__version__}"
    found = PortableRefresh(
        name=f"excise-refresh-{_slug(config.stem)}",
        config=(config.parent.resolve() / config.name).relative_to(root).as_posix(),
        when=parse_when(when),
        out=out,
        secrets=(*([key] if key else []), *(CREDENTIALS if _is_url(settings.out) else ())),
        package=package or requirement,
        image=image or f"excise:{excise.__version__}",
    )
    for text in (found.config, found.out, found.package, found.image):
        if _UNSAFE.search(text):
            raise ConfigError(f"{text!r} cannot be written into a schedule. Rename it.")
    return found


def _is_url(out: Path) -> bool:
    return str(out).startswith("s3:/")


def _portable_out(settings: Settings, root: Path) -> str:
    """The task set as a URL, or relative to the repository, where the other machine runs the refresh."""
    if _is_url(settings.out):
        return "s3://" + str(settings.out).removeprefix("s3:").lstrip("/")
    out = _inside(settings.out, root, "out") if "out" in settings.model_fields_set else "excise-out"
    if re.search(r"[*?!~\[\]]", out):
        raise ConfigError(f"out is {out!r}: caches take some of its characters for a pattern. Rename it.")
    return out


def repository_of(config: Path) -> Path:
    """The folder of the git repository that holds a file, or the file's own folder if none does."""
    folder = config.parent.resolve()
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def _inside(path: Path, root: Path | None, what: str) -> str:
    """A path relative to the repository ``root``, if there is one there. Raises :class:`ConfigError` otherwise."""
    try:
        if root is None:
            raise ValueError
        return (path.parent.resolve() / path.name).relative_to(root).as_posix()
    except ValueError:
        raise ConfigError(
            f"{what} is {path}, which other machines do not have. Write "
            + (f"a path inside {root}, or a URL." if root else "a URL.")
        ) from None


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30].strip("-") or "set"


def _quoted(text: str) -> str:
    """A text as a scalar of YAML, which reads JSON's strings."""
    return json.dumps(text, ensure_ascii=False)


def _action(name: str) -> str:
    action, commit, version = ACTIONS[name]
    return f"{action}@{commit} # {version}"


def github_workflow(plan: PortableRefresh) -> str:
    """The text of a workflow of GitHub Actions, for ``.github/workflows/``."""
    config, name = shlex.quote(plan.config), plan.name
    kept = "".join(f"            {place}\n" for place in (".excise/cache", *(() if plan.is_remote else (plan.out,))))
    secrets = "".join(f"      {key}: ${{{{ secrets.{key} }}}}\n" for key in plan.secrets)
    where = (
        "in its object store" if plan.is_remote else f"in the cache of the workflow ({plan.out}), which GitHub may drop"
    )
    needed = f"# Secrets of the repository that it reads: {', '.join(plan.secrets)}.\n" if plan.secrets else ""
    return f"""\
{MARK} for GitHub Actions: it runs `excise refresh {_comment(plan.config)}`.
# The task set is {_comment(where)}. Times are UTC.
{needed}name: {_quoted(name)}
on:
  schedule:
    - cron: {_quoted(plan.when.cron())}
  workflow_dispatch: {{}}
permissions:
  contents: read
concurrency: # a night that is late waits; it is never cancelled, and two never run at the same time
  group: {_quoted(name)}
  cancel-in-progress: false
jobs:
  refresh:
    runs-on: ubuntu-24.04
    timeout-minutes: {JOB_MINUTES}
    env:
      EXCISE_CACHE: ${{{{ github.workspace }}}}/.excise/cache
{secrets}    steps:
      - uses: {_action("checkout")}
        with:
          persist-credentials: false
      - uses: {_action("python")}
        with:
          python-version: "3.12"
      - name: Install the sandbox
        run: |
          sudo apt-get update
          sudo apt-get install --yes --no-install-recommends bubblewrap git
          sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
      - name: Install excise
        run: python -m pip install {shlex.quote(plan.package)}
      - uses: {_action("restore")}
        with:
          path: |
{kept}          key: {name}-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}
          restore-keys: {name}-
      - name: Refresh
        timeout-minutes: {REFRESH_MINUTES}
        run: |
          excise refresh {config} --report .excise/report || test "$?" -eq 3 # 3: some sources gave nothing today
      - name: Summary
        if: always()
        run: |
          test ! -f .excise/report/report.txt || sed 's/^/    /' .excise/report/report.txt >> "$GITHUB_STEP_SUMMARY"
      - uses: {_action("upload")}
        if: always()
        with:
          name: {name}
          path: .excise/report
          if-no-files-found: warn
          include-hidden-files: true
          retention-days: 30
      - uses: {_action("save")}
        if: always()
        with:
          path: |
{kept}          key: {name}-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}
"""


def cron_job(plan: PortableRefresh) -> str:
    """The text of a volume claim and a CronJob of Kubernetes (1.30 or newer)."""
    name = plan.name
    file = plan.config.rpartition("/")[2]
    out = plan.out if plan.is_remote else "/data/set"
    script = (
        'code=0; excise refresh "$0" --out "$1" --cache /data/cache --report /data/report || code=$?; '
        'cat /data/report/report.txt; test "$code" -eq 0 || test "$code" -eq 3'
    )
    secrets = f"""\
              envFrom:
                - secretRef:
                    name: {name}
"""
    keys = " ".join(f"--from-literal={key}=…" for key in plan.secrets)
    needed = f"#   kubectl create secret generic {name} {keys}\n" if plan.secrets else ""
    return f"""\
{MARK} for Kubernetes: it runs `excise refresh {_comment(file)}`.
# It needs a cluster of version 1.30 or newer with user namespaces, a namespace whose pods may be unconfined, and first:
#   kubectl create configmap {name} --from-file={_comment(shlex.quote(file))}
{needed}# The image holds excise, git and bubblewrap. Set and cache are on the volume, the report is in /data/report.
# Times are UTC.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}
spec:
  accessModes:
    - ReadWriteOnce
  resources:
    requests:
      storage: 100Gi
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {name}
spec:
  schedule: {_quoted(plan.when.cron())}
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid # two nights never run at the same time
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 0 # the next night goes on from the cache
      activeDeadlineSeconds: {REFRESH_SECONDS}
      template:
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          enableServiceLinks: false
          hostUsers: false
          terminationGracePeriodSeconds: 120
          securityContext:
            runAsNonRoot: true
            runAsUser: 1000
            runAsGroup: 1000
            fsGroup: 1000
          containers:
            - name: refresh
              image: {_quoted(plan.image)}
              workingDir: /data
              command: ["sh", "-c", {_quoted(script)}]
              args: [{_quoted(f"/config/{file}")}, {_quoted(out)}]
              env:
                - name: HOME
                  value: /data
{secrets if plan.secrets else ""}\
              resources:
                requests:
                  cpu: "2"
                  memory: 8Gi
                limits:
                  memory: 16Gi
              securityContext: # what bubblewrap needs to make sandboxes without root
                allowPrivilegeEscalation: false
                capabilities:
                  drop: ["ALL"]
                procMount: Unmasked
                seccompProfile:
                  type: Unconfined
                appArmorProfile:
                  type: Unconfined
              volumeMounts:
                - name: data
                  mountPath: /data
                - name: config
                  mountPath: /config
                  readOnly: true
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: {name}
            - name: config
              configMap:
                name: {name}
"""


def _comment(text: str) -> str:
    """A text for a comment of one line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def write_schedule(path: Path, text: str) -> None:
    """Write a file of :func:`github_workflow` or :func:`cron_job`; replaces only what such a call wrote.

    Raises :class:`ConfigError` if the file is somebody else's, and :class:`excise.errors.StoreError`.
    """
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise ConfigError(f"{path} was not written by `excise schedule`. Choose another file.")
    with store_errors("write the schedule"):
        replace_file(path, text.encode())
