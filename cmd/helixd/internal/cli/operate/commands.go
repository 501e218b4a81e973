package operate

import "github.com/helixd/helixd/cmd/helixd/internal/doctor"

// Commands are the commands of operators.
type Commands struct {
	Retain  retainCmd       `cmd:"" group:"care" help:"Remove old records from the log, or for good."`
	Backup  backupCmd       `cmd:"" group:"care" help:"Write the whole store to a file, while it is in use."`
	Restore restoreCmd      `cmd:"" group:"care" help:"Create a deployment from a backup, with every sequence as it was."`
	Cluster clusterCommands `cmd:"" group:"care" help:"Change a cluster of embedded servers."`
	Sweep   sweepCmd        `cmd:"" group:"care" help:"End the sessions that have expired and still wait."`
	Verify  verifyCmd       `cmd:"" group:"care" help:"Look for damage in the store; exit code 2 if there is any."`
	Doctor  doctor.Command  `cmd:"" group:"care" help:"Examine the deployment and say what to change; exit code 1 if there is a problem, 2 if it could not examine it."`
	Healthy healthyCmd      `cmd:"" group:"care" help:"Ask a daemon whether it takes work; exit code 1 if it does not."`
	Reload  reloadCmd       `cmd:"" group:"care" help:"Have a daemon read its agents and tokens again."`
	Size    sizeCmd         `cmd:"" group:"care" help:"Estimate the disk, memory and cores that a load needs."`
	Version versionCmd      `cmd:"" group:"care" help:"Show the version."`
}
