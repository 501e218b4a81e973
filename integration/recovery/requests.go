package main

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
)

// retry makes a request again until it is answered.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ended := deployment.Sleep(ctx, 100*time.Millisecond); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// insist makes a request again that the log has not answered in time.
func (b *bench) insist(f func() error, done ...api.Code) error {
	return deployment.Insist(deployment.ASecond(b.ctx), f, done...)
}
