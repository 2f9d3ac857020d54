"""Benchmark of the trainer on one GPU: one command of at most 8 minutes, without network or downloaded weights.

Run: ``python benchmarks/gpu.py [--size tiny|small|large] [--steps 5] [--only PART…]``. Needs torch, transformers and
excise's trainer; without a GPU it runs on the CPU (``tiny``, in float32). Models have random weights. Prints JSON; a
part that fails says why, and the others go on. Parts:

learner    optimizer steps on packed rows with shared prompts, bfloat16 with float32 weights, activation checkpointing,
           compiled layers: tokens per second, share of the peak FLOPS, peak memory; the same without compilation, and
           in a plain transformers loop
packing    the same groups with every sequence in a row of its own: time, and the difference of the gradients
precision  loss and gradient of a small model against float64 on the CPU, in float32 and in bfloat16
muon       one step of Muon, and of torch.optim.Muon on the matrices of the same model
engine     tokens per second of the transformers engine, and of ``model.generate`` on the same prompts
handover   seconds to give the learner's weights to the engine on the device, and through files
sleep      seconds to move the engine's weights to the host's memory and back
resume     whether a step after loading a checkpoint gives the same weights, bit for bit (``learner.deterministic``)
vllm       the engine's tokens per second, load of weights, sleep and wake-up through vLLM, where it is installed
loop       a whole run of the trainer, whose engine (vLLM, where it is installed) shares the device with the learner:
           rewards, seconds per step, how long trainer and engine wait, tokens per second
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from excise.errors import EngineError
from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions
from excise.trainer.engines.vllm_engine import VLLMOptions
from excise.trainer.engines.weight_files import WeightFiles
from excise.trainer.interfaces import Engine
from excise.trainer.loop.controller import Controller, LoopSettings, RunComponents
from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.loop.queue_state import ScheduleSettings
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.progress_display import ProgressDisplay
from excise.trainer.rollout_types import Group, Sampling

sys.path.insert(0, str(Path(__file__).parent))
from gpu_bench import SIZES, Bench, Workload
from token_tasks import ClassCurriculum, TokenTasks


def flat_gradient(model: Any) -> torch.Tensor:
    """All gradients as one float64 vector on the CPU."""
    return torch.cat([p.grad.detach().double().cpu().flatten() for p in model.parameters() if p.grad is not None])


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Norm of the difference, relative to the norm of ``exact``."""
    return float((found - exact).norm() / exact.norm())


def gradient_of(bench: Bench, learner: Learner, groups: Sequence[Group]) -> tuple[torch.Tensor, float]:
    """Gradient and loss of a step, without changing the weights."""
    for group in learner.optimizer.param_groups:
        group["lr"] = 0.0
    loss = learner.step(groups, 0)["loss"]
    bench.synchronize()
    return flat_gradient(learner.model), loss


# ------------------------------------------------------------------------------------------------ parts
def learner_part(bench: Bench) -> dict[str, Any]:
    """Optimizer steps of the learner and of a plain loop."""
    model = bench.model()
    learner, groups = bench.learner(model), bench.groups()
    memory = bench.peak_memory_gb(lambda: learner.step(groups, 0))
    seconds = bench.seconds(lambda: learner.step(groups, 0))
    not_compiled = bench.learner(bench.model(), compiled=False)
    not_compiled_s = bench.seconds(lambda: not_compiled.step(groups, 0))
    rows = learner.step(groups, 0)["trained_tokens"]
    parameters = sum(parameter.numel() for parameter in model.parameters())
    plain_model = bench.model()
    plain_model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = build_optimizer(plain_model, OptimizerSettings(name="adamw", lr=1e-5))
    plain_memory = bench.peak_memory_gb(lambda: plain_step(bench, plain_model, optimizer, groups))
    plain = bench.seconds(lambda: plain_step(bench, plain_model, optimizer, groups))
    sampled = bench.work.sampled_tokens
    return {
        "parameters": parameters,
        "row_tokens": rows,
        "step_s": seconds,
        "not_compiled_step_s": not_compiled_s,
        "sampled_tokens_per_s": sampled / seconds,
        "row_tokens_per_s": rows / seconds,
        "mfu": 6 * parameters * rows / seconds / bench.peak_flops if bench.peak_flops else None,
        "peak_memory_gb": memory,
        "plain_step_s": plain,
        "plain_peak_memory_gb": plain_memory,
        "times_plain": plain / seconds,
    }


