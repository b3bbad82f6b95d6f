"""The readers of outside data, by name, for `fuzz.py`: seeds, and what they refuse with."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]

from fuzz.array_readers import npy_seeds, npz_seeds, read_arrays, safetensors_seeds  # noqa: E402
from fuzz.certificate_readers import certificate_seeds, read_certificate  # noqa: E402
from fuzz.explorer_readers import explored_seeds, read_explored, read_request, request_seeds  # noqa: E402
from fuzz.image_readers import (  # noqa: E402
    archive_seeds,
    folder_seeds,
    picture_seeds,
    read_archive,
    read_folder,
    read_sent_picture,
    read_slice_file,
)
from fuzz.network_readers import (  # noqa: E402
    diagnosed_seeds,
    layer_seeds,
    network_seeds,
    read_diagnosed,
    read_layer,
    read_network,
    read_state_dict,
    state_dict_seeds,
)
from fuzz.reader import Reader  # noqa: E402
from fuzz.run_readers import (  # noqa: E402
    checkpoint_seeds,
    read_checkpoint,
    read_records,
    read_run,
    read_settings,
    read_trials,
    records_seeds,
    run_files,
    settings_seeds,
    trial_seeds,
)


def _readers() -> dict[str, Reader]:
    """All readers by their names, the quick ones first."""
    from convattn.data.cifar10_slice import DataIntegrityError
    from convattn_ledger.run import EvidenceFailed

    value = (ValueError,)
    found = [
        Reader("certificate", read_certificate, (), certificate_seeds),
        Reader("npy", read_arrays, value, npy_seeds),
        Reader("npz", read_arrays, value, npz_seeds),
        Reader("safetensors", read_arrays, value, safetensors_seeds),
        Reader("picture", read_sent_picture, value, picture_seeds),
        Reader("archive", read_archive, value, archive_seeds),
        Reader("folder", read_folder, value, folder_seeds, folder=True),
        Reader("slice", read_slice_file, (DataIntegrityError,), npz_seeds),
        Reader("records", read_records, (EvidenceFailed,), records_seeds),
        Reader("trials", read_trials, value, trial_seeds),
        Reader("diagnosed", read_diagnosed, value, diagnosed_seeds),
        Reader("request", read_request, (), request_seeds, allowed=("socket.connect",)),
        Reader("layer", read_layer, value, layer_seeds),
        Reader("network", read_network, value, network_seeds),
        Reader("settings", read_settings, value, settings_seeds),
        Reader("run", read_run, value, lambda: [run_files()], folder=True),
        Reader("state-dict", read_state_dict, value, state_dict_seeds),
        Reader("explored", read_explored, value, explored_seeds),
        Reader(
            "checkpoint", read_checkpoint, _checkpoint_refusals(), checkpoint_seeds, folder=True
        ),
    ]
    return {reader.name: reader for reader in found}


def _checkpoint_refusals() -> tuple[type[Exception], ...]:
    from convattn_lab.training.checkpoints import OtherModel
    from convattn_lab.training.failures import NoWholeCheckpoint

    return (NoWholeCheckpoint, OtherModel, OSError)


READERS = _readers()
