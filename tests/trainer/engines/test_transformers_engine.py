"""The engine in this process: log-probabilities and samples are those of the model, whatever else is in the batch."""

from __future__ import annotations

import asyncio
import functools
import math
import threading
from collections import Counter
from typing import Any

import pytest
import torch

from excise.errors import EngineError
from excise.trainer.engines.generation_batch import Answer, sample_tokens
from excise.trainer.engines.transformers_engine import TransformersEngine, TransformersOptions, pack_linears
from excise.trainer.rollout_types import Generation, Sampling, Stop

from ..byte_model import byte_model
from .reference_logprobs import TOLERANCE, reference_logprobs, weights_of

PROMPTS = [[1, 2, 3], list(range(40, 80)), [9] * 17, [1, 2, 3], [200]]


@pytest.mark.parametrize(
    ("kind", "temperature"), [("qwen3", 1.0), ("qwen3", 0.7), ("llama", 1.0), ("windowed", 1.0), ("mixture", 1.0)]
)
def test_logprobs_are_those_of_a_plain_forward_pass(run_async: Any, kind: str, temperature: float) -> None:
    """Twenty answers of different lengths, begun at different times, in a batch of at most six."""
    model = byte_model(kind=kind)

    async def many() -> list[tuple[list[int], Generation]]:
        engine = TransformersEngine(model, TransformersOptions(max_batch=6, max_prefill=60))
        asked = []
        for number in range(4):
            sampling = Sampling(max_tokens=5 + 9 * number, temperature=temperature, stop_ids=(258, 7))
            asked.append(asyncio.create_task(engine.generate(PROMPTS, sampling)))
            await asyncio.sleep(0.02)
        found = [pair for task in asked for pair in zip(PROMPTS, await task, strict=True)]
        await engine.close()
        return found

    found = run_async(many())
    assert len(found) == 20
    for prompt, answer in found:
        assert len(answer.ids) == len(answer.logprobs) == len(answer.versions) > 0
        assert (answer.ids[-1] in {258, 7}) == (answer.stop is Stop.END)
        assert not {258, 7} & set(answer.ids[:-1])
        assert answer.logprobs == pytest.approx(
            reference_logprobs(model, prompt, answer.ids, temperature), abs=TOLERANCE
        )
    assert Stop.LENGTH in {answer.stop for _, answer in found}


def test_tokens_are_sampled_from_the_distribution_of_the_model(run_async: Any) -> None:
    model = byte_model(scale=12.0)

    async def first_tokens() -> list[int]:
        engine = TransformersEngine(model, TransformersOptions(max_batch=1000))
        answers = await engine.generate([[5, 6, 7]] * 4000, Sampling(max_tokens=1))
        await engine.close()
        return [answer.ids[0] for answer in answers]

    drawn = Counter(run_async(first_tokens()))
    with torch.no_grad():
        expected = torch.softmax(model(torch.tensor([[5, 6, 7]])).logits[0, -1].float(), -1)
    likely = [n for n in range(264) if expected[n] > 0.01]
    assert len(likely) > 5
    for token in likely:
        p = float(expected[token])
        assert abs(drawn[token] / 4000 - p) < 5 * math.sqrt(p * (1 - p) / 4000)


def test_impossible_tokens_are_never_sampled_and_certain_ones_always() -> None:
    logits = torch.full((500, 9), -math.inf)
    logits[:, 4] = 0.0
    logits[250:, [0, 8]] = 0.0
    answers = [Answer((1,), Sampling(max_tokens=1), 1) for _ in range(500)]
    torch.manual_seed(0)
    sample_tokens(logits, answers, 3)
    assert {answer.ids[0] for answer in answers[:250]} == {4}
    some = Counter(answer.ids[0] for answer in answers[250:])
    assert set(some) == {0, 4, 8}
    assert min(some.values()) > 50
    assert {answer.versions[0] for answer in answers} == {3}
    assert [round(answers[n].logprobs[0], 4) for n in (0, 499)] == [0.0, round(-math.log(3), 4)]


def test_packed_linear_layers_compute_with_the_current_weights() -> None:
    model = byte_model()
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        before = model(ids).logits
        pack_linears(model)
        forwards = [m.forward for m in model.modules() if type(m) is torch.nn.Linear]
        assert all(isinstance(forward, functools.partial) for forward in forwards)
        assert len(forwards) > 10
        torch.testing.assert_close(model(ids).logits, before, atol=1e-5, rtol=1e-5)
        for parameter in model.parameters():
            parameter.mul_(1.1)
        pack_linears(model)
        assert (model(ids).logits - before).abs().max() > 1e-2


