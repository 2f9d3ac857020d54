"""What runs inside vLLM's workers, by its option ``worker_extension_cls``. Imports nothing: it travels alone.

On the CPU, vLLM multiplies by a packed copy of each weight. Of a head that is tied to the embeddings, no weight is in a
checkpoint, so its reload leaves that copy as it was: answers come from half-new weights, without an error (seen in vLLM
0.32.0). Here the copy is made anew.
"""

from __future__ import annotations

from typing import Any

METHOD = "excise_reload"


class ExciseReload:
    """Mixed into vLLM's worker."""

    def excise_reload(self, weights_path: str) -> None:
        """Read the weights of a folder into the running model."""
        worker: Any = self
        worker.reload_weights(weights_path=weights_path)
        for name, module in worker.model_runner.get_model().named_modules():
            if name.rpartition(".")[2] == "lm_head" and hasattr(module, "cpu_linear"):
                module.quant_method.process_weights_after_loading(module)
