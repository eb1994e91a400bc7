"""The blocks of a network and their parts, a file of its own: found by structure alone.

A *block* is an element of a ``ModuleList`` or ``Sequential`` whose elements share a class and hold
attention; of nested lists those that are innermost count. In a network without attention it is an
element that holds an MLP and no convolution, as in an MLP-Mixer. Of each block these are parts:

- the block itself: what it returns is the residual stream;
- its *attention*: a ``MultiheadAttention``, or a module that says so in its name or computes a
  softmax, and whose linear layers are no MLP; a module around it that adds at most one more linear
  layer, the projection of the output, is meant instead;
- the hidden activation of its *MLP*: two linear layers, of which the second returns as many
  features as the first receives, outside of attention. It is the module around the first one, or an
  activation beside it or, with an activation that is called as a function, the first one itself.

- the *router* of its experts: a module beside them that returns a number for each. Experts are
  MLPs in a list of their own, or a module with their weights side by side; they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from torch import nn
from torch.nn.parameter import is_lazy

from fmapboard.model.kernel_shapes import functions, is_convolution, names_in
from fmapboard.records import LayerPart

_LISTS = (nn.ModuleList, nn.Sequential)
_SOFTMAX = frozenset({"softmax", "Softmax", "scaled_dot_product_attention", "flex_attention"})
"""What the code of attention calls."""
_HEADS = ("num_heads", "num_attention_heads", "n_head", "n_heads", "nhead", "heads")
"""Attributes of modules, or of their ``config``, that give the number of heads."""
_CHOSEN = ("top_k", "topk", "k", "num_experts_per_tok", "n_activated_experts")
"""Attributes that give the number of experts to which a token is sent."""
_MOST_OF_AN_EXPERT = 3
"""Linear layers of an expert: two, and one of a gate."""
_ACTIVATIONS = ("relu", "gelu", "silu", "swish", "mish", "elu", "tanh", "activation")
"""Parts of the class names of activations, in lower case."""


class _Linear(NamedTuple):
    """A linear layer by its name, with its numbers of features."""

    name: str
    inputs: int
    outputs: int


class Blocks(NamedTuple):
    """The blocks of a network.

    Attributes:
        names: of the blocks, in definition order.
        parts: name -> what the module is, for the blocks and their parts, in definition order.
        branches: likewise, for the last layer of each MLP, which returns what the MLP adds.
    """

    names: tuple[str, ...]
    parts: dict[str, LayerPart]
    branches: dict[str, LayerPart]

    def hold(self, name: str) -> bool:
        """True for the name of a module inside a block."""
        return _is_inside_any(name, self.names)


def find_blocks(named: Mapping[str, nn.Module]) -> Blocks:
    """The blocks among all modules of a network by name; none of most convolutional networks.

    >>> layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    >>> blocks = find_blocks(dict(nn.TransformerEncoder(layer, 1).named_modules()))
    >>> {name: part.shape for name, part in blocks.parts.items()}
    {'layers.0': 'Block 32', 'layers.0.self_attn': 'Attention 4×8', 'layers.0.linear1': 'MLP 32→64'}
    """
    network = _Network(named)
    names = network.blocks()
    found: dict[str, LayerPart] = {}
    for name in names:
        network.add_parts(name, found)
    parts = {name: found[name] for name in named if name in found}
    return Blocks(tuple(names), parts, network.branches)


class _Network:
    """The modules of a network by name, and what is known of them."""

    def __init__(self, named: Mapping[str, nn.Module]) -> None:
        self.named = named
        self.branches: dict[str, LayerPart] = {}
        self._linears_in: dict[str, list[_Linear]] = {}
        self._parents = set[str]()
        self._find_linears()
        self._lists: dict[str, str] = {}  # name of a list whose elements share a class -> the first
        for name, module in named.items():
            children = list(module.children())
            if isinstance(module, _LISTS) and children and _share_class(children):
                self._lists[name] = _joined(name, next(iter(module._modules)))
        self._experts: dict[str, int] = {}  # name of a list of experts, or of a module -> how many
        for name, module in named.items():
            is_list = name in self._lists and self._is_of_experts(name)
            count = len(module._modules) if is_list else _joined_experts(module)
            if count > 1:
                self._experts[name] = count
        self._attention = [name for name in self._parents if self._is_attention(name)]
        multihead = [n for n, module in named.items() if isinstance(module, nn.MultiheadAttention)]
        self._attention += multihead

    def _find_linears(self) -> None:
        """List the linear layers inside each module."""
        last = ""
        for name, module in self.named.items():
            widths = _widths(module)
            # Adapters keep small linear layers inside of the one that they adapt.
            if widths is None or (last and _is_inside(name, last)):
                continue
            last = name
            linear = _Linear(name, *widths)
            self._parents.add(name.rpartition(".")[0])
            for outer in _around(name):
                self._linears_in.setdefault(outer, []).append(linear)

    def blocks(self) -> list[str]:
        """Names of the blocks; those with attention or, if there are none, those with an MLP."""
        blocks = self._elements(self._attention)
        if blocks:
            return blocks
        convolutions = [name for name, module in self.named.items() if is_convolution(module)]
        if not convolutions:
            return []
        own = [name for name in self._parents if self._mlps(name)]
        return [
            block
            for block in self._elements(own)
            if not any(_is_inside(name, block) for name in convolutions)
        ]

    def add_parts(self, block: str, found: dict[str, LayerPart]) -> None:
        """Add the parts of a block."""
        attention = self._attention_of(block)
        for name in attention:
            found[name] = self._attention_part(name)
        mlps = self._mlps(block, without=attention)
        for up, down in mlps:
            name = self._hidden(up, down)
            features = up.outputs if name == up.name else down.inputs
            shape = f"MLP {up.inputs}→{down.inputs}"
            found[name] = LayerPart(shape, "unit", features)
            self.branches[down.name] = LayerPart(shape, "branch", down.outputs)
        router = self._router(block, attention)
        if router is not None:
            name, part = router
            found[name] = part
        if mlps:
            width = mlps[-1][0].inputs
        elif attention:
            width = found[attention[0]].features
        else:
            return
        is_called = not isinstance(self.named[block], nn.ModuleList)
        if is_called and block not in found:
            found[block] = LayerPart(f"Block {width}", "feature", width)
        for name in [name for name in found if _is_inside(name, block)]:
            around = [outer for outer in _around(name) if outer in self.named]
            if any(_cuts_grids(self.named[outer]) for outer in around if _is_inside(outer, block)):
                found[name] = found[name]._replace(strided=True)

    def _is_of_experts(self, name: str) -> bool:
        """True for a list of MLPs inside an element of another list, such as a block."""
        own = self._linears_in.get(self._lists[name], [])
        is_nested = any(outer in self._lists for outer in _around(name))
        return is_nested and len(own) <= _MOST_OF_AN_EXPERT and bool(_pairs(own))

    def _is_attention(self, name: str) -> bool:
        inside = self._linears_in[name]
        if not name or len(inside) < 2 or (len(inside) == 2 and _pairs(inside)):
            return False
        if any(_is_inside(experts, name) for experts in self._experts):
            return False
        module = self.named[name]
        kind = type(module).__name__.lower()
        if "attention" in kind or "attn" in kind:
            return True
        if any(isinstance(child, nn.Softmax) for child in module.children()):
            return True
        return any(_SOFTMAX & names_in(own.__code__) for own in functions(module).values())

    def _attention_of(self, block: str) -> list[str]:
        """Names of the block's attention modules, each with the projection of its output."""
        found = list[str]()
        cores = [name for name in self._attention if _is_inside(name, block)]
        for core in cores:
            if any(_is_inside(core, other) for other in cores):
                continue
            name = core
            for outer in _around(core):
                around = self._linears_in.get(outer, [])
                added = [linear for linear in around if not _is_inside_any(linear.name, cores)]
                if not _is_inside(outer, block) or len(added) > 1:
                    break
                name = outer
            if name not in found and not isinstance(self.named[name], nn.ModuleList):
                found.append(name)
        return found

    def _attention_part(self, name: str) -> LayerPart:
        module = self.named[name]
        linears = self._linears_in.get(name, [])
        if isinstance(module, nn.MultiheadAttention):
            width = inner = module.embed_dim
        else:
            width = inner = linears[0].inputs
            for linear in linears:
                if linear.outputs == width:
                    inner = linear.inputs
        inside = [module]
        inside += [self.named[core] for core in self._attention if _is_inside(core, name)]
        heads = _attribute(_HEADS, *inside)
        if heads is None or inner % heads:
            return LayerPart(f"Attention {width}", "feature", width, heads=0)
        return LayerPart(f"Attention {heads}×{inner // heads}", "feature", width, heads=heads)

    def _router(self, block: str, attention: list[str]) -> tuple[str, LayerPart] | None:
        """The module that chooses among the block's experts; None without one."""
        for experts, count in self._experts.items():
            outer = experts.rpartition(".")[0]
            if not _is_inside(experts, block):
                continue
            for name, module in self.named.items():
                is_beside = _is_inside(name, outer) and not _is_inside_any(name, [experts])
                if not is_beside or name == experts or _is_inside_any(name, attention):
                    continue
                if _scores(module) != count:
                    continue
                chosen = _attribute(_CHOSEN, module, self.named[outer])
                if chosen is not None and chosen < count:
                    shape = f"Experts {count}, top {chosen}"
                    return name, LayerPart(shape, "expert", count, chosen)
        return None

    def _mlps(self, inside: str, without: Iterable[str] = ()) -> list[tuple[_Linear, _Linear]]:
        """The two linear layers of each MLP inside a module, without those of experts."""
        outside = (*without, *self._experts)
        linears = self._linears_in.get(inside, [])
        return _pairs([linear for linear in linears if not _is_inside_any(linear.name, outside)])

    def _hidden(self, up: _Linear, down: _Linear) -> str:
        """Name of the module that returns the hidden activation of an MLP."""
        within = up.name
        for common in _around(up.name):
            if _is_inside(down.name, common):
                break
            within = common
        if within != up.name:
            return within
        for name, child in self.named[common].named_children():
            kind = type(child).__name__.lower()
            if any(word in kind for word in _ACTIVATIONS):
                return _joined(common, name)
        return up.name

    def _elements(self, held: Iterable[str]) -> list[str]:
        """Names of the elements of the innermost lists that hold one of some modules."""
        around = {outer for name in held for outer in _around(name)}
        lists = [name for name, first in self._lists.items() if first in around]
        elements = list[str]()
        for name in lists:
            if not any(_is_inside(other, name) for other in lists):
                elements += [_joined(name, own) for own in self.named[name]._modules]
        return [name for name in elements if name in self.named]  # a shared one is listed once


