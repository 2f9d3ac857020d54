"""Self-distillation on demonstrations: reading them, epochs, prompts, and a complete run with a tiny model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from excise.errors import ConfigError
from excise.trainer.loop.controller import Controller, RunEnd
from excise.trainer.reporting.metrics import read_metrics
from excise.trainer.reporting.progress_display import ProgressDisplay
from excise.trainer.rollout_types import Group
from excise.trainer.rollouts.demonstrations import (
    TEACHER_CONTEXT,
    Demonstration,
    EpochCurriculum,
    PromptTemplate,
    read_demonstrations,
)
from excise.trainer.setup.run_builder import build_policy, build_run
from excise.trainer.setup.training_config import load_training

from ..tiny_folder import make_folder, make_tokenizer, write_demonstrations
from ..tiny_run import PlainEngine


def test_demonstrations_are_read_and_errors_name_the_line(tmp_path: Path) -> None:
    path = write_demonstrations(tmp_path / "a.jsonl", [("p", "d"), ("p", "e"), ("p", "d")])
    assert read_demonstrations(path) == [
        Demonstration(prompt="p", demonstration="d"),
        Demonstration(prompt="p", demonstration="e"),
    ]
    path.write_text('{"prompt": "p", "demonstration": "d"}\n\n{"prompt": "p"}\n')
    with pytest.raises(ConfigError, match=r"a\.jsonl:3"):
        read_demonstrations(path)
    path.write_text("")
    with pytest.raises(ConfigError, match="no demonstrations"):
        read_demonstrations(path)


def test_the_context_of_the_teacher_is_a_conversation_of_the_template() -> None:
    tokenizer = make_tokenizer()
    template = PromptTemplate(tokenizer)
    prompt, at = template.question("how?")
    aside = template.further_message("how?", "like this")
    assert tokenizer.decode(prompt) == "<|user|>how?<|end|><|assistant|>"
    assert tokenizer.decode([*prompt[:at], *aside, *prompt[at:]]) == (
        "<|user|>how?<|end|><|user|>like this<|end|><|assistant|>"
    )
    bare = PromptTemplate(make_tokenizer(template=False))
    prompt, at = bare.question("how?")
    assert (len(prompt), at) == (4, 4)
    assert bare.further_message("how?", "so") == tuple(make_tokenizer(False).encode("so"))


def test_each_epoch_is_shuffled_and_a_resume_continues_it() -> None:
    ids = ["a", "b", "c", "d"]
    whole = EpochCurriculum(ids, epochs=2, seed=1)
    drawn = [whole.next_task() for _ in range(9)]
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == ids  # type: ignore[type-var]
    assert drawn[8] is None
    first = EpochCurriculum(ids, epochs=2, seed=1)
    start = [first.next_task() for _ in range(3)]
    second = EpochCurriculum(ids, epochs=2, seed=1)
    second.restore(first.state())
    second.record(Group(group_id="g", instance_id="a", rollouts=()))
    assert [*start, *(second.next_task() for _ in range(6))] == drawn


def test_a_demonstration_may_contain_any_line_separator(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    values = {"prompt": "a\u2028b", "demonstration": "c\u2029d\x85e"}
    path.write_text(json.dumps(values, ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_demonstrations(path) == [Demonstration(**values)]


def test_a_run_on_demonstrations_teaches_what_they_show(tmp_path: Path) -> None:
    """The teacher answers z with an example in its context; the policy, which never sees one, learns to."""
    model = make_folder(tmp_path / "model")
    _train_teacher(model)
    shown = write_demonstrations(tmp_path / "shown.jsonl", [("say", "zzz"), ("tell", "zzz"), ("speak", "zzz")])
    (tmp_path / "train.toml").write_text(
        f'folder = "run"\nmethod = "sdft"\n[policy]\nmodel = "model"\n[sdft]\ndemonstrations = "{shown.name}"\n'
        "answer_tokens = 4\nepochs = 100\n[optimizer]\nlr = 0.003\n[teacher]\nkind = 'frozen'\n"
        "[loop]\nsteps = 12\ntensorboard = false\n[loop.schedule]\nbatch = 3\ngroup_size = 2\nstaleness = 0\n"
    )
    settings = load_training(tmp_path / "train.toml")
    policy = build_policy(settings)
    z = policy.tokenizer.encode("z")[0]
    prompt, _ = PromptTemplate(policy.tokenizer).question("say")

    @torch.no_grad()
    def says_z() -> float:
        return float(policy.learner.model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1)[z])

    before = says_z()
    engine = PlainEngine(AutoModelForCausalLM.from_pretrained(model))

    async def whole() -> RunEnd:
        with ProgressDisplay(Console(file=(tmp_path / "log").open("w")), steps=12) as display:
            return await Controller(build_run(settings, engine, policy), settings.loop, settings.folder, display).run()

    assert asyncio.run(whole()) is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert len(rows) == 12
    assert rows[-1]["hint_kl"] < rows[0]["hint_kl"] / 2
    assert says_z() > max(0.3, 3 * before)


def _train_teacher(folder: Path) -> None:
    """Train the model in the folder to answer z after a demonstration, and not without one."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    template = PromptTemplate(make_tokenizer())
    prompts = []
    for word in ("say", "tell", "speak"):
        prompt, at = template.question(word)
        aside = template.further_message(word, TEACHER_CONTEXT.format(demonstration="zzz"))
        prompts.append(((*prompt[:at], *aside, *prompt[at:]), "zzzz"))
        prompts.append((prompt, "abab"))
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    tokenizer = make_tokenizer()
    for _ in range(60):
        for prompt, answer in prompts:
            ids = torch.tensor([[*prompt, *tokenizer.encode(answer)]])
            logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1]
            torch.nn.functional.cross_entropy(logits, ids[0, len(prompt) :]).backward()
        adam.step()
        adam.zero_grad()
    model.save_pretrained(folder)
