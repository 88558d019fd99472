"""Names that JAX does not promise to keep: all that the modules beside this one use, and nothing else uses
them. Each was tried with jax and jaxlib 0.10.2; they are looked up when they are used first.

    jaxlib.mlir.ir                                       values and operations of StableHLO
    jaxlib.mlir.dialects.sdy, .stablehlo                 ShardingConstraintOp, OptimizationBarrierOp
    jaxlib._jax.mlir.mlir_module_to_xla_computation      StableHLO to HLO
    jaxlib._jax.mlir.hlo_to_stablehlo                    and back
    jaxlib._hlo.hlo_module_from_text                     HLO text
    jax._src.interpreters.mlir.make_ir_context           a context that knows JAX' dialects
    jax.stages.Lowered.compiler_ir, .compile             compile() compiles what compiler_ir() gave, as edited
"""

import importlib


class _Later:
    """A module that is imported when something of it is used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self._name), attribute)


ir = _Later("jaxlib.mlir.ir")
sdy = _Later("jaxlib.mlir.dialects.sdy")
stablehlo = _Later("jaxlib.mlir.dialects.stablehlo")
_hlo = _Later("jaxlib._hlo")
_jax = _Later("jaxlib._jax")
_mlir = _Later("jax._src.interpreters.mlir")


def editable(lowered):
    """The StableHLO module of a jax.stages.Lowered, which its compile() will compile with all changes."""
    return lowered.compiler_ir("stablehlo")


def hlo_text_of(module):
    """HLO text of a StableHLO module (an MLIR object, or its text)."""
    text = module if isinstance(module, str) else module.operation.get_asm(enable_debug_info=True)
    return _jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text()


def stablehlo_of(hlo_text):
    """Bytes of the StableHLO module of a program."""
    module = _hlo.hlo_module_from_text(hlo_text)
    return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())


def new_context():
    return _mlir.make_ir_context()
