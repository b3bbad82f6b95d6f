"""The readers of outside data, by name, for `fuzz.py`: seeds, and what they refuse with."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]

from fuzz import array_readers as arrays  # noqa: E402
from fuzz import certificate_readers as certificates  # noqa: E402
from fuzz import explorer_readers as explorer  # noqa: E402
from fuzz import image_readers as images  # noqa: E402
from fuzz import network_readers as networks  # noqa: E402
from fuzz import run_readers as runs  # noqa: E402
from fuzz.reader import Reader  # noqa: E402

CONNECTS = ("socket.connect",)


def _readers() -> dict[str, Reader]:
    """All readers by their names, the quick ones first."""
    from convattn.data.cifar10_slice import DataIntegrityError
    from convattn_lab.training.checkpoints import OtherModel
    from convattn_lab.training.failures import NoWholeCheckpoint
    from convattn_ledger.run import EvidenceFailed

    value, lost = (ValueError,), (NoWholeCheckpoint, OtherModel, OSError)
    readers = [
        Reader("certificate", certificates.read_certificate, (), certificates.certificate_seeds),
        Reader("npy", arrays.read_arrays, value, arrays.npy_seeds),
        Reader("npz", arrays.read_arrays, value, arrays.npz_seeds),
        Reader("safetensors", arrays.read_arrays, value, arrays.safetensors_seeds),
        Reader("picture", images.read_sent_picture, value, images.picture_seeds),
        Reader("archive", images.read_archive, value, images.archive_seeds),
        Reader("folder", images.read_folder, value, images.folder_seeds, folder=True),
        Reader("slice", images.read_slice_file, (DataIntegrityError,), arrays.npz_seeds),
        Reader("records", runs.read_records, (EvidenceFailed,), runs.records_seeds),
        Reader("trials", runs.read_trials, value, runs.trial_seeds),
        Reader("diagnosed", networks.read_diagnosed, value, networks.diagnosed_seeds),
        Reader("request", explorer.read_request, (), explorer.request_seeds, allowed=CONNECTS),
        Reader("layer", networks.read_layer, value, networks.layer_seeds),
        Reader("network", networks.read_network, value, networks.network_seeds),
        Reader("settings", runs.read_settings, value, runs.settings_seeds),
        Reader("run", runs.read_run, value, lambda: [runs.run_files()], folder=True),
        Reader("state-dict", networks.read_state_dict, value, networks.state_dict_seeds),
        Reader("explored", explorer.read_explored, value, explorer.explored_seeds),
        Reader("checkpoint", runs.read_checkpoint, lost, runs.checkpoint_seeds, folder=True),
    ]
    return {reader.name: reader for reader in readers}


READERS = _readers()
