"""What a value may be: the annotations of a class or function, checked in one sentence before anything is built of it.

A file is data from a stranger, and so is an argument. The one place where a type stands is the annotation of a field or
parameter; pydantic holds values against it, strictly: no number is read from a text, no flag from a number.
"""

import inspect
import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, partial, reduce, wraps
from operator import or_
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from jaxtyping import AbstractArray
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic import Field as Bounded
from torch import Tensor

from ..errors import BadInput

LONGEST_TEXT, LARGEST_NUMBER, DEEPEST = 1_000_000, 2**53, 32
"""Letters of a token or label, the largest whole number that JSON keeps exactly, and how deep a card may nest."""
LARGEST_FILE = 100_000_000
"""Bytes of a JSON file or header; safetensors allows a header as many."""
HALF_PAIR = re.compile("[\ud800-\udfff]")
NOT_WRITTEN = "a text that UTF-8 can write, without half a surrogate pair"
WISHES = {
    "a valid string, unable to parse raw data as a unicode string": NOT_WRITTEN,
    "a valid string": "a text",
    "String should have at most": "a text of at most",
    "String should match pattern": "a name that fits",
    "a valid integer": "a whole number",
    "a valid boolean": "True or False",
    "'str' instances are not allowed as a Sequence value": "a list",
    "an instance of Sequence": "a list",
    "an instance of Path": "a Path",
    "an instance of Model": "a model",
    "a valid ": "a ",
}
"""What pydantic calls what was wanted, and what we call it."""
Extra = Literal["forbid", "allow"]
P = ParamSpec("P")
R = TypeVar("R")
STRICT = ConfigDict(
    strict=True, extra="forbid", revalidate_instances="always", arbitrary_types_allowed=True, protected_namespaces=()
)


def _written(text: str) -> str:
    """Refuse what UTF-8 cannot write."""
    if HALF_PAIR.search(text):
        raise ValueError(NOT_WRITTEN)
    return text


def _spelled(text: Any) -> Any:
    """Half a surrogate pair, which no file can hold, as the sign that every view shows for it."""
    return HALF_PAIR.sub("\ufffd", text) if isinstance(text, str) else text


def _all_different(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(numbers)) < len(numbers):
        raise ValueError("numbers that are all different")
    return numbers


