"""Benchmark of reinforcement learning in tokens per second: excise's engine and learner, and TRL's GRPOTrainer.

Both use the same model (a Hugging Face folder), prompts, number of answers to each prompt, limits and threads, float32,
one optimizer step (AdamW, no KL) for each batch, and a trivial reward. A step consists of sampling, log-probabilities,
gradients, the optimizer and the transfer of weights to the engine. The two run in separate processes, which take
turns; the waiting one sleeps. The first step of each is not counted.

Run: ``pip install trl datasets``, then ``python benchmarks/throughput.py MODEL [--prompts 8] [--answers 8]
[--prompt-tokens 300] [--answer-tokens 32] [--steps 3]``. Prints sampled tokens per second of each, and their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

Ids = list[int]


def prompts_of(model: Path, number: int, length: int) -> list[Ids]:
    """Prompts: the first tokens of modules of the standard library."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    sources = sorted(Path(json.__file__).parents[1].glob("*.py"), key=lambda path: path.stat().st_size, reverse=True)
    found = []
    for path in sources:
        ids = list(tokenizer.encode(path.read_text(encoding="utf-8"), add_special_tokens=False))[:length]
        text = tokenizer.decode(ids)
        if len(tokenizer.encode(text, add_special_tokens=False)) == length:  # TRL gets the prompt as text
            found.append(ids)
        if len(found) == number:
            return found
    sys.exit("There are not enough prompts.")


def reward(ids: Ids) -> float:
    """A trivial reward that differs between answers."""
    return float(sum(ids) % 7) / 7


def turns() -> Iterator[None]:
    """Yield once for each line on standard input, by which the parent process requests a step."""
    for _ in sys.stdin:
        yield


def report_step(tokens: int, seconds: float) -> None:
    """Report tokens and seconds of one step to the parent process."""
    print(json.dumps({"tokens": tokens, "seconds": seconds}), flush=True)


def excise_steps(options: argparse.Namespace) -> None:
    """Make training steps with excise when the parent process requests them."""
    import torch
    from token_tasks import rollout_of
    from transformers import AutoModelForCausalLM

    from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions
    from excise.trainer.loop.learner import Learner, LearnerSettings
    from excise.trainer.objective.block_attention import enable_block_attention
    from excise.trainer.rollout_types import Group, Sampling

    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    enable_block_attention(model)
    engine = TransformersEngine.from_folder(options.model, TransformersOptions(context_length=2048))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    learner = Learner(model, optimizer, LearnerSettings(row_tokens=2048, reference_length=options.answer_tokens))
    stop = (int(model.config.eos_token_id),)
    prompts = prompts_of(options.model, options.prompts, options.prompt_tokens)

    async def steps() -> None:
        for version, _ in enumerate(turns()):
            began = time.perf_counter()
            sampling = Sampling(max_tokens=options.answer_tokens, stop_ids=stop)
            repeated = [prompt for prompt in prompts for _ in range(options.answers)]
            answers = await engine.generate(repeated, sampling)
            made = [
                rollout_of(f"r{n}", "g", repeated[n], answer, reward(list(answer.ids)))
                for n, answer in enumerate(answers)
            ]
            groups = [
                Group(group_id=str(n), instance_id="t", rollouts=tuple(made[n : n + options.answers]))
                for n in range(0, len(made), options.answers)
            ]
            learner.step(groups, version)
            await engine.load(learner.weights(), version + 1)
            report_step(sum(len(answer.ids) for answer in answers), time.perf_counter() - began)
        await engine.close()

    asyncio.run(steps())


def trl_steps(options: argparse.Namespace) -> None:
    """Make training steps with TRL when the parent process requests them."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    tokenizer: Any = AutoTokenizer.from_pretrained(options.model)
    texts = [tokenizer.decode(ids) for ids in prompts_of(options.model, options.prompts, options.prompt_tokens)]
    sampled: list[int] = []
    step_signals: Iterator[None] = turns()

    def rewards(completion_ids: list[Ids], **_: Any) -> list[float]:
        sampled.append(sum(map(len, completion_ids)))
        return [reward(ids) for ids in completion_ids]

    class StepTimer(TrainerCallback):
        """Waits before each step and reports it afterwards."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            next(step_signals)
            self.began = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            report_step(sampled[-1], time.perf_counter() - self.began)

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, use_cpu=not torch.cuda.is_available(), bf16=False, report_to=[], save_strategy="no",
            per_device_train_batch_size=options.answers, gradient_accumulation_steps=options.prompts,
            num_generations=options.answers, max_completion_length=options.answer_tokens, max_steps=options.steps + 1,
            learning_rate=1e-6, beta=0.0, loss_type="dr_grpo", scale_rewards="none", gradient_checkpointing=False,
            disable_tqdm=True, logging_strategy="no", temperature=1.0, top_k=0, top_p=1.0,
        )  # fmt: skip
        model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
        repeated = texts * (options.steps + 2)
        trainer = GRPOTrainer(
            model=model, reward_funcs=rewards, args=config, train_dataset=Dataset.from_dict({"prompt": repeated}),
            processing_class=tokenizer, callbacks=[StepTimer()],
        )  # fmt: skip
        trainer.train()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--answers", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=300)
    parser.add_argument("--answer-tokens", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--side", choices=("excise", "trl"))
    options = parser.parse_args()
    sides: dict[str, Callable[[argparse.Namespace], None]] = {"excise": excise_steps, "trl": trl_steps}
    if options.side:
        sides[options.side](options)
    else:
        take_turns(options, list(sides))


def take_turns(options: argparse.Namespace, sides: list[str]) -> None:
    """Run both processes step by step, in turn, and print the rates."""
    again = [sys.executable, __file__, *sys.argv[1:], "--side"]
    running = {
        name: subprocess.Popen([*again, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in sides
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for step in range(options.steps + 1):
        for name, process in running.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            line = next((line for line in process.stdout if line.startswith("{")), "")
            if not line:
                sys.exit(f"{name} ended with exit code {process.wait()}")
            found = json.loads(line)
            print(f"step {step} {name}: {found['tokens']} tokens in {found['seconds']:.1f} s", flush=True)
            rates[name].append(found["tokens"] / found["seconds"])
    for process in running.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    excise_rate, trl_rate = (median(rates[name][1:]) for name in sides)
    print(f"excise {excise_rate:.1f} tokens/s, TRL {trl_rate:.1f} tokens/s, ratio {excise_rate / trl_rate:.2f}")


if __name__ == "__main__":
    main()
