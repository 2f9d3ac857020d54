"""Muon over four real ranks against whole matrices in one process, each block by torch's own Muon."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import muon_models
import muon_rank_program
import pytest
import torch
from torch import nn

from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer

HEADS = {"q_proj": 6, "k_proj": 2, "v_proj": 2, "qkv_proj": 10}
"""Heads of the tiny models' projections."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, muon_rank_program.State]]:
    """The folder and the results of a run of four ranks; a run that hangs is killed."""
    folder = tmp_path_factory.mktemp("ranks")
    for name in ("dense", "moe-dual"):
        model, optimizer = single(muon_rank_program.SCENARIOS[name][0])
        muon_rank_program.trained(model, optimizer, range(muon_rank_program.STEPS - 1))
        muon_rank_program.save(model, optimizer, folder / "single" / name)
    program = subprocess.run(
        [sys.executable, muon_rank_program.__file__, str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-4000:]
    return folder, torch.load(folder / "result.pt")


def single(kind: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its Muon in this process, unsharded."""
    model = muon_models.MODELS[kind]()
    return model, build_optimizer(model, muon_rank_program.SETTINGS)


def is_matrix(name: str) -> bool:
    """Whether Muon applies; written for these models, independent of the tested rules."""
    return not any(part in name for part in ("embed", "lm_head", "norm", "mlp.gate.weight"))


def cut(name: str, tensor: torch.Tensor) -> list[torch.Tensor]:
    """The blocks of a parameter of these models, as views."""
    projection = name.split(".")[-2]
    if "experts" in name:
        halves = 2 if "gate_up" in name else 1
        return [half for expert in tensor for half in expert.chunk(halves)]
    if projection in HEADS:
        return list(tensor.chunk(HEADS[projection]))
    return list(tensor.chunk(2)) if projection == "gate_up_proj" else [tensor]


def oracle(kind: str, steps: int) -> muon_rank_program.State:
    """Weights after ``steps`` with ``torch.optim.Muon``, each block a parameter of its own, and AdamW for the rest."""
    weights = {name: p.detach().clone() for name, p in muon_models.MODELS[kind]().named_parameters()}
    blocks: list[tuple[nn.Parameter, str, int]] = []
    others = {name: nn.Parameter(value) for name, value in weights.items() if not is_matrix(name)}
    for name, value in weights.items():
        if is_matrix(name):
            blocks += [(nn.Parameter(block), name, number) for number, block in enumerate(cut(name, value))]
    options = {"lr": muon_rank_program.LR}
    muon = torch.optim.Muon(
        [p for p, *_ in blocks], weight_decay=muon_rank_program.DECAY, adjust_lr_fn="match_rms_adamw", **options
    )
    vectors = [p for p in others.values() if p.ndim < 2]
    tables = [p for p in others.values() if p.ndim >= 2]
    adamw = torch.optim.AdamW(
        [{"params": tables, "weight_decay": muon_rank_program.DECAY}, {"params": vectors, "weight_decay": 0.0}],
        betas=(0.9, 0.95),
        **options,
    )
    for step in range(steps):
        gradients = {name: muon_rank_program.gradient(name, step, value.shape) for name, value in weights.items()}
        for parameter, name, number in blocks:
            parameter.grad = cut(name, gradients[name])[number].clone()
        for name, parameter in others.items():
            parameter.grad = gradients[name]
        muon.step()
        adamw.step()
    return weights  # the blocks are views of these


def assert_close(found: muon_rank_program.State, expected: muon_rank_program.State, tolerance: float) -> None:
    """Check that every tensor agrees within ``tolerance`` times its largest element."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        error = (found[name].float() - value.float()).abs().max()
        assert error <= tolerance * value.abs().max(), f"{name}: {error:.2e}"


@pytest.mark.parametrize("kind", muon_models.MODELS)
def test_one_process_equals_the_muon_of_torch_on_each_block(kind: str) -> None:
    model, optimizer = single(kind)
    muon_rank_program.trained(model, optimizer, range(muon_rank_program.STEPS))
    assert_close(muon_rank_program.full(model.named_parameters()), oracle(kind, muon_rank_program.STEPS), 1e-2)


@pytest.mark.parametrize("scenario", muon_rank_program.SCENARIOS)
def test_four_ranks_equal_one_process(scenario: str, ranks: tuple[Path, dict[str, muon_rank_program.State]]) -> None:
    kind = muon_rank_program.SCENARIOS[scenario][0]
    model, optimizer = single(kind)
    muon_rank_program.prepare(scenario, optimizer)
    muon_rank_program.trained(model, optimizer, range(muon_rank_program.STEPS))
    assert_close(
        ranks[1][scenario],
        muon_rank_program.full(model.named_parameters()),
        1e-5 if scenario.endswith("-many") else 1e-6,
    )


@pytest.mark.parametrize("scenario", ["dense", "moe-dual"])
def test_a_checkpoint_of_four_ranks_is_exact_in_one_process(
    scenario: str, ranks: tuple[Path, dict[str, muon_rank_program.State]]
) -> None:
    folder, results = ranks
    model, optimizer = single(muon_rank_program.SCENARIOS[scenario][0])
    muon_rank_program.restore(model, optimizer, folder / "sharded" / scenario)
    assert_equal(muon_rank_program.everything(model, optimizer), results[f"{scenario}/saved"])
    muon_rank_program.trained(model, optimizer, range(muon_rank_program.STEPS - 1, muon_rank_program.STEPS))
    assert_close(muon_rank_program.full(model.named_parameters()), results[scenario], 1e-6)


@pytest.mark.parametrize("scenario", ["dense", "moe-dual"])
def test_a_checkpoint_of_one_process_is_exact_on_four_ranks(
    scenario: str, ranks: tuple[Path, dict[str, muon_rank_program.State]]
) -> None:
    folder, results = ranks
    model, optimizer = single(muon_rank_program.SCENARIOS[scenario][0])
    muon_rank_program.restore(model, optimizer, folder / "single" / scenario)
    assert_equal(results[f"{scenario}/restored"], muon_rank_program.everything(model, optimizer))
    muon_rank_program.trained(model, optimizer, range(muon_rank_program.STEPS - 1, muon_rank_program.STEPS))
    assert_close(results[f"{scenario}/went-on"], muon_rank_program.full(model.named_parameters()), 1e-6)


@pytest.mark.parametrize(
    ("name", "settings"), [("real", muon_rank_program.SETTINGS), ("real-adamw", muon_rank_program.ADAMW)]
)
def test_gradients_of_mixed_meshes_are_clipped_by_one_norm(
    name: str, settings: OptimizerSettings, ranks: tuple[Path, dict[str, muon_rank_program.State]]
) -> None:
    model = muon_models.moe()
    optimizer = build_optimizer(model, settings)
    muon_rank_program.backward(model)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), muon_rank_program.MAX_NORM)
    optimizer.step()
    assert norm > muon_rank_program.MAX_NORM
    found = dict(ranks[1][name])
    torch.testing.assert_close(found.pop("norm"), norm, rtol=1e-5, atol=0.0)
    assert_close(found, muon_rank_program.full(model.named_parameters()), 2e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("kind", muon_models.MODELS)
def test_a_gpu_gives_the_same_result(kind: str) -> None:
    model = muon_models.MODELS[kind]().cuda()
    optimizer = build_optimizer(model, muon_rank_program.SETTINGS)
    for step in range(muon_rank_program.STEPS):
        for name, parameter in model.named_parameters():
            parameter.grad = muon_rank_program.gradient(name, step, parameter.shape).cuda()
        optimizer.step()
    found = {name: value.cpu() for name, value in muon_rank_program.full(model.named_parameters()).items()}
    assert_close(found, oracle(kind, muon_rank_program.STEPS), 2e-2)


@pytest.mark.slow
def test_a_lost_rank_ends_the_others(tmp_path: Path) -> None:
    """Ranks that wait for a lost one get an error by the deadline of the process group."""
    program = subprocess.run(
        [sys.executable, muon_rank_program.__file__, str(tmp_path), "lost"],
        capture_output=True,
        text=True,
        timeout=2400,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-4000:]
    told = [float(line.split()[1]) for line in program.stdout.splitlines() if line.startswith("told")]
    assert len(told) == muon_rank_program.WORLD - 1, program.stdout
    assert max(told) < muon_rank_program.LOST_DEADLINE_S + 20


def assert_equal(found: muon_rank_program.State, expected: muon_rank_program.State) -> None:
    """Check that every tensor is equal bit for bit, and that momentum is among them."""
    assert found.keys() == expected.keys()
    assert any(name.endswith("momentum_buffer") and value.abs().max() > 0 for name, value in found.items())
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
