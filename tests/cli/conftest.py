from command import convattn_command as convattn_command
from command import proofs as proofs
