"""Several processes, on one machine or on many, that train one model together.

- `start`: bring them together, before JAX is used.
- `joined`: from there to the end: `joined_processes` is what the trainer calls.
- `processes`: `Processes`, by which they agree on what comes next.
- `peers`, `link`: the connections under it, and what happens when a process fails or is lost.
- `rendezvous`: how the connections come about.
- `watchdog`: what is said of a process that could not say it itself.
- `broadcast`: arrays of the first process, for all.
- `likeness`: in what they must be alike.
"""

from convattn.lab.training.hosts.broadcast import broadcast_arrays as broadcast_arrays
from convattn.lab.training.hosts.joined import joined_processes as joined_processes
from convattn.lab.training.hosts.joined import one_process_alone as one_process_alone
from convattn.lab.training.hosts.link import Link as Link
from convattn.lab.training.hosts.link import LinkLost as LinkLost
from convattn.lab.training.hosts.peers import Peers as Peers
from convattn.lab.training.hosts.processes import Processes as Processes
from convattn.lab.training.hosts.rendezvous import meet as meet
from convattn.lab.training.hosts.start import check_processes as check_processes
from convattn.lab.training.hosts.start import start_processes as start_processes
from convattn.lab.training.hosts.start import stop_watching as stop_watching
from convattn.lab.training.hosts.watchdog import Watchdog as Watchdog
