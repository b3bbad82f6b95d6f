"""What every test starts from: 64-bit types, compilation, checked annotations, Hypothesis profiles.

All is set before anything of the library is imported, and through the configuration, not the
environment, so that subprocesses start as a user's would. A test that wants 64-bit types off uses
`jax.enable_x64(False)`.

Most of the time of the tests is compilation, so all workers share one cache of compiled programs in
`build/`, and XLA optimises little unless `CONVATTN_OPTIMIZE=1`: what is tested must hold for
either.
"""

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxtyping
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

pytest_plugins = ("browser",)  # one Chromium for all folders of a worker
PROGRAMS = Path(__file__).parents[1] / "build" / "test-programs"
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", str(PROGRAMS))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
if os.environ.get("CONVATTN_OPTIMIZE") != "1":
    jax.config.update("jax_disable_most_optimizations", True)
    flags = os.environ.get("XLA_FLAGS")
    if jax.version.__version_info__ < (0, 11):  # later ones do not know the first flag, and end
        quick = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ["XLA_FLAGS"] = f"{flags or ''} {quick}"
    jax.devices()  # XLA reads its flags here, once; what a test starts must not inherit them
    os.environ.pop("XLA_FLAGS", None)
    if flags is not None:
        os.environ["XLA_FLAGS"] = flags
gc.set_threshold(50_000, 20, 50)  # a tenth of the time otherwise: traced programs are many objects

CHECKED = (
    "convattn.fast.application",
    "convattn.operators.arrays",
    "convattn.operators.attention",
    "convattn.bounds",
    "convattn.constructions",
    "convattn.operators.convolution",
    "convattn.encodings",
    "convattn.fast.dense",
    "convattn.fast.dropout",
    "convattn.fast.products",
    "convattn.fast.separable",
    "convattn.fast.shift",
    "convattn.fast.windowed",
    "convattn.encodings.layer",
    "convattn.operators.patches",
    "convattn.sac",
    "convattn_ledger.evidence.scores",
    "convattn.operators.shifts",
    "convattn_ledger.bounds",
    "convattn_ledger.structures",
    "convattn.initialization",
    "convattn.diagnosis",
    "convattn.networks.weights",
)
install_import_hook(CHECKED, "annotations.checked")

# JAX compiles on the first example of each shape, so no profile has a deadline.
_shared = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=6, **_shared)
settings.register_profile("ci", max_examples=25, derandomize=True, print_blob=True, **_shared)
settings.register_profile("thorough", max_examples=500, **_shared)
settings.register_profile("soak", max_examples=50, print_blob=True, **_shared)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `@pytest.mark.quick(3)` three cases of a test are quick, spread over its table."""
    tables: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("quick") and not item.get_closest_marker("slow"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for table in tables.values():
        number = table[0].get_closest_marker("quick").args[0]
        quick = {len(table) * (place + 1) // number - 1 for place in range(number)}
        for place, item in enumerate(table):
            if place not in quick:
                item.add_marker("slow")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under `CONVATTN_NO_SKIPS=1` a test that is skipped fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CONVATTN_NO_SKIPS") == "1" and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True, scope="module")
def _forget_programs() -> Iterator[None]:
    """What one file of tests has compiled is of little use to the next, but holds gigabytes."""
    yield
    jax.clear_caches()


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Annotations are not checked, as for a user, so that the library's own checks must speak."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def implicit_promotion() -> Iterator[None]:
    """JAX promotes dtypes and ranks, in `make strict` as well: promotion is what is tested."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def no_signal_is_ignored() -> Iterator[None]:
    """What a test starts ignores no signal, even if the tests do: after nohup, or a script's &."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
