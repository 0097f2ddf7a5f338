"""jit: stage once per signature, compile once, call."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from xformlib.api.arguments import Flat, aval_of, check_callable, flatten_arrays, function_name, restamp_all
from xformlib.array import ArrayImpl, Aval
from xformlib.errors import StaticArgumentError, TreeError
from xformlib.keys import physical_value
from xformlib.op import state
from xformlib.ops.control import call
from xformlib.options import config
from xformlib.tree_util import PyTreeDef, tree_unflatten

__all__ = ["Compiled", "Lowered", "clear_caches", "jit"]

_caches: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def clear_caches() -> None:
    """Forget all programs traced and compiled in this process (the cache on disk stays)."""
    for by_signature in _caches.values():
        for cache in by_signature.values():
            cache.clear()


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Any:
    """Compile ``fun``: it is run once per signature on placeholders, and the recorded program runs from then on.

    Args:
        fun: function of arrays and pytrees of arrays, without side effects. Without it, ``jit(...)`` is a decorator.
        static_argnums, static_argnames: arguments that are no arrays but part of the program; hashable. It is traced anew
            for each new value (compared by type and value).
        donate_argnums, donate_argnames: arguments whose arrays may not be used afterwards, so that their memory can be
            reused.
        keep_unused: accepted for compatibility: unused arguments are always part of the signature.
        inline: when called inside another traced function, record the operations there instead of a call.

    Returns:
        The compiled function, with ``lower(*args)`` for its program, ``__wrapped__`` and ``clear_cache()``.

    Raises:
        StaticArgumentError: unhashable static arguments, or numbers and names that the function does not have.
        NotAnArrayError: an argument that is no array and not static.
        ConcretizationTypeError: when ``fun`` needs the value of an array (``if x > 0``).

    >>> import xformlib as xf, xformlib.numpy as jnp
    >>> f = xf.jit(lambda x: jnp.sqrt(x) + 1)
    >>> print(f(4.0))
    3.0
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
        )
    check_callable(fun, "jit")
    signature = _Signature(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    return JitFunction(fun, signature, inline)


class _Signature:
    """Which arguments are static and which donated, by number and by name."""

    def __init__(self, fun: Any, static_nums: Any, static_names: Any, donate_nums: Any, donate_names: Any) -> None:
        try:
            self.parameters = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):
            self.parameters = []
        self.name = function_name(fun)
        self.static_nums, self.static_names = self._resolve("static", static_nums, static_names)
        self.donate_nums, self.donate_names = self._resolve("donate", donate_nums, donate_names)
        self.key = (self.static_nums, self.static_names, self.donate_nums, self.donate_names)

    def _resolve(self, what: str, nums: Any, names: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
        nums = () if nums is None else (nums,) if hasattr(nums, "__index__") else tuple(nums)
        names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
        positional = [p.name for p in self.parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in self.parameters) or not self.parameters
        keywords = any(p.kind is p.VAR_KEYWORD for p in self.parameters) or not self.parameters
        for i in nums:
            if not hasattr(i, "__index__"):
                raise StaticArgumentError(f"jit of {self.name}: {what}_argnums must be ints; got {i!r:.60}.")
            if not variadic and not -len(positional) <= i < len(positional):
                raise StaticArgumentError(
                    f"jit of {self.name}: {what}_argnums={i} is out of range for {len(positional)} positional parameters."
                )
        all_names = {p.name for p in self.parameters}
        for n in names:
            if not isinstance(n, str) or (not keywords and n not in all_names):
                raise StaticArgumentError(
                    f"jit of {self.name}: {what}_argnames has {n!r}, which is no parameter; it has {sorted(all_names)}."
                )
        found = {i % len(positional) if i < 0 and positional else i for i in nums}
        given = set(names)
        # Only one of the two given: the other follows from the signature, so both call styles work.
        found |= {positional.index(n) for n in names if n in positional}
        given |= {positional[i] for i in found if i < len(positional)}
        return tuple(sorted(found)), tuple(sorted(given))


def _static_key(value: Any, name: str, what: str) -> Any:
    """A key that tells apart equal values of different type (1, True, 1.0) and 0.0 from -0.0."""
    if isinstance(value, float):
        return float, value.hex()
    if isinstance(value, complex):
        return complex, value.real.hex(), value.imag.hex()
    if type(value) is tuple:
        return (tuple, *[_static_key(v, name, what) for v in value])
    try:
        hash(value)
    except TypeError:
        raise StaticArgumentError(
            f"jit of {name}: static {what} is {type(value).__name__} {value!r:.60}, which is not hashable. "
            "Give a hashable value (a tuple in place of a list), or make the argument dynamic."
        ) from None
    return type(value), value


class JitFunction:
    """A compiled function; see :func:`jit`."""

    def __init__(self, fun: Callable[..., Any], signature: _Signature, inline: bool) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun
        self._fun = fun
        self._signature = signature
        self._inline = inline
        self._cache = self._shared_cache()

    def _shared_cache(self) -> dict[Any, Any]:
        """Programs by signature, shared by all ``jit(fun)`` of the same function object."""
        try:
            by_signature = _caches.setdefault(self._fun, {})
        except TypeError:  # not hashable or not weakly referenceable
            return {}
        return by_signature.setdefault(self._signature.key, {})  # type: ignore[no-any-return]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._fun!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        leaves, traced = self._traced(args, kwargs)
        if self._inline and state.frame is not None:
            from xformlib.staging import replay

            return tree_unflatten(traced.out_tree, replay(traced.program, [*leaves, *traced.program.captures]))
        program = traced.program
        values = [x if type(x) is ArrayImpl else physical_value(x) for x in leaves]
        if program.captures:
            values += [physical_value(c) for c in program.captures]
        outs = call(program, values)
        if traced.donated and state.frame is None:
            self._donate(leaves, traced.donated, outs)
        if traced.needs_restamp or state.frame is not None:
            outs = restamp_all(outs, program.out_avals)
        return tree_unflatten(traced.out_tree, outs)

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], _Traced]:
        """The array leaves of the dynamic arguments, and the program for their signature."""
        signature = self._signature
        statics: Any = ()
        if signature.static_nums or signature.static_names:
            args, kwargs, fixed, statics = _split_static(signature, args, kwargs)
        else:
            fixed = None
        leaves, in_tree = flatten_arrays((args, kwargs), f"jit of {signature.name}: argument ", alias=True)
        key = (in_tree, tuple([(x.shape, x.dtype, x.weak_type) for x in leaves]), statics, config.key())
        traced = self._cache.get(key)
        if traced is None:
            traced = self._trace(in_tree, leaves, fixed, args, kwargs)
            if traced.cacheable:
                self._cache[key] = traced
        return leaves, traced

    def _trace(self, in_tree: PyTreeDef, leaves: Sequence[Any], fixed: Any, args: Any, kwargs: Any) -> _Traced:
        from xformlib.staging import stage

        fun = self._fun if fixed is None else fixed.bind(self._fun)
        flat = Flat(fun, in_tree, name=self._signature.name)
        program = stage(flat, [aval_of(x) for x in leaves], kind=f"jit of {self._signature.name}")
        return _Traced(program, in_tree, flat.out_tree, self._donated(args, kwargs, fixed))

    def _donated(self, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: Any) -> tuple[int, ...]:
        """Positions of donated leaves."""
        signature = self._signature
        if not signature.donate_nums and not signature.donate_names:
            return ()
        from xformlib.tree_util import tree_leaves, tree_map

        positions = fixed.dynamic_positions if fixed is not None else range(len(args))
        marks = (
            tuple(
                [tree_map(lambda _, p=p: p in signature.donate_nums, a) for p, a in zip(positions, args, strict=True)]
            ),
            {k: tree_map(lambda _, k=k: k in signature.donate_names, v) for k, v in kwargs.items()},
        )
        return tuple([i for i, m in enumerate(tree_leaves(marks)) if m])

    @staticmethod
    def _donate(leaves: Sequence[Any], donated: Sequence[int], outs: Sequence[Any]) -> None:
        kept = {id(x) for x in outs}
        for i in donated:
            if isinstance(leaves[i], ArrayImpl) and id(leaves[i]) not in kept:
                leaves[i].delete()

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for these arguments (arrays or ShapeDtypeStructs), not yet compiled."""
        return Lowered(self._traced_abstract(args, kwargs), self._signature)

    def _traced_abstract(self, args: Any, kwargs: Any) -> _Traced:
        signature = self._signature
        fixed = None
        if signature.static_nums or signature.static_names:
            args, kwargs, fixed, _ = _split_static(signature, args, kwargs)
        from xformlib.api.inspection import flatten_avals

        avals, in_tree = flatten_avals((args, kwargs), f"jit of {signature.name}: argument ")
        return self._trace(in_tree, avals, fixed, args, kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result, as a tree of ShapeDtypeStructs."""
        return self.lower(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget the programs traced so far."""
        self._cache.clear()


class _Traced:
    """A staged program with its trees."""

    __slots__ = ("cacheable", "donated", "in_tree", "needs_restamp", "out_tree", "program")

    def __init__(self, program: Any, in_tree: PyTreeDef, out_tree: PyTreeDef, donated: tuple[int, ...]) -> None:
        from xformlib.dtypes import KeyDType

        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        self.cacheable = program.is_closed and not program.baked
        self.needs_restamp = any(isinstance(a.dtype, KeyDType) for a in program.out_avals)


class _Fixed:
    """Static arguments taken out of a call, to be put back when tracing."""

    def __init__(self, n: int, by_position: dict[int, Any], by_name: dict[str, Any]) -> None:
        self.by_position = by_position
        self.by_name = by_name
        self.dynamic_positions = [i for i in range(n) if i not in by_position]
        self.n = n

    def bind(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        def with_statics(*dynamic: Any, **kwargs: Any) -> Any:
            rest = iter(dynamic)
            args = [self.by_position[i] if i in self.by_position else next(rest) for i in range(self.n)]
            return fun(*args, **kwargs, **self.by_name)

        return with_statics


def _split_static(signature: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, _Fixed, Any]:
    nums = [i % len(args) if i < 0 else i for i in signature.static_nums]
    by_position = {i: args[i] for i in nums if i < len(args)}
    by_name = {k: v for k, v in kwargs.items() if k in signature.static_names}
    fixed = _Fixed(len(args), by_position, by_name)
    key = (
        tuple([(i, _static_key(v, signature.name, f"argument {i}")) for i, v in by_position.items()]),
        tuple([(k, _static_key(v, signature.name, f"argument {k!r}")) for k, v in sorted(by_name.items())]),
    )
    dynamic = tuple([args[i] for i in fixed.dynamic_positions])
    return dynamic, {k: v for k, v in kwargs.items() if k not in by_name}, fixed, key


class Lowered:
    """A staged program: ``as_text()`` shows it, ``compile()`` makes it executable."""

    def __init__(self, traced: _Traced, signature: _Signature) -> None:
        self._traced = traced
        self._signature = signature
        self.in_tree = traced.in_tree
        self.out_tree = traced.out_tree

    @property
    def out_info(self) -> Any:
        """Tree of ShapeDtypeStructs of the result."""
        from xformlib.api.inspection import ShapeDtypeStruct

        return tree_unflatten(self.out_tree, [ShapeDtypeStruct(*a) for a in self._traced.program.out_avals])

    def as_text(self, dialect: str = "stablehlo") -> str:
        """The module as text."""
        if dialect != "stablehlo":
            raise StaticArgumentError(f"as_text: dialect must be 'stablehlo'; got {dialect!r}.")
        return str(self.compiler_ir())

    def compiler_ir(self, dialect: str = "stablehlo") -> Any:
        """The module as an MLIR object."""
        from xformlib.link import link

        return link(self._traced.program)

    def compile(self) -> Compiled:
        """Compile now; the result takes arguments of this signature only."""
        from xformlib.execution import compiled

        compiled(self._traced.program).wait()
        return Compiled(self._traced, self._signature)


class Compiled:
    """An executable for one signature. Static arguments are given again but not looked at."""

    def __init__(self, traced: _Traced, signature: _Signature) -> None:
        self._traced = traced
        self._signature = signature
        self.in_tree = traced.in_tree
        self.out_tree = traced.out_tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self._signature.name
        if self._signature.static_nums or self._signature.static_names:
            args, kwargs, _, _ = _split_static(self._signature, args, kwargs)
        leaves, in_tree = flatten_arrays((args, kwargs), f"compiled {name}: argument ", alias=True)
        if in_tree != self.in_tree:
            raise TreeError(f"compiled {name} takes arguments of structure {self.in_tree}, and was given {in_tree}.")
        program = self._traced.program
        for i, (x, a) in enumerate(zip(leaves, program.in_avals, strict=True)):
            if x.shape != a.shape or x.dtype != a.dtype:
                raise TreeError(f"compiled {name}: array {i} must be {Aval(a.shape, a.dtype)}, and is {aval_of(x)}.")
        outs = call(program, [physical_value(x) for x in [*leaves, *program.captures]])
        return tree_unflatten(self.out_tree, restamp_all(outs, program.out_avals))

    def as_text(self) -> str:
        """The module that was compiled, as text."""
        from xformlib.link import link

        return str(link(self._traced.program))
