package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Streams are the servers of one JetStream; any of them answers for all.
type Streams []Server

// Log and Runs are the streams of helixd that matter to recovery: the log of a
// deployment with one partition, and the list of runs.
const (
	Log  = "HELIX_LOG_0"
	Runs = "HELIX_RUNS"
)

// ask asks one server after the other.
func (s Streams) ask(ctx context.Context, subject, body string, answer any) (err error) {
	for _, server := range s {
		e := server.ask(ctx, subject, body, answer)
		if e == nil {
			return nil
		}
		err = errors.Join(err, e)
	}
	return err
}

// until tries f again and again, until it says that it is done.
func until(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	if err := Retry(ctx, 20*time.Millisecond, f); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// WaitUp waits until every server answers for JetStream.
func (s Streams) WaitUp(ctx context.Context) error {
	for _, server := range s {
		err := until(ctx, "waiting for "+server.Address, func() error {
			return server.ask(ctx, "INFO", "", &struct{}{})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type streamInfo struct {
	Config struct{ Name string }
	State  struct {
		Consumers int `json:"consumer_count"`
	}
	Cluster *struct {
		Leader   string
		Replicas []struct {
			Name             string
			Current, Offline bool
		}
	}
}

// Leader is the name of the server that leads a stream.
func (s Streams) Leader(ctx context.Context, stream string) (string, error) {
	var i streamInfo
	if err := s.ask(ctx, "STREAM.INFO."+stream, "", &i); err != nil {
		return "", err
	}
	if i.Cluster == nil || i.Cluster.Leader == "" {
		return "", fmt.Errorf("%s has no leader", stream)
	}
	return i.Cluster.Leader, nil
}

// Holders are the servers that have a replica of a stream, its leader first.
func (s Streams) Holders(ctx context.Context, stream string) ([]string, error) {
	var i streamInfo
	if err := s.ask(ctx, "STREAM.INFO."+stream, "", &i); err != nil {
		return nil, err
	}
	if i.Cluster == nil || i.Cluster.Leader == "" {
		return nil, fmt.Errorf("%s has no leader", stream)
	}
	names := []string{i.Cluster.Leader}
	for _, r := range i.Cluster.Replicas {
		names = append(names, r.Name)
	}
	return names, nil
}

// Lead has a server lead a stream.
func (s Streams) Lead(ctx context.Context, stream, name string) error {
	return until(ctx, fmt.Sprintf("making %s lead %s", name, stream), func() error {
		switch leader, err := s.Leader(ctx, stream); {
		case err != nil:
			return err
		case leader == name:
			return nil
		}
		body := fmt.Sprintf(`{"placement":{"preferred":%q}}`, name)
		err := s.ask(ctx, "STREAM.LEADER.STEPDOWN."+stream, body, &struct{}{})
		return errors.Join(errors.New("another one leads"), err)
	})
}

// StepDown has the leader of a stream be another one.
func (s Streams) StepDown(ctx context.Context, stream string) error {
	return s.ask(ctx, "STREAM.LEADER.STEPDOWN."+stream, "", &struct{}{})
}

// all returns every stream.
func (s Streams) all(ctx context.Context) (streams []streamInfo, err error) {
	for {
		var page struct {
			Total   int
			Streams []streamInfo
			Missing []string
		}
		if err := s.ask(ctx, "STREAM.LIST", fmt.Sprintf(`{"offset":%d}`, len(streams)), &page); err != nil {
			return nil, err
		}
		if len(page.Missing) > 0 {
			return nil, fmt.Errorf("nobody answers for %s", strings.Join(page.Missing, ", "))
		}
		streams = append(streams, page.Streams...)
		if len(streams) >= page.Total || len(page.Streams) == 0 {
			return streams, nil
		}
	}
}

// Consumers counts the JetStream consumers of all streams.
func (s Streams) Consumers(ctx context.Context) (n int, err error) {
	streams, err := s.all(ctx)
	for _, i := range streams {
		n += i.State.Consumers
	}
	return n, err
}

// Names are the streams.
func (s Streams) Names(ctx context.Context) (names []string, err error) {
	streams, err := s.all(ctx)
	for _, i := range streams {
		names = append(names, i.Config.Name)
	}
	return names, err
}

// WaitHealthy waits until every stream has a leader and all its replicas are
// current.
func (s Streams) WaitHealthy(ctx context.Context) error {
	return until(ctx, "waiting for the replicas", func() error { return s.Healthy(ctx) })
}

// Healthy returns an error unless every stream has a leader and all its replicas are
// current.
func (s Streams) Healthy(ctx context.Context) error {
	streams, err := s.all(ctx)
	if err != nil {
		return err
	}
	for _, i := range streams {
		if i.Cluster == nil {
			continue
		}
		if i.Cluster.Leader == "" {
			return fmt.Errorf("%s has no leader", i.Config.Name)
		}
		for _, r := range i.Cluster.Replicas {
			if r.Offline || !r.Current {
				return fmt.Errorf("%s lags with %s", r.Name, i.Config.Name)
			}
		}
	}
	return nil
}