def plain_step(bench: Bench, model: Any, optimizer: torch.optim.Optimizer, groups: Sequence[Group]) -> None:
    """One step as a loop over transformers' model does it: a batch for each prompt, every answer with its prompt."""
    model.train()
    optimizer.zero_grad(set_to_none=True)
    for group in groups:
        ids = torch.tensor([rollout.segments[0].ids for rollout in group.rollouts], device=bench.device)
        rewards = torch.tensor([rollout.task_reward for rollout in group.rollouts], device=bench.device)
        kept = bench.work.answer_tokens
        with torch.autocast(bench.device.type, torch.bfloat16, enabled=bench.gpu):
            logits = model(input_ids=ids, logits_to_keep=kept + 1, use_cache=False).logits[:, :-1]
        logprobs = torch.log_softmax(logits.float(), -1).gather(2, ids[:, -kept:, None])[..., 0]
        loss = -((rewards - rewards.mean())[:, None] * logprobs).sum() / bench.work.sampled_tokens
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def packing_part(bench: Bench) -> dict[str, Any]:
    """Packed rows against rows of one sequence."""
    groups = bench.groups()

    def measured(row_tokens: int) -> tuple[float, torch.Tensor, float]:
        learner = bench.learner(bench.model(), row_tokens=row_tokens)
        gradient, loss = gradient_of(bench, learner, groups)
        return bench.seconds(lambda: learner.step(groups, 0)), gradient, loss

    packed_s, gradient, loss = measured(bench.row_tokens)
    separate_s, expected, expected_loss = measured(1)
    return {
        "packed_s": packed_s,
        "separate_s": separate_s,
        "times_separate": separate_s / packed_s,
        "gradient_difference": relative(gradient, expected),
        "loss_difference": abs(loss - expected_loss),
    }


def precision_part(bench: Bench) -> dict[str, Any]:
    """A small model's loss and gradient against float64 on the CPU."""
    groups = bench.groups(Workload(2, 3, 40, 16), size="tiny")
    exact_bench = Bench("tiny", 1)
    exact_bench.gpu, exact_bench.device, exact_bench.work = False, torch.device("cpu"), Workload(2, 3, 40, 16)
    exact_model = exact_bench.model(dtype=torch.float64)
    exact, exact_loss = gradient_of(exact_bench, exact_bench.learner(exact_model), groups)
    found: dict[str, Any] = {}
    for name in ("float32", "bfloat16"):
        copied = copy.deepcopy(exact_bench.model(dtype=torch.float64)).to(bench.device, torch.float32)
        settings = LearnerSettings(row_tokens=256, reference_length=16, bf16=name == "bfloat16")
        optimizer = build_optimizer(copied, OptimizerSettings(name="adamw", lr=1e-5))
        gradient, loss = gradient_of(bench, Learner(copied, optimizer, settings), groups)
        found[name] = {"gradient": relative(gradient, exact), "loss": abs(loss - exact_loss)}
    return found


def muon_part(bench: Bench) -> dict[str, Any]:
    """One step of each optimizer with the same gradients."""
    found: dict[str, Any] = {}
    for name in ("muon", "adamw"):
        model = bench.model()
        optimizer = build_optimizer(model, OptimizerSettings(name=name, lr=1e-5))  # type: ignore[arg-type]
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        found[f"{name}_s"] = bench.seconds(optimizer.step)
        if name == "muon" and hasattr(torch.optim, "Muon"):
            inner = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n and "lm_head" not in n]
            found["torch_muon_s"] = bench.seconds(torch.optim.Muon(inner, lr=1e-5).step)
            found["matrices"] = len(inner)
    return found


