"""Names that JAX does not promise to keep: all that the modules beside this one use, and nothing else uses
them. Each was tried with jax and jaxlib 0.10.2; they are looked up when they are used first.

    jaxlib.mlir.ir                                       values and operations of StableHLO
    jaxlib.mlir.dialects.sdy, .stablehlo                 ShardingConstraintOp, OptimizationBarrierOp
    jaxlib._jax.mlir.mlir_module_to_xla_computation      StableHLO to HLO
    jaxlib._jax.mlir.hlo_to_stablehlo                    and back
    jaxlib._hlo.hlo_module_from_text                     HLO text
    jaxlib._hlo.XlaComputation                           HLO as bytes (protobuf)
    jax._src.interpreters.mlir.make_ir_context           a context that knows JAX' dialects
    jax.stages.Lowered.compiler_ir, .compile             compile() compiles what compiler_ir() gave, as edited
"""

import importlib
import struct


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


def hlo_text_of(program):
    """HLO text of StableHLO (an MLIR object, its text, its bytes), of HLO as bytes (.pb), and of what
    jax.export made or what that was serialized to."""
    program = getattr(program, "mlir_module_serialized", program)
    if isinstance(program, (bytes, bytearray)):
        return _text_of_bytes(bytes(program))
    text = program if isinstance(program, str) else program.operation.get_asm(enable_debug_info=True)
    return _jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text()


def _text_of_bytes(program):
    if program.startswith(b"ML\xefR") or b"func.func" in program[:1 << 20]:
        module = program if program.startswith(b"ML\xefR") else program.decode()
        return _jax.mlir.mlir_module_to_xla_computation(module).as_hlo_text()
    try:
        return _hlo.XlaComputation(_module_of(program)).as_hlo_text()
    except RuntimeError:
        pass
    try:
        return hlo_text_of(importlib.import_module("jax.export").deserialize(bytearray(program)))
    except ImportError as error:
        raise ValueError("these bytes are not StableHLO or HLO; to read an exported function, JAX wants "
                         "flatbuffers: pip install flatbuffers") from error
    except (struct.error, ValueError, TypeError, IndexError) as error:
        raise ValueError("these bytes are not StableHLO, HLO or an exported function") from error


def _module_of(proto):
    """An HloProto, as XLA dumps it, holds an HloModuleProto first; that begins with a name."""
    size, at = 0, 1
    while at < len(proto) and at < 10:
        size |= (proto[at] & 127) << 7 * (at - 1)
        at += 1
        if proto[at - 1] < 128:
            break
    return proto[at:at + size] if proto[:1] == proto[at:at + 1] == b"\n" else proto


def stablehlo_of(hlo_text):
    """Bytes of the StableHLO module of a program."""
    module = _hlo.hlo_module_from_text(hlo_text)
    return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())


def new_context():
    return _mlir.make_ir_context()
