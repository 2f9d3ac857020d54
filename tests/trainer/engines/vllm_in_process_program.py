"""A program for the interpreter that has vLLM: samples, loads weights, samples again, kills the core; prints JSON.

Arguments: folder of the model, ids of a prompt as JSON, length of the context in tokens.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from excise.errors import EngineError
from excise.system.supervisor import descendants
from excise.trainer.engines.vllm_engine import VLLMOptions
from excise.trainer.engines.vllm_in_process import VLLMInProcess
from excise.trainer.rollout_types import Generation, Sampling

sys.path.insert(0, str(Path(__file__).parent))
from answers_during_load import answers_during


def as_dict(answer: Generation) -> dict[str, Any]:
    return {"ids": answer.ids, "logprobs": answer.logprobs, "versions": answer.versions, "stop": answer.stop}


async def main(folder: Path, prompt: list[int], context: int) -> dict[str, Any]:
    engine = await VLLMInProcess.start(
        folder, VLLMOptions(context_length=context), {"dtype": "float32", "enforce_eager": True}
    )
    found: dict[str, Any] = {}
    (first,) = await engine.generate([prompt], Sampling(max_tokens=24))
    found["first"] = as_dict(first)
    found["scores"] = (await engine.score([[*prompt, *first.ids]]))[0]
    (full,) = await engine.generate([prompt * 150], Sampling(max_tokens=24))
    found["full"] = as_dict(full)
    weights = load_file(folder / "model.safetensors")
    loading = engine.load([(name, tensor.float() * 0.9) for name, tensor in weights.items()], 5)
    found["mixed"] = [as_dict(answer) for answer in await answers_during(loading, engine, prompt)]
    (second,) = await engine.generate([prompt], Sampling(max_tokens=24))
    found["second"] = as_dict(second)
    for pid in descendants(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    try:
        await asyncio.wait_for(engine.generate([prompt], Sampling(max_tokens=24)), 60)
    except EngineError as error:
        found["dead"] = str(error)
    await engine.close()
    return found


if __name__ == "__main__":
    print(
        "FOUND " + json.dumps(asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])))),
        flush=True,
    )
    os._exit(0)
