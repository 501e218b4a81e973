package main

import (
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
)

// insist makes a request again that the log has not answered in time.
func (b *bench) insist(f func() error, done ...api.Code) error {
	return deployment.Insist(deployment.ASecond(b.ctx), f, done...)
}
