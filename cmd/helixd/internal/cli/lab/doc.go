// Package lab has the commands of the regression lab.
package lab

// Commands are the commands of the regression lab.
type Commands struct {
	Lab labCommands `cmd:"" help:"Try changed agents on recorded sessions."`
}

type labCommands struct {
	Cohort cohortCommands `cmd:"" group:"lab" help:"Files of recorded sessions."`
	Run    runCmd         `cmd:"" group:"lab" help:"Try changed agents on a cohort; exit code 1 if there are regressions, 2 if it could not judge."`
	View   viewCmd        `cmd:"" group:"lab" help:"Look at the labs that were run here, in the debugger."`
	Watch  watchCmd       `cmd:"" group:"lab" help:"Run a lab again whenever one of its files changes, and show the results as metrics."`
}

type cohortCommands struct {
	Create createCmd `cmd:"" group:"lab" help:"Write recorded sessions to a file that stands alone, with redactions."`
}
