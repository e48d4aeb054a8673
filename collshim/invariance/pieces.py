"""Finds which part of a parameter of the one-rank run each rank holds: by its name, and by its initial values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from collshim.invariance.records import Parameter, Place, RankRecord


@dataclass
class Piece:
    """The part of a parameter that one rank holds.

    Attributes:
        rank: the rank that holds it.
        own: the rank's record of the parameter.
        dim, rows: the sharded dimension, and the indices that the rank holds there; None if it holds all of it.
        place: the position of a DTensor's shard; None for other tensors.
        flat: the index of the first element, if the piece is a range of the flattened parameter.
        starts_alike: whether its initial value equals that of the one-rank run.
    """

    rank: int
    own: Parameter
    dim: int | None = None
    rows: Tensor | None = None
    place: Place | None = None
    flat: int | None = None
    starts_alike: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether the rank holds the whole parameter."""
        return self.rows is None and self.place is None and self.flat is None

    def of(self, whole: Tensor) -> Tensor:
        """Return the same part of a tensor of the one-rank run."""
        if self.place is not None:
            shape = _shape(self.own) or self.place.shape
            for dim, (offset, length) in enumerate(zip(self.place.offsets, shape, strict=True)):
                whole = whole.narrow(dim, min(offset, whole.shape[dim]), length)
            return whole
        if self.flat is not None and self.own.value is not None:
            return whole.reshape(-1)[self.flat : self.flat + self.own.value.numel()]
        return whole if self.dim is None or self.rows is None else whole.index_select(self.dim, self.rows)