def engine_part(bench: Bench) -> dict[str, Any]:
    """Tokens per second of the engine and of ``generate``."""
    model = bench.model(dtype=bench.number_format)
    repeated = bench.prompts()
    ids = torch.tensor(repeated, device=bench.device)
    length = bench.work.answer_tokens

    def generate() -> None:
        with torch.no_grad():
            model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=length, min_new_tokens=length, do_sample=True
            )

    plain_s = bench.seconds(generate, runs=1)
    engine = TransformersEngine(model, TransformersOptions(context_length=2048, max_batch=len(repeated)))
    sampling = Sampling(max_tokens=length)

    async def sample() -> float:
        answers = await engine.generate(repeated, sampling)
        assert sum(len(answer.ids) for answer in answers) == bench.work.sampled_tokens
        began = time.perf_counter()
        await engine.generate(repeated, sampling)
        seconds = time.perf_counter() - began
        await engine.close()
        return seconds

    seconds = asyncio.run(sample())
    tokens = bench.work.sampled_tokens
    return {"tokens_per_s": tokens / seconds, "generate_tokens_per_s": tokens / plain_s, "times": plain_s / seconds}


def handover_part(bench: Bench) -> dict[str, Any]:
    """The learner's weights given to the engine, on the device and through files."""
    learner = bench.learner(bench.model(), checkpointing=False)
    sampler = bench.model(seed=1, dtype=bench.number_format)
    engine = TransformersEngine(sampler, TransformersOptions(context_length=2048))

    async def load() -> float:
        times = []
        for version in range(1, 4):
            bench.synchronize()
            began = time.perf_counter()
            await engine.load(learner.weights(), version)
            bench.synchronize()
            times.append(time.perf_counter() - began)
        await engine.close()
        return min(times)

    on_device = asyncio.run(load())
    size = sum(parameter.numel() * parameter.element_size() for parameter in sampler.parameters())
    with tempfile.TemporaryDirectory() as folder:
        sampler.save_pretrained(folder)
        files = WeightFiles(Path(folder), Path(folder))
        began = time.perf_counter()
        files.write(((name, tensor.to(sampler.dtype)) for name, tensor in learner.weights()), 1)
        through_files = time.perf_counter() - began
        files.close()
    return {"gb": size / 1e9, "on_device_s": on_device, "files_written_s": through_files}


def sleep_part(bench: Bench) -> dict[str, Any]:
    """The sampler's weights moved to the host and back, to leave the device to the learner."""
    sampler = bench.model(dtype=bench.number_format)
    away = bench.seconds(lambda: (sampler.to("cpu"), sampler.to(bench.device)), runs=2)
    return {"there_and_back_s": away}


def resume_part(bench: Bench) -> dict[str, Any]:
    """Two steps at once, and with a checkpoint between them."""
    groups = bench.groups()
    first = bench.learner(bench.model(), deterministic=True)
    first.step(groups, 0)
    state = copy.deepcopy((first.model.state_dict(), first.optimizer.state_dict()))
    first.step(groups, 0)
    again = bench.learner(bench.model(seed=5), deterministic=True)
    again.model.load_state_dict(state[0])
    again.optimizer.load_state_dict(state[1])
    again.step(groups, 0)
    pairs = zip(first.model.parameters(), again.model.parameters(), strict=True)
    difference = max(float((one - other).detach().abs().max()) for one, other in pairs)
    return {"bit_for_bit": difference == 0, "largest_difference": difference}


def vllm_part(bench: Bench) -> dict[str, Any]:
    """The same through vLLM, where it is installed."""
    try:
        import vllm
    except ImportError:
        return {"skipped": "vLLM is not installed"}
    from excise.trainer.engines.vllm_in_process import VLLMInProcess

    model = bench.model(dtype=bench.number_format)
    repeated = bench.prompts()
    arguments = vllm_arguments(bench) | ({"enable_sleep_mode": True} if bench.gpu else {})

    async def run(folder: Path) -> dict[str, Any]:
        began = time.perf_counter()
        engine = await VLLMInProcess.start(folder, VLLMOptions(context_length=2048), arguments)
        found: dict[str, Any] = {"version": vllm.__version__, "start_s": time.perf_counter() - began}
        sampling = Sampling(max_tokens=bench.work.answer_tokens)
        await engine.generate(repeated, sampling)
        began = time.perf_counter()
        await engine.generate(repeated, sampling)
        found["tokens_per_s"] = bench.work.sampled_tokens / (time.perf_counter() - began)
        began = time.perf_counter()
        await engine.load(model.state_dict().items(), 1)
        found["load_s"] = time.perf_counter() - began
        if bench.gpu:
            began = time.perf_counter()
            await engine._engine.sleep(1)
            found["sleep_s"] = time.perf_counter() - began
            began = time.perf_counter()
            await engine._engine.wake_up()
            found["wake_s"] = time.perf_counter() - began
        await engine.close()
        return found

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return asyncio.run(run(Path(folder)))


