"""Models, rollouts and measurements that the parts of the benchmark for a GPU share; see ``gpu.py``."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from token_tasks import rollout_of

from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.objective.block_attention import enable_block_attention
from excise.trainer.objective.policy_forward import can_compile, compile_layers
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer
from excise.trainer.rollout_types import Generation, Group, Rollout, Stop

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16},
    "small": {"vocab_size": 32_000, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
              "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 64},
    "large": {"vocab_size": 32_000, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
              "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
}  # fmt: skip
"""Configurations of Qwen3: some 0.1, 450 and 1,250 million parameters."""
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40": 181e12, "4090": 165e12}
"""Dense bfloat16 operations per second, from the makers' data sheets, by a part of the device's name."""


@dataclass(frozen=True)
class Workload:
    """What is trained on and sampled."""

    prompts: int
    answers: int
    prompt_tokens: int
    answer_tokens: int

    @property
    def sampled_tokens(self) -> int:
        """Tokens of all answers."""
        return self.prompts * self.answers * self.answer_tokens


class Bench:
    """Models, groups and measurements that the parts share."""

    def __init__(self, size: str, steps: int) -> None:
        self.gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.gpu else "cpu")
        self.size, self.steps = size, steps
        self.work = Workload(8, 8, 512, 256) if size != "tiny" else Workload(2, 3, 24, 8)
        self.row_tokens = 16_384 if size != "tiny" else 256
        self.number_format = torch.bfloat16 if self.gpu else torch.float32

    def model(self, size: str = "", *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
        """A model with random weights on the device."""
        from transformers import Qwen3Config, Qwen3ForCausalLM

        torch.manual_seed(seed)
        config = Qwen3Config(**SIZES[size or self.size], max_position_embeddings=4096, tie_word_embeddings=False)
        return Qwen3ForCausalLM(config).to(self.device, dtype)

    @property
    def peak_flops(self) -> float:
        """Highest number of bfloat16 operations per second that the maker gives for the device; 0 if unknown."""
        name = torch.cuda.get_device_name() if self.gpu else ""
        return next((flops for part, flops in PEAK_FLOPS.items() if part in name), 0.0)

    def learner(
        self,
        model: Any,
        *,
        name: str = "adamw",
        row_tokens: int = 0,
        checkpointing: bool = True,
        compiled: bool | None = None,
        deterministic: bool = False,
        lr: float = 1e-5,
    ) -> Learner:
        """A learner with an optimizer; its layers are compiled where a run does so, unless ``compiled`` says."""
        if checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        enable_block_attention(model)
        settings = LearnerSettings(
            row_tokens=row_tokens or self.row_tokens,
            reference_length=self.work.answer_tokens,
            bf16=self.gpu,
            deterministic=deterministic,
        )
        learner = Learner(model, build_optimizer(model, OptimizerSettings(name=name, lr=lr)), settings)  # type: ignore[arg-type]
        if can_compile(model, self.device) if compiled is None else compiled:
            compile_layers(model)
        return learner

    def groups(self, work: Workload | None = None, *, seed: int = 0, size: str = "") -> list[Group]:
        """Groups of rollouts of random tokens; answers to one prompt have different rewards."""
        work, rng = work or self.work, random.Random(seed)
        vocabulary = SIZES[size or self.size]["vocab_size"]
        found = []
        for number in range(work.prompts):
            prompt = [rng.randrange(vocabulary) for _ in range(work.prompt_tokens)]
            rollouts = tuple(self._rollout(rng, vocabulary, prompt, work.answer_tokens, n) for n in range(work.answers))
            found.append(Group(group_id=f"g{number}", instance_id="t", rollouts=rollouts))
        return found

    def prompts(self) -> list[list[int]]:
        """The prompts of the groups, each as often as it has answers."""
        rollouts = [rollout for group in self.groups() for rollout in group.rollouts]
        return [list(rollout.segments[0].ids[: self.work.prompt_tokens]) for rollout in rollouts]

    def _rollout(self, rng: random.Random, vocabulary: int, prompt: list[int], length: int, number: int) -> Rollout:
        ids = tuple(rng.randrange(vocabulary) for _ in range(length))
        logprob = -torch.log(torch.tensor(float(vocabulary))).item()
        answer = Generation(ids=ids, logprobs=(logprob,) * length, versions=(0,) * length, stop=Stop.LENGTH)
        return rollout_of(f"r{number}", "g", prompt, answer, float(number % 2))

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.gpu:
            torch.cuda.synchronize()

    def seconds(self, function: Callable[[], object], *, runs: int = 0) -> float:
        """Median seconds of a call, after one that is not counted."""
        times = []
        for _ in range(1 + (runs or self.steps)):
            self.synchronize()
            began = time.perf_counter()
            function()
            self.synchronize()
            times.append(time.perf_counter() - began)
        return sorted(times[1:])[len(times[1:]) // 2]

    def peak_memory_gb(self, function: Callable[[], object]) -> float | None:
        """Highest memory of the device during a call, in GB; ``None`` without a GPU."""
        if not self.gpu:
            function()
            return None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        function()
        return round(torch.cuda.max_memory_allocated() / 1e9, 2)