def _shallow(card: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse a card that is no plain JSON: too deep, with numbers that are none, or keys that are no texts."""
    level: list[Any] = [card]
    for _ in range(DEEPEST):
        for value in level:
            if isinstance(value, str):
                _written(value)
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("finite numbers only")
            elif isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
                raise ValueError("a mapping whose keys are texts")
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return card
    raise ValueError(f"at most {DEEPEST} levels")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, (list, tuple)):
        yield from value


Words = Annotated[str, BeforeValidator(_spelled)]
"""Any text; half a surrogate pair becomes �, so that every file stays UTF-8."""
Label = Annotated[str, Bounded(max_length=LONGEST_TEXT), BeforeValidator(_spelled)]
"""A token, a label, a name; the same."""
Named = Annotated[str, Bounded(pattern=r"^\w[\w .-]{0,99}$")]
"""What is also the name of a file: no way out of its folder."""
Count = Annotated[int, Bounded(ge=0, le=LARGEST_NUMBER)]
Finite = Annotated[float, Bounded(allow_inf_nan=False)]
Flag = bool | Literal[0, 1]
"""Yes or no, as Python or a tokenizer's mask writes it."""
Numbers = Annotated[tuple[Count, ...], AfterValidator(_all_different)]
"""What layers or heads are called."""
Card = Annotated[Mapping[str, Any], AfterValidator(_shallow)]
"""Where something comes from: plain JSON, not too deep."""


@dataclass(frozen=True)
class TensorField:
    """What a tensor may be, by its annotation: kinds of numbers, and named axes."""

    numbers: tuple[str, ...]
    axes: tuple[str, ...]
    is_needed: bool

    def refuse(self, name: str, dtype: str, shape: Sequence[int], sizes: Mapping[str, int]) -> None:
        """Raise unless kind and shape fit; axes that are in `sizes` must have that size, those marked # may have 1."""
        if dtype not in self.numbers:
            raise BadInput(f"{name} holds numbers of the kind {dtype}; it must be one of {', '.join(self.numbers)}.")
        wanted = [_sizes(axis, sizes) for axis in self.axes]
        if len(shape) == len(wanted) and all(
            not fits or size in fits for size, fits in zip(shape, wanted, strict=True)
        ):
            return
        told = " x ".join(" or ".join(map(str, fits)) or "any" for fits in wanted)
        raise BadInput(
            f"{name} has the shape {' x '.join(map(str, shape)) or 'of one number'}; beside these weights it must be"
            f" {told}."
        )


def _sizes(axis: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes an axis may have; none where it may have any."""
    name = axis.removeprefix("#")
    if name not in sizes:
        return ()
    return (1, sizes[name]) if axis.startswith("#") and sizes[name] != 1 else (sizes[name],)


@cache
def tensor_fields(cls: Any) -> Mapping[str, TensorField]:
    """The tensors that a dataclass is made of: what its annotations say of them."""
    found = {}
    for field in fields(cls):
        if not field.init:
            continue
        kinds = [kind for kind in (field.type, *_choices(field.type)) if _is_tensor(kind)]
        if kinds:
            numbers = tuple(str(name) for name in kinds[0].dtypes)
            found[field.name] = TensorField(numbers, tuple(kinds[0].dim_str.split()), field.default is MISSING)
    return found


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if isinstance(kind, UnionType) or get_origin(kind) is Union else ()


def _is_tensor(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, AbstractArray)


@cache
def model_of(cls: Any, extra: Extra = "forbid") -> type[BaseModel]:
    """The other fields of a dataclass as pydantic checks them."""
    hints = get_type_hints(cls, include_extras=True)
    plain: dict[str, Any] = {
        field.name: (_by_class(hints[field.name], _has_tensors), _default(field))
        for field in fields(cls)
        if field.init and field.name not in tensor_fields(cls)
    }
    made: type[BaseModel] = create_model(cls.__name__, __config__=STRICT | ConfigDict(extra=extra), **plain)
    return made


def _default(field: "Field[Any]") -> Any:
    if field.default_factory is not MISSING:
        return Bounded(default_factory=field.default_factory)
    return ... if field.default is MISSING else field.default


def check_fields(instance: Any, sizes: Mapping[str, int]) -> None:
    """Refuse a dataclass with a wrong type in it; `sizes` are those of the axes that are known."""
    cls: Any = type(instance)
    for name, kind in tensor_fields(cls).items():
        value = getattr(instance, name)
        if value is None and not kind.is_needed:
            continue
        if not isinstance(value, Tensor):
            raise BadInput(f"{name} must be a tensor, not {quote(value)}.")
        kind.refuse(name, str(value.dtype).removeprefix("torch."), value.shape, sizes)
    try:
        checked = model_of(cls).model_validate({name: getattr(instance, name) for name in model_of(cls).model_fields})
    except ValidationError as error:
        raise BadInput(f"{sentence(error)}.") from None
    for name in model_of(cls).model_fields:
        object.__setattr__(instance, name, getattr(checked, name))


def from_json(cls: Any, content: bytes | str, what: str, extra: Extra = "forbid") -> dict[str, Any]:
    """The fields of a dataclass that a JSON text gives, each of its type; `what` the text is opens the sentence."""
    try:
        model = model_of(cls, extra).model_validate_json(content)
    except ValidationError as error:
        raise BadInput(f"{what} is damaged, or not written by attnscope: {sentence(error)}.") from None
    given = {name: getattr(model, name) for name in model_of(cls, extra).model_fields if name in model.model_fields_set}
    return {**given, **(model.model_extra or {})}


@dataclass(frozen=True)
class Anything:
    """A card that may say anything, in plain JSON."""


def card_from_json(cls: Any, content: bytes | str, what: str) -> dict[str, Any]:
    """A card as it was written, if it is plain JSON and says at least what the dataclass does, in its types."""
    from_json(cls, content, what, "allow")
    try:
        return dict(TypeAdapter(Card, config=STRICT).validate_json(content))
    except ValidationError as error:
        raise BadInput(f"{what} is damaged, or not written by attnscope: {sentence(error)}.") from None


def rows_from_json(cls: Any, content: bytes | str, what: str) -> list[Any]:
    """A list of dataclasses that a JSON text gives, each field of its type."""
    try:
        rows: list[Any] = TypeAdapter(list[model_of(cls)]).validate_json(content)  # type: ignore[misc,arg-type] # known only now
    except ValidationError as error:
        raise BadInput(f"{what} is damaged, or not written by attnscope: {sentence(error)}.") from None
    return [cls(**vars(row)) for row in rows]


def json_of(path: Path) -> bytes:
    """The content of a JSON file, if it is of a size that can be one."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path} is larger than {LARGEST_FILE // 10**6} MB: it is no file that attnscope wrote.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A public function that refuses wrong arguments in one sentence: what its annotations say is held to.

    Arrays and other sequences stand for lists of plain numbers where those are wanted.
    """
    signature = inspect.signature(function)

    @cache
    def checks() -> dict[str, Callable[[Any], Any]]:
        inner: Any = inspect.unwrap(function)
        given = {name: hint for name, hint in inner.__annotations__.items() if name != "return"}
        # what is returned may be of a library that is imported within the function
        hints = get_type_hints(SimpleNamespace(__annotations__=given), inner.__globals__, include_extras=True)
        return {
            name: TypeAdapter(_by_class(hints[name]), config=STRICT).validate_python
            for name, parameter in signature.parameters.items()
            if name in hints and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }

    @wraps(function)
    def held(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            bound = signature.bind(*arguments, **options)
        except TypeError as error:
            raise BadInput(f"{function.__name__}() cannot be called so: {error}.") from None
        for name, check in checks().items():
            if name in bound.arguments:
                bound.arguments[name] = _fitting(function.__name__, name, check, bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return held


def _has_tensors(hint: Any) -> bool:
    """Whether this is a dataclass with tensors, which checks its own fields when it is made."""
    return bool(is_dataclass(hint)) and bool(tensor_fields(hint))


def _by_class(hint: Any, is_ours: Callable[[Any], bool] = is_dataclass) -> Any:
    """The annotation with our own classes as they are: an argument of one is not taken apart."""
    if is_ours(hint):
        return Annotated[Any, AfterValidator(partial(_instance, hint))]
    inner = get_args(hint)
    if not inner or get_origin(hint) in (Annotated, Callable, Literal):
        return hint
    made = tuple(_by_class(kind, is_ours) for kind in inner)
    return reduce(or_, made) if _choices(hint) else get_origin(hint)[made]


def _instance(cls: Any, value: Any) -> Any:
    if not isinstance(value, cls):
        raise ValueError(_a(cls.__name__))  # noqa: TRY004 - pydantic turns a ValueError into its own
    return value


def _fitting(function: str, name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """The value as it was given if its type fits, else as plain numbers, else one sentence."""
    try:
        check(value)
    except ValidationError as error:
        wrong = error
    else:
        return value
    plain = _plain(value)
    try:
        check(plain)
    except ValidationError:
        raise BadInput(f"{function}(): {sentence(wrong, name)}.") from None
    return plain


def _plain(value: Any, levels: int = 4) -> Any:
    """NumPy's and torch's numbers and arrays, ranges and other sequences as numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, tuple)) and levels:
        return [_plain(entry, levels - 1) for entry in value]
    return value


