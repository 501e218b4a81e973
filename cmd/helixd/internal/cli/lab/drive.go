package lab

import (
	"context"
	"errors"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// drive runs the lab.
func drive(context.Context, *flags.Process, runCmd, *file, func(done, total int)) (*result.Report, error) {
	return nil, errors.New("not yet")
}