class RouterExperts(NamedTuple):
    """What a module tells of the experts among which it chooses.

    Attributes:
        experts: how many there are; None if nothing tells it.
        chosen: how many are chosen for each token; None likewise.
    """

    experts: int | None
    chosen: int | None


def experts_of_router(named: Mapping[str, nn.Module], name: str) -> RouterExperts:
    """What a router tells of its experts: it or its last linear layer has an output for each.

    Args:
        named: all modules of the network by name.
        name: of the router.
    """
    router = named[name]
    count = _scores(router)
    if count is None:
        inside = [widths for widths in map(_widths, router.modules()) if widths is not None]
        count = inside[-1][1] if inside else None
    around = [named[outer] for outer in _around(name) if outer in named]
    around.append(next(iter(named.values())))  # the root, which has a name of its own
    return RouterExperts(count, _attribute(_CHOSEN, router, *around))


def _is_inside(name: str, outer: str) -> bool:
    """True for the name of a module inside another one; the root's name is empty."""
    return name != outer and (not outer or name.startswith(f"{outer}."))


def _around(name: str) -> Iterator[str]:
    """The names of the modules around a module, from the innermost to the root."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def _pairs(linears: list[_Linear]) -> list[tuple[_Linear, _Linear]]:
    """The first and the last linear layer of each MLP: the features come out as they went in."""
    found = list[tuple[_Linear, _Linear]]()
    used = set[str]()
    for position, down in enumerate(linears):
        for up in reversed(linears[:position]):
            is_gated = up.outputs == 2 * down.inputs
            fits = up.outputs == down.inputs or is_gated
            if fits and up.inputs == down.outputs and up.name not in used:
                found.append((up, down))
                used |= {up.name, down.name}
                break
    return found


def _is_inside_any(name: str, outer: Iterable[str]) -> bool:
    return any(_is_inside(name, other) for other in outer)


def _joined(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name


def _share_class(modules: list[nn.Module]) -> bool:
    return len(set(map(type, modules))) == 1


def _widths(module: nn.Module) -> tuple[int, int] | None:
    """Features that a linear layer receives and returns; None for other modules."""
    for inputs, outputs in (("in_features", "out_features"), ("nx", "nf")):
        widths = (getattr(module, inputs, None), getattr(module, outputs, None))
        if isinstance(widths[0], int) and isinstance(widths[1], int):
            return widths[0], widths[1]
    return None


def _attribute(names: Iterable[str], *owners: nn.Module) -> int | None:
    """The first positive number that modules, or their ``config``, have under one of the names."""
    for module in owners:
        for owner in (module, getattr(module, "config", None)):
            for name in names:
                value = getattr(owner, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None


def _joined_experts(module: nn.Module) -> int:
    """Number of experts whose weights, two tensors of three axes at least, are side by side."""
    known = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
    own = [parameter.shape for parameter in known if parameter.dim() == 3]
    has_experts = len(own) > 1 and len({shape[0] for shape in own}) == 1
    return own[0][0] if has_experts else 0


def _cuts_grids(module: nn.Module) -> bool:
    """True for a module that cuts maps into grids of distant tokens, instead of into windows."""
    kind = getattr(module, "partition_type", None)
    if isinstance(kind, str):
        return kind == "grid"
    return getattr(module, "partition_block", None) is False


def _scores(module: nn.Module) -> int | None:
    """How many numbers a linear layer or a router returns per token; None for other modules."""
    widths = _widths(module)
    if widths is not None:
        return widths[1]
    weight = module._parameters.get("weight")
    is_matrix = weight is not None and not is_lazy(weight) and weight.dim() == 2
    return int(weight.shape[0]) if weight is not None and is_matrix else None
