"""A program: a server with the interface of vLLM's, over a tiny model, which starts quickly.

Arguments: ``--model DIR --host H --port P``; ``--hang``: never answer a request for tokens;
``--slow S``: seconds until a pause is confirmed; ``--hold N``: answers wait at N tokens until the weights' version is
above zero, and ``GET /held`` says whether one waits; ``--once FILE``: while FILE exists, ``/resume`` fails and removes
it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from excise.trainer.rollout_types import Sampling

STOPS = {"end": "stop", "length": "length", "aborted": "abort"}


class ServedModel:
    def __init__(self, model: Path, hold: int, resumed: threading.Event) -> None:
        from excise.trainer.engines.transformers_engine import TransformersEngine

        self.engine = TransformersEngine.from_folder(model)
        self.hold, self.resumed, self.held = hold, resumed, False
        self._generate_token = self.engine._generate_token
        self.engine._generate_token = self.generate_token_unless_paused  # type: ignore[method-assign]
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def generate_token_unless_paused(self) -> None:
        answers = self.engine._batch.answers
        self.held = self.engine.version == 0 and any(len(answer.ids) >= self.hold > 0 for answer in answers)
        if self.held or not self.resumed.is_set():
            time.sleep(0.01)
        else:
            self._generate_token()

    def generate(self, body: dict[str, Any]) -> dict[str, Any]:
        values, ids = body["sampling_params"], body["token_ids"]
        if "prompt_logprobs" in values:
            (scores,) = self.run(self.engine.score([ids]))
            entries = [None] + [{str(t): {"logprob": s}} for t, s in list(zip(ids, scores, strict=True))[1:]]
            return {"choices": [], "prompt_logprobs": entries}
        stop_ids = tuple(values["stop_token_ids"])
        sampling = Sampling(max_tokens=values["max_tokens"], temperature=values["temperature"], stop_ids=stop_ids)
        (answer,) = self.run(self.engine.generate([ids], sampling))
        spans: list[dict[str, Any]] = []
        for n, version in enumerate(answer.versions):
            if spans and spans[-1]["version"] == str(version):
                spans[-1]["end"] = n + 1
            else:
                spans.append({"version": str(version), "start": n, "end": n + 1})
        content = [{"token_id": t, "logprob": p} for t, p in zip(answer.ids, answer.logprobs, strict=True)]
        choice = {
            "token_ids": answer.ids, "logprobs": {"content": content}, "finish_reason": STOPS[answer.stop],
            "weight_versions": spans,
        }  # fmt: skip
        return {"choices": [choice]}

    def reload(self, folder: str) -> None:
        from safetensors.torch import load_file

        weights = load_file(Path(folder) / "model.safetensors")
        self.run(self.engine.load(weights.items(), self.engine.version))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--host", "--port"):
        parser.add_argument(name, required=True)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--hold", type=int, default=0)
    parser.add_argument("--once", type=Path)
    options = parser.parse_args()
    resumed = threading.Event()
    resumed.set()
    model: Any = None if options.hang else ServedModel(Path(options.model), options.hold, resumed)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, value: Any, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer({"held": model.held} if self.path == "/held" else {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            path = self.path.partition("?")[0]
            if options.hang and path == "/inference/v1/generate":
                time.sleep(3600)
            if path == "/inference/v1/generate" and len(body["token_ids"]) > 520:
                self.answer({"error": "too long"}, 400)
            elif path == "/inference/v1/generate":
                resumed.wait()
                self.answer(model.generate(body))
            elif path == "/collective_rpc":
                assert body["method"] in {"reload_weights", "excise_reload"}
                model.reload(body["kwargs"]["weights_path"])
                self.answer({"results": [None]})
            elif path == "/update_weight_version":
                if model:
                    model.engine._version = int(body["new_version"])
                self.answer({"success": True})
            elif path == "/pause":
                resumed.clear()
                time.sleep(options.slow)
                self.answer({})
            elif path == "/resume" and options.once and options.once.exists():
                options.once.unlink()
                self.answer({"error": "no"}, 500)
            elif path == "/resume":
                resumed.set()
                self.answer({})
            else:
                self.answer({}, 200 if path == "/reset_prefix_cache" else 404)

    ThreadingHTTPServer((options.host, int(options.port)), Handler).serve_forever()


if __name__ == "__main__":
    sys.exit(main())
