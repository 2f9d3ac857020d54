"""``excise compact``: joins the small files of a set."""

from __future__ import annotations

import json

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of


def compact(out: Out = None, as_json: Json = False, config: Config = None) -> None:
    """Join the Parquet files of projects into few; rows stay the same. Sets of many projects do it by themselves."""
    from excise.datasets.storage.manifest import no_set_error
    from excise.datasets.storage.snapshot import Snapshot
    from excise.datasets.storage.store import Store

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        before = Snapshot.current(settings.out)
        if before is None:
            raise no_set_error(settings.out)
        with Store(settings.out).writer() as writer:
            writer.compact()
            writer.publish()
        after = Snapshot.current(settings.out) or before
        counts = {"files_before": len(before.manifest.files), "files_after": len(after.manifest.files)}
        if as_json:
            print(json.dumps({"snapshot": after.manifest.number, **counts}))
        else:
            print(f"{counts['files_before']} files became {counts['files_after']} (snapshot {after.manifest.number}).")