@pytest.mark.parametrize("kind", ["qwen3", "windowed"])
def test_a_prompt_that_continues_an_answer_is_prefilled_from_there(run_async: Any, kind: str) -> None:
    """Only the tokens after a known prefix are prefilled, as long as the weights stay the same."""
    other = byte_model(seed=1, kind=kind)

    async def talk() -> Any:
        engine = TransformersEngine(byte_model(kind=kind))
        turns, prompts, read = [], [[1, 2, 3], [50] * 30], [0]
        for turn in range(4):
            if turn == 3:
                await engine.load(weights_of(other), 1)
            asked = [*prompts, [7] * 9]
            answers = await engine.generate(asked, Sampling(max_tokens=40, stop_ids=tuple(range(0, 264, 20))))
            turns.append(list(zip(asked, answers, strict=True)))
            prompts = [[*p, *a.ids, 60 + turn, 61] for p, a in zip(prompts, answers, strict=False)]
            read.append(engine._batch.num_prefilled)
        await engine.close()
        return turns, read

    turns, read = run_async(talk())
    remembered: list[tuple[int, ...]] = [()]
    for turn, pairs in enumerate(turns):
        if turn == 3:
            remembered = [()]
        news = (len(p) - max(len(past) for past in remembered if tuple(p[: len(past)]) == past) for p, _ in pairs)
        again = 9 if turn in (1, 2) else 0  # the prompt that is the same each time, as long as the weights are
        assert read[turn + 1] - read[turn] == sum(news) - again
        for prompt, answer in pairs:
            expected = reference_logprobs(other if turn == 3 else byte_model(kind=kind), prompt, answer.ids)
            assert answer.logprobs == pytest.approx(expected, abs=TOLERANCE)
            if len(answer.ids) > 1:
                remembered.append((*prompt, *answer.ids[:-1]))
    assert read[3] < sum(len(prompt) for pairs in turns[:3] for prompt, _ in pairs)


def test_the_prefix_cache_is_bounded(run_async: Any) -> None:
    async def many() -> Any:
        engine = TransformersEngine(byte_model(), TransformersOptions(remembered=100))
        for first in range(6):
            await engine.generate([[first] * 30], Sampling(max_tokens=11))
        kept = [past[0] for past in engine._batch._past], [prompt[0] for prompt in engine._batch._prompts]
        await engine.close()
        return kept

    assert run_async(many()) == ([4, 5], [3, 4, 5])


def test_waiting_answers_reuse_the_prefilled_prompt(run_async: Any) -> None:
    """Forty answers of different lengths in a batch of eight; each of the two prompts is prefilled once."""
    model, prompts = byte_model(), [[9] * 20, [3, 1, 4, 1, 5, 9, 2, 6]]

    async def many() -> Any:
        engine = TransformersEngine(byte_model(), TransformersOptions(max_batch=8))
        asked = [prompt for prompt in prompts for _ in range(20)]
        answers = await engine.generate(asked, Sampling(max_tokens=40, stop_ids=tuple(range(0, 264, 12))))
        await engine.close()
        return list(zip(asked, answers, strict=True)), engine._batch.num_prefilled

    pairs, num_read = run_async(many())
    assert len({len(answer.ids) for _, answer in pairs}) > 8
    for prompt, answer in pairs:
        assert answer.logprobs == pytest.approx(reference_logprobs(model, prompt, answer.ids), abs=TOLERANCE)
    assert num_read == 28


def test_scores_are_the_logprobs_of_the_model(run_async: Any) -> None:
    model = byte_model()
    sequences = [[1, 2, 3, 4, 5], list(range(100)), [8]]

    async def scored() -> list[list[float]]:
        engine = TransformersEngine(model)
        scores = await engine.score(sequences)
        await engine.close()
        return scores

    for sequence, scores in zip(sequences, run_async(scored()), strict=True):
        expected = [0.0, *(reference_logprobs(model, sequence[:1], tuple(sequence[1:])) if len(sequence) > 1 else [])]
        assert scores == pytest.approx(expected, abs=TOLERANCE)


def test_a_seed_repeats_an_answer_and_temperature_zero_takes_the_likeliest_token(run_async: Any) -> None:
    async def twice() -> Any:
        engine = TransformersEngine(byte_model())
        seeded = [await engine.generate([[1, 2]], Sampling(max_tokens=20, seed=3)) for _ in range(2)]
        greedy = await engine.generate([[1, 2]], Sampling(max_tokens=8, temperature=0.0))
        await engine.close()
        return seeded, greedy[0]

    (one, two), greedy = run_async(twice())
    assert one == two
    model, ids = byte_model(), [1, 2]
    for token in greedy.ids:
        with torch.no_grad():
            assert int(model(torch.tensor([ids])).logits[0, -1].argmax()) == token
        ids.append(token)


