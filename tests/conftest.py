"""The environment of every test, and the fixtures that more than one folder uses."""

import atexit
import dataclasses
import functools
import gc
import importlib
import importlib.util
import inspect
import logging
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

# Read by the libraries when they are imported, so set before any test is.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Tiny tensors: waking a second thread costs more than it saves, many times over on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Dozens of tests start a process, and each would compile attnscope anew if none were allowed to keep what it compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A disk takes ten milliseconds to say that it holds a file. No test pulls the plug, so none waits for it.
os.fsync = lambda _descriptor: None

# A busy machine is no failure: nothing here is timed.
settings.register_profile("attnscope", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("attnscope")

CHECKED_CALLS = 20
"""Of every function, so many calls are checked against its types and shapes in each file of tests."""
_calls: defaultdict[CodeType, list[int]] = defaultdict(lambda: [0])
"""How many; what checks a function holds its list, because to look a code up takes as long as many a call."""
_draws = False
"""Whether the test that runs is one of Hypothesis."""
_check_every_call = jaxtyping.jaxtyped


def is_enough(calls: list[int]) -> bool:
    """Whether calls of this function need no more checking.

    Within a test of Hypothesis all are checked: beartype looks at items by chance, and what is drawn there must be the
    same whenever an example is tried again.
    """
    return calls[0] >= CHECKED_CALLS and not _draws


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Say whether the test draws its examples: to ask Hypothesis at every call takes longer than many a call."""
    global _draws  # noqa: PLW0603 - read at every call
    _draws = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    try:
        return (yield)
    finally:
        _draws = False


def check_first_calls(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What stands in for `jaxtyping.jaxtyped` before every function of attnscope.

    To check a call takes a tenth of a millisecond, and some functions are called a hundred thousand times: that was
    two fifths of the time of all tests.
    """

    def decorate(defined: Any) -> Any:
        if dataclasses.is_dataclass(defined) and "__init__" in vars(defined):
            defined.__init__ = decorate(defined.__init__)
            return defined
        # what is asked for its kind (by Starlette, by contextlib) keeps the wrapper of jaxtyping
        if not inspect.isfunction(defined) or inspect.iscoroutinefunction(defined):
            return _check_every_call(typechecker=typechecker)(defined)
        calls = _calls[defined.__code__]
        if is_enough(calls):  # defined within a function that is called often
            return defined
        checking: Callable[..., Any] | None = None

        @functools.wraps(defined)
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal checking
            if is_enough(calls):
                return defined(*arguments, **options)
            calls[0] += 1
            if checking is None:  # most functions are never called in a file: what checks them is made at need
                checking = _check_every_call(typechecker=typechecker)(defined)
            return checking(*arguments, **options)

        return call

    return decorate


jaxtyping.jaxtyped = check_first_calls


@pytest.fixture(scope="module", autouse=True)
def _each_file_checks_anew() -> None:
    for calls in _calls.values():
        calls[0] = 0


TOO_BUSY = "timed out during startup"
"""What Ray says of a machine that has not started it in 30 seconds."""
LIBRARIES = "beartype.door numba pandas rich.console scipy.stats torch transformers.modeling_utils".split()


def pytest_configure(config: pytest.Config) -> None:
    """Import the large libraries before attnscope does.

    What is imported while jaxtyping imports attnscope is compiled anew: it is looked for in the cache of what jaxtyping
    has changed. That takes ten seconds in each process.
    """
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # this process only gives out the work
    gc.disable()  # imports make a million objects that stay: to look for garbage among them takes seconds
    atexit.register(gc.freeze)  # and so it does at the end
    for library in LIBRARIES:
        importlib.import_module(library)


def pytest_collection_finish() -> None:
    """Look for garbage from here on, but not among what the imports have made."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's: `pytest -n 2 --dist loadfile`, as in the Makefile
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep each file to one process, so that its fixtures are made once, and all files of Ray to the same one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        """Two clusters at a time would starve each other: Ray gives itself 30 seconds to start."""

        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "ray" if Path(file).stem.startswith("test_ray") else file

    return ByFile(config, log)


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], Path]:
    """Give the folder of a real pretrained model (`minilm`, `smollm2`), or skip where it is not laid out."""
    home = Path(os.environ.get("ATTNSCOPE_REAL_MODELS", Path.home() / ".cache" / "attnscope-real"))

    def find(name: str) -> Path:
        folder = home / name
        if not (folder / "model.safetensors").is_file():
            pytest.skip(
                f"The real model {name} is missing: lay it out with the real-models tool, "
                "or set ATTNSCOPE_REAL_MODELS to the folder that holds it."
            )
        return folder

    return find


@pytest.fixture(scope="session")
def ray_library() -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is missing: pip install 'attnscope[ray]'.")


def begin_ray(tries: int = 4) -> None:
    """Start a Ray here; again if the machine is so busy that the 30 seconds are over which Ray gives itself."""
    import ray

    try:
        ray.init(
            "local",
            num_cpus=2,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        ray.shutdown()
        if tries == 1 or TOO_BUSY not in str(error):
            raise
    else:
        return
    with warnings.catch_warnings():  # a start that failed leaves processes behind that nobody waits for
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    begin_ray(tries - 1)


@pytest.fixture(scope="session")
def cluster(ray_library: None) -> Iterator[str]:
    """The address of a Ray of two processors and little memory, which this process is connected to."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        begin_ray()
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] | trim + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)


@pytest.fixture(scope="session")
def chat_model() -> Any:
    """A tiny chat model: random weights, a byte-level tokenizer of its own, BOS added by tokenizer and template."""
    return make_chat_model(CHAT_TEMPLATE)


@pytest.fixture(scope="session")
def base_model() -> Any:
    """The same without a chat template."""
    return make_chat_model(None)


def make_chat_model(template: str | None, **changes: Any) -> Any:
    """A tiny causal model that reads any text, with this chat template."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    import attnscope

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<pad>"]
    lines = ["The river is called Ald.", "Which documents answer the question?", "Rome fell. It was late, you see."]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=360, initial_alphabet=alphabet, special_tokens=special)
    bpe.train_from_iterator(lines * 9, trainer)
    bpe.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="<|end|>", pad_token="<pad>", chat_template=template
    )
    tokenizer.add_special_tokens({"additional_special_tokens": special[1:5]})
    settings = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    settings |= {"num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 400}
    settings |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 5, "initializer_range": 0.3}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**(settings | changes))).eval()
    return attnscope.load(model, tokenizer=tokenizer)