class Pieces:
    """The pieces of all parameters on all ranks.

    Attributes:
        of: the pieces of each parameter of the one-rank run, by the parameter's name.
        ranks: the records of the ranks.
        unknown: parameters that the one-rank run does not have, each as its rank and name.
    """

    def __init__(self, one: RankRecord, ranks: Sequence[RankRecord]) -> None:
        self._wholes = [parameter for parameter in one.parameters if parameter.is_compared]
        self.of: dict[str, list[Piece]] = {parameter.name: [] for parameter in self._wholes}
        self.unknown: list[tuple[int, str]] = []
        self.ranks = ranks
        self._lengths = _lengths(ranks)
        flat = Counter[str]()
        for rank, record in enumerate(ranks):
            self._add_rank(rank, [own for own in record.parameters if own.is_compared], flat)
        for whole in self._wholes:
            self._spread(whole, self.of[whole.name])

    def _spread(self, whole: Parameter, held: Sequence[Piece]) -> None:
        """Place shards by rank if the places found by value overlap, because all ranks drew the same numbers."""
        shards = [piece for piece in held if piece.rows is not None and piece.dim is not None]
        if not shards or whole.value is None or len(shards) < len(held):
            return
        dim = shards[0].dim or 0
        covered = {int(row) for piece in shards if piece.rows is not None for row in piece.rows}
        if len(covered) == whole.value.shape[dim]:
            return
        for piece in shards:
            length = 0 if piece.rows is None else len(piece.rows)
            first = piece.rank % max(whole.value.shape[dim] // max(length, 1), 1) * length
            piece.rows = torch.arange(first, first + length)
            piece.starts_alike = _equal(piece.of(whole.value), piece.own.value)

    def _add_rank(self, rank: int, owns: Sequence[Parameter], flat: Counter[str]) -> None:
        certain = list[Piece]()
        left = list[tuple[Parameter, Parameter]]()
        renamed = Counter[tuple[str, str]]()
        nameless = list[Parameter]()
        for own in owns:
            whole = self._named(own)
            if whole is not None and _have_equal_lengths(self._lengths.get(own.name, []), len(self.ranks)):
                _trim(rank, len(self.ranks), whole, own)
            piece = None if whole is None else _by_value(rank, whole, own, flat)
            is_elsewhere = whole is None or not _is_shard(whole, own)
            if piece is None and is_elsewhere and own.value is not None and not _is_constant(own.value):
                found = next(self._by_values_alone(rank, own, flat), None)
                if found is not None:
                    whole, piece = found
                    renamed[_folder(own.name), _folder(whole.name)] += 1
            if piece is not None and whole is not None:
                certain.append(piece)
                self.of[whole.name].append(piece)
            elif whole is not None:
                left.append((whole, own))
            else:
                nameless.append(own)
        self._add_rest(rank, certain, left, renamed)
        for own in nameless:
            self._add_renamed(rank, own, renamed)

    def _named(self, own: Parameter) -> Parameter | None:
        names = set(own.names)
        return next((whole for whole in self._wholes if names & set(whole.names)), None)

    def _by_values_alone(self, rank: int, own: Parameter, flat: Counter[str]) -> Iterator[tuple[Parameter, Piece]]:
        for whole in self._wholes:
            if whole.value is not None and whole.value.dim() == own.value.dim():  # type: ignore[union-attr]
                piece = _by_value(rank, whole, own, Counter())
                if piece is not None:
                    yield whole, piece

    def _add_rest(
        self,
        rank: int,
        certain: Sequence[Piece],
        left: Sequence[tuple[Parameter, Parameter]],
        renamed: Counter[tuple[str, str]],
    ) -> None:
        """Add pieces whose values do not identify them, at the place of the rank's other pieces."""
        moved = dict(pair for pair, _ in reversed(renamed.most_common()))
        for whole, own in left:
            folder = moved.get(_folder(own.name))
            other = None if folder is None else self._with_name(f"{folder}.{own.name.rpartition('.')[2]}")
            piece = _by_convention(rank, other or whole, own, certain, len(self.ranks))
            if piece is None:
                self.unknown.append((rank, own.name))
            else:
                self.of[(other or whole).name].append(piece)

    def _add_renamed(self, rank: int, own: Parameter, renamed: Counter[tuple[str, str]]) -> None:
        moved = dict(pair for pair, _ in reversed(renamed.most_common()))
        folder = moved.get(_folder(own.name))
        whole = None if folder is None else self._with_name(f"{folder}.{own.name.rpartition('.')[2]}")
        if whole is not None and own.value is not None and _shape(whole) == own.value.shape:
            self.of[whole.name].append(Piece(rank, own, starts_alike=_equal(whole.value, own.value)))
        else:
            self.unknown.append((rank, own.name))

    def _with_name(self, name: str) -> Parameter | None:
        return next((whole for whole in self._wholes if name in whole.names), None)


def _have_equal_lengths(lengths: Sequence[int], size: int) -> bool:
    return len(lengths) == size and len(set(lengths)) == 1


def _lengths(ranks: Sequence[RankRecord]) -> dict[str, list[int]]:
    """Return the number of elements of each flat parameter on each rank, by the parameter's name."""
    found = dict[str, list[int]]()
    for record in ranks:
        for own in record.parameters:
            if own.is_compared and own.value is not None and own.value.dim() == 1:
                found.setdefault(own.name, []).append(len(own.value))
    return found


def _trim(rank: int, size: int, whole: Parameter, own: Parameter) -> None:
    """Cut off the padding of a flat shard, if the number of ranks does not divide the length."""
    if whole.value is None or own.value is None or whole.value.dim() != 1 or own.value.dim() != 1:
        return
    length, total = len(own.value), len(whole.value)
    if length < total < size * length:
        left = max(0, min(length, total - rank * length))
        own.value = own.value[:left]
        own.gradient = None if own.gradient is None else own.gradient[:left]
        own.after = None if own.after is None else own.after[:left]


def _folder(name: str) -> str:
    return name.rpartition(".")[0]


def _shape(parameter: Parameter) -> torch.Size | None:
    value = parameter.value if parameter.value is not None else parameter.gradient
    return None if value is None else value.shape


def _is_shard(whole: Parameter, own: Parameter) -> bool:
    """Return whether the shape is a shard's: then names identify it better than values, which may be equal too."""
    return whole.value is not None and own.value is not None and len(_sharded_dims(whole.value, own.value)) == 1


def _is_constant(value: Tensor) -> bool:
    return value.numel() == 0 or bool((value == value.reshape(-1)[0]).all())


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    return one is None or other is None or (one.shape == other.shape and bool(torch.equal(one, other)))


def _by_value(rank: int, whole: Parameter, own: Parameter, flat: Counter[str]) -> Piece | None:
    """Return the piece that a rank holds, if its initial value identifies it; else None."""
    if own.place is not None and _shape(whole) == own.place.shape:
        piece = Piece(rank, own, place=own.place)
        piece.starts_alike = whole.value is None or _equal(piece.of(whole.value), own.value)
        return piece
    if whole.value is None or own.value is None:
        return Piece(rank, own) if _shape(whole) == _shape(own) else None
    if whole.value.shape == own.value.shape:
        return Piece(rank, own) if _equal(whole.value, own.value) else None
    if own.value.dim() == 1 and whole.value.dim() != 1:
        return _stretch(rank, whole, own, flat)
    dims = _sharded_dims(whole.value, own.value)
    if len(dims) != 1 or _is_constant(own.value):
        return None
    rows = _rows(whole.value, own.value, dims[0])
    return None if rows is None else Piece(rank, own, dims[0], rows)


def _stretch(rank: int, whole: Parameter, own: Parameter, flat: Counter[str]) -> Piece | None:
    """Return the next range of a flattened parameter, whose ranges the ranks hold in order."""
    first = flat[whole.name]
    if whole.value is None or own.value is None or first + own.value.numel() > whole.value.numel():
        return None
    flat[whole.name] += own.value.numel()
    piece = Piece(rank, own, flat=first)
    piece.starts_alike = _equal(piece.of(whole.value), own.value)
    return piece


def _sharded_dims(whole: Tensor, own: Tensor) -> list[int]:
    if whole.dim() != own.dim():
        return []
    return [dim for dim in range(whole.dim()) if whole.shape[dim] > own.shape[dim]]


def _rows(whole: Tensor, own: Tensor, dim: int) -> Tensor | None:
    """Return the indices of a tensor's slices in the whole, along a dimension; None if a slice is not found."""
    places = dict[bytes, int]()
    for number, row in enumerate(whole.movedim(dim, 0)):
        key = _bytes(row)
        if key in places:
            places[key] = -1
        places.setdefault(key, number)
    rows = [places.get(_bytes(row), -1) for row in own.movedim(dim, 0)]
    return None if -1 in rows else torch.tensor(rows, dtype=torch.long)


def _bytes(row: Tensor) -> bytes:
    flat = row.reshape(-1).clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().tobytes()


def _by_convention(rank: int, whole: Parameter, own: Parameter, certain: Sequence[Piece], size: int) -> Piece | None:
    """Return the piece that a rank of this number usually holds; None if the shapes do not fit."""
    if whole.value is None or own.value is None:
        return None
    if whole.value.shape == own.value.shape:
        return Piece(rank, own, starts_alike=_equal(whole.value, own.value))
    dims = _sharded_dims(whole.value, own.value)
    if len(dims) != 1:
        return None
    dim, length = dims[0], own.value.shape[dims[0]]
    beside = [piece for piece in certain if piece.dim == dim and _folder(piece.own.name) == _folder(own.name)]
    for piece in beside:  # a bias is sharded like its weight, whose rows may belong to several heads
        if piece.rows is not None and len(piece.rows) == length and int(piece.rows.max()) < whole.value.shape[dim]:
            found = Piece(rank, own, dim, piece.rows)
            found.starts_alike = _equal(found.of(whole.value), own.value)
            return found
    count = whole.value.shape[dim] // max(length, 1)
    shards = Counter(_shard(piece) for piece in certain if piece.rows is not None)
    number = shards.most_common(1)[0][0] if shards else rank % max(count, 1)
    rows = torch.arange(number * length, min((number + 1) * length, whole.value.shape[dim]))
    if len(rows) != length:
        return None
    piece = Piece(rank, own, dim, rows)
    piece.starts_alike = _equal(piece.of(whole.value), own.value)
    return piece


def _shard(piece: Piece) -> int:
    return 0 if piece.rows is None else int(piece.rows[0]) // max(len(piece.rows), 1)


def initial_values(pieces: Pieces, one: RankRecord, ranks: Sequence[RankRecord]) -> list[dict[int, Tensor]]:
    """Return the initial values of the one-rank run for each rank, by the parameters' numbers on that rank."""
    values: list[dict[int, Tensor]] = [{} for _ in ranks]
    numbers = [{id(own): number for number, own in enumerate(record.parameters)} for record in ranks]
    wholes = {parameter.name: parameter.value for parameter in one.parameters if parameter.is_compared}
    for name, held in pieces.of.items():
        whole = wholes[name]
        for piece in held:
            if whole is not None and not piece.starts_alike:
                values[piece.rank][numbers[piece.rank][id(piece.own)]] = piece.of(whole).contiguous()
    return values
