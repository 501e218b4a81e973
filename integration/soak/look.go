//go:build unix

package main

import (
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/projector/readmodel"
)

const (
	lookEvery   = 2 * time.Second  // listings and searches
	retainEvery = 20 * time.Second // see [client.Retention]
	retainOlder = time.Hour
)

// look asks about all sessions, again and again, and has retention pass.
func (s *soak) look() {
	next := time.Now().Add(retainEvery)
	for n := 0; s.sleep(s.loaded, lookEvery); n++ {
		if time.Now().After(next) {
			next = time.Now().Add(retainEvery)
			older := retainOlder
			err := s.patiently(func() error {
				_, err := s.api.Retain(s.ctx, client.Retention{PurgeOlderThan: &older, DropOlderThan: &older})
				return err
			})
			if s.refused("", "retention", err) {
				return
			}
		}
		err := s.patiently(func() (err error) {
			switch n % 3 {
			case 0:
				_, err = s.api.Sessions(s.ctx, client.SessionFilter{AgentType: agentWorker}, client.Paging{Limit: 50})
			case 1:
				_, err = s.api.Search(s.ctx, "place", client.SearchFilter{}, client.Paging{Limit: 20})
			default:
				_, err = s.api.UsageBy(s.ctx, readmodel.ByAgent, client.UsageFilter{})
			}
			return err
		})
		if status := deployment.Status(err); status == http.StatusNotFound || status == http.StatusNotImplemented {
			continue // a daemon without read models
		}
		if s.refused("", "listing", err) {
			return
		}
		s.count(func(c *counts) { c.listed++ })
	}
}