def vllm_arguments(bench: Bench) -> dict[str, Any]:
    """Arguments of vLLM beside a learner on the same device."""
    return {"skip_tokenizer_init": True} | ({"gpu_memory_utilization": 0.4} if bench.gpu else {})


def loop_part(bench: Bench) -> dict[str, Any]:
    """A run of the trainer on tasks that reward one class of tokens."""
    work = bench.work
    steps = 4 * bench.steps
    schedule = ScheduleSettings(batch=work.prompts, group_size=work.answers, staleness=1)
    settings = LoopSettings(
        steps=steps, schedule=schedule, checkpoint_every=steps, tensorboard=False, peak_tflops=bench.peak_flops / 1e12
    )
    learner = bench.learner(bench.model(), lr=1e-3 if bench.size == "tiny" else 1e-4)

    async def run(folder: Path) -> str:
        copy.deepcopy(learner.model).to(bench.number_format).save_pretrained(folder / "model")  # type: ignore[operator]
        try:
            from excise.trainer.engines.vllm_in_process import VLLMInProcess

            engine: Engine = await VLLMInProcess.start(
                folder / "model", VLLMOptions(context_length=2048), vllm_arguments(bench)
            )
        except EngineError:
            sampler = bench.model(seed=1, dtype=bench.number_format)
            options = TransformersOptions(context_length=2048, max_batch=2 * work.prompts * work.answers)
            engine = TransformersEngine(sampler, options)
        metered = MeteredEngine(engine)
        maker = TokenTasks(metered, SIZES[bench.size]["vocab_size"], work.prompt_tokens, work.answer_tokens)
        components = RunComponents(learner=learner, engine=metered, maker=maker, curriculum=ClassCurriculum())
        try:
            with ProgressDisplay(Console(file=sys.stderr), steps=steps, quiet=True) as display:
                await Controller(components, settings, folder / "run", display).run(resume=False)
        finally:
            await engine.close()
        return engine.name

    with tempfile.TemporaryDirectory() as folder:
        name = asyncio.run(run(Path(folder)))
        rows = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
    rewards = [row["reward"] for row in rows if "reward" in row]  # no group was finished during some of the steps
    few = max(1, len(rewards) // 5)
    later = rows[min(2, len(rows) - 1) :]  # the first steps compile
    names = ("step_s", "learn_s", "wait_s", "load_s", "engine_idle", "engine_tokens_per_s", "logprob_difference", "mfu")
    means = {name: [row[name] for row in later if name in row] for name in names}
    return {
        "engine": name,
        "reward_first": sum(rewards[:few]) / few,
        "reward_last": sum(rewards[-few:]) / few,
        "mean": {name: sum(values) / len(values) for name, values in means.items() if values},
    }


PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "learner": learner_part,
    "packing": packing_part,
    "precision": precision_part,
    "muon": muon_part,
    "engine": engine_part,
    "handover": handover_part,
    "sleep": sleep_part,
    "resume": resume_part,
    "vllm": vllm_part,
    "loop": loop_part,
}


def measure(size: str, steps: int, parts: Sequence[str]) -> dict[str, Any]:
    """Run the parts; one that fails gives its error."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for the part resume, before cuBLAS is used
    bench = Bench(size, steps)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if bench.gpu else "cpu",
        "torch": torch.__version__,
        "size": size,
    }
    for name in parts:
        began = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            answer = PARTS[name](bench)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        found[name] = answer | {"took_s": time.perf_counter() - began}
        if bench.gpu:
            torch.cuda.empty_cache()
    return found


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="small" if torch.cuda.is_available() else "tiny")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=sorted(PARTS), default=list(PARTS))
    options = parser.parse_args()
    print(json.dumps(measure(options.size, options.steps, options.only), indent=2))


if __name__ == "__main__":
    main()