def sentence(error: ValidationError, name: str = "") -> str:
    """What is wrong first: where, what was wanted, what is there; the wishes of all types that were allowed."""
    details = error.errors(include_url=False, include_context=False)
    first = max(details, key=lambda detail: len(detail["loc"]))  # of several types, the one that fits farthest
    place = _place(first["loc"], name)
    wishes = [_wish(detail["msg"]) for detail in details if _place(detail["loc"], name) == place]
    match first["type"]:
        case "json_invalid":
            return first["msg"].replace("Invalid JSON", "it is not JSON")
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"{place} is no field of it"
    return f"{place or 'it'} must be {' or '.join(dict.fromkeys(wishes))}, not {quote(first['input'])}"


def _place(where: Sequence[int | str], name: str) -> str:
    """A field and the places in it: prediction[0][1]; what pydantic calls the types of a union is left out."""
    first, rest = (name, where) if name else (str(where[0]) if where else "", where[1:])
    text = first + "".join(f"[{step}]" for step in rest if isinstance(step, int))
    return text if len(text) <= 80 else f"{text[:79]}…"


def _wish(message: str) -> str:
    """What pydantic says was wanted, in plain words."""
    message = message.removeprefix("Input should be ").removeprefix("Value error, ")
    for theirs, ours in WISHES.items():
        message = message.replace(theirs, ours)
    return message


def quote(value: Any) -> str:
    """A value as a sentence can quote it: short, on one line."""
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a huge number"
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return reprlib.repr(value)
    if isinstance(value, (list, tuple)) and all(isinstance(entry, (str, bool, float)) for entry in value[:6]):
        return reprlib.repr(value)
    return _a(type(value).__name__)


def reason_of(error: BaseException) -> str:
    """What another library says is wrong, short and on one line."""
    return " ".join(str(error).split())[:160]


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