def test_new_weights_change_what_is_sampled_and_its_version(run_async: Any) -> None:
    other = byte_model(seed=1)

    async def updated() -> Any:
        engine = TransformersEngine(byte_model())
        long = asyncio.create_task(engine.generate([[1, 2, 3]], Sampling(max_tokens=400)))
        await asyncio.sleep(0.15)
        await engine.load(weights_of(other), version=7)
        fresh = await engine.generate([[1, 2, 3]], Sampling(max_tokens=30))
        (old,) = await long
        version = engine.version
        await engine.close()
        return old, fresh[0], version

    old, fresh, version = run_async(updated())
    assert version == 7
    assert set(fresh.versions) == {7}
    assert fresh.logprobs == pytest.approx(reference_logprobs(other, [1, 2, 3], fresh.ids), abs=TOLERANCE)
    assert len(old.ids) == 400
    assert set(old.versions) == {0, 7}
    assert list(old.versions) == sorted(old.versions)
    began = old.versions.index(7)
    assert old.logprobs[:began] == pytest.approx(
        reference_logprobs(byte_model(), [1, 2, 3], old.ids)[:began], abs=TOLERANCE
    )


@pytest.mark.parametrize("wrong", ["name", "shape", "missing"])
def test_weights_that_do_not_fit_change_nothing(run_async: Any, wrong: str) -> None:
    weights = weights_of(byte_model(seed=1))
    if wrong == "name":
        weights.append(("nothing.weight", torch.zeros(1)))
    elif wrong == "shape":
        weights[-1] = (weights[-1][0], weights[-1][1][:1])
    else:
        weights.pop()

    async def refused() -> Any:
        engine = TransformersEngine(byte_model())
        before = await engine.score([[1, 2, 3, 4]])
        with pytest.raises(EngineError, match=r"weight|shape"):
            await engine.load(weights, version=1)
        after = await engine.score([[1, 2, 3, 4]])
        version = engine.version
        await engine.close()
        return before == after, version

    assert run_async(refused()) == (True, 0)


def test_a_full_context_ends_an_answer_with_stop_length(run_async: Any) -> None:
    async def full() -> Any:
        engine = TransformersEngine(byte_model(context=64))
        answers = await engine.generate([[1] * 60, [1] * 64, [1] * 90], Sampling(max_tokens=50))
        await engine.close()
        return answers

    answers = run_async(full())
    assert [(len(a.ids), a.stop) for a in answers] == [(4, Stop.LENGTH), (0, Stop.LENGTH), (0, Stop.LENGTH)]


def test_running_and_new_requests_of_a_failed_engine_raise(run_async: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> None:
        model = byte_model()
        engine = TransformersEngine(model)
        asked = [asyncio.create_task(engine.generate([[1, 2]], Sampling(max_tokens=500))) for _ in range(3)]
        await asyncio.sleep(0.05)
        monkeypatch.setattr(type(model), "forward", lambda *a, **k: 1 / 0)
        for task in asked:
            with pytest.raises(EngineError, match="division by zero"):
                await task
        with pytest.raises(EngineError, match="division by zero"):
            await engine.generate([[1, 2]], Sampling(max_tokens=5))
        await engine.close()

    run_async(failing())


def test_closing_aborts_running_answers(run_async: Any) -> None:
    async def closing() -> Any:
        engine = TransformersEngine(byte_model())
        task = asyncio.create_task(engine.generate([[1, 2]] * 3, Sampling(max_tokens=500)))
        await asyncio.sleep(0.1)
        await engine.close()
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await engine.generate([[1]], Sampling(max_tokens=1))
        return await task

    assert {answer.stop for answer in run_async(closing())} == {Stop.ABORTED}
    assert "excise-engine" not in {thread.name for thread in threading.enumerate()}


def test_a_cancelled_request_frees_its_place_in_the_batch(run_async: Any) -> None:
    async def cancelled() -> Any:
        engine = TransformersEngine(byte_model(), TransformersOptions(max_batch=1))
        first = asyncio.create_task(engine.generate([[1, 2]], Sampling(max_tokens=500)))
        await asyncio.sleep(0.05)
        first.cancel()
        second = await engine.generate([[3]], Sampling(max_tokens=2))
        await engine.close()
        return second

    assert len(run_async(cancelled())[0].ids) == 2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_logprobs_on_a_gpu_are_near_a_plain_forward_pass(run_async: Any) -> None:
    """In bfloat16, the mean difference to a plain forward pass has to be below 0.1 nats."""
    model = byte_model().to("cuda", torch.bfloat16)

    async def sampled() -> Any:
        engine = TransformersEngine(model)
        answers = await engine.generate(PROMPTS, Sampling(max_tokens=30, seed=5))
        await engine.close()
        return answers

    for prompt, answer in zip(PROMPTS, run_async(sampled()), strict=True):
        whole = torch.tensor([[*prompt, *answer.ids]], device="cuda")
        with torch.no_grad():
            logits = model(whole).logits[0, len(prompt) - 1 : -1].float()
        ids = torch.tensor(answer.ids, device="cuda")[:, None]
        expected = torch.log_softmax(logits, -1).gather(1, ids)[:, 0].cpu()
        assert (torch.tensor(answer.logprobs) - expected).abs().mean() < 0.1
