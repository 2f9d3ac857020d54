"""An extension of vLLM's workers (option ``worker_extension_cls``). Imports nothing: this file is copied by itself.

On the CPU, vLLM multiplies by a packed copy of each weight. A checkpoint has no weight for an output head that is tied
to the embeddings, so a reload leaves the head's copy unchanged, and answers come from partly old weights without an
error (seen in vLLM 0.32.0). This extension repacks the head after each reload.
"""

from __future__ import annotations

from typing import Any

METHOD = "excise_reload"


class ExciseReload:
    """A mixin for vLLM's worker class."""

    def excise_reload(self, weights_path: str) -> None:
        """Load the weights of a folder into the running model."""
        worker: Any = self
        worker.reload_weights(weights_path=weights_path)
        for name, module in worker.model_runner.get_model().named_modules():
            if name.rpartition(".")[2] == "lm_head" and hasattr(module, "cpu_linear"):
                module.quant_method.process_weights_after_loading(module)
