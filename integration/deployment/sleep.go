package deployment

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Sleep lets time pass. If ctx ends before, it returns ctx's cause at once.
func Sleep(ctx context.Context, d time.Duration) error {
	_ = eventlog.Sleep(ctx, d)
	return context.Cause(ctx)
}

// Until calls done, with pauses, until it reports true or fails. If ctx ends before, it
// returns ctx's cause.
func Until(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Retry calls f, with pauses, until it does not fail. If ctx ends before, it returns ctx's
// cause and the last failure.
func Retry(ctx context.Context, pause time.Duration, f func() error) (err error) {
	ended := Until(ctx, pause, func() (bool, error) {
		err = f()
		return err == nil, nil
	})
	if ended != nil {
		return errors.Join(ended, err)
	}
	return nil
}
